"""The copies to the prefix directory that a dead job had begun are finished by the nodes that are left."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cairn.drain import LATER, PUBLISHED, UNFINISHED, outcomes
from cairn.long_work import TEMPORARY
from cairn.roles import Answer
from jobs import Job, environment_of, heat


# ---- what the nodes have answered ----

PLANS = [{"number": 3, "uuid": "03", "name": "ckpt.3", "ranks": 12, "copied": 0}]


def answer(outcome: str, missing: List[int], reason: str = "", code: int = 0) -> Answer:
    one = {"number": 3, "uuid": "03", "name": "ckpt.3", "ranks": [0], "missing": missing, "outcome": outcome, "reason": reason}
    return Answer(code, json.dumps({"node": "n", "datasets": [one]}))


def test_one_node_that_has_seen_the_dataset_published_is_enough() -> None:
    [one] = outcomes(PLANS, {"n0": answer("incomplete", [1]), "n1": answer("published", []), "n2": Answer(0, '{"datasets": []}')})
    assert one.outcome == PUBLISHED and one.is_published()
    assert one.text() == "ckpt.3 (dataset 3) is now in the prefix directory: the nodes have finished its copy"


def test_the_ranks_are_named_whose_parts_no_node_holds() -> None:
    """One node has looked before another has copied its part."""
    [one] = outcomes(PLANS, {"n0": answer("incomplete", [1, 2, 3]), "n1": answer("incomplete", [2])})
    assert (one.outcome, one.reason) == (UNFINISHED, "no node that was asked holds the parts of rank 2")
    [one] = outcomes(PLANS, {"n0": answer("incomplete", list(range(12)))})
    assert one.reason.endswith("of ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more")


def test_what_a_node_could_not_do_is_the_reason() -> None:
    [one] = outcomes(PLANS, {"n0": answer("failed", [0], "a block is damaged", 1), "n1": answer("incomplete", [0]),
                      "n2": Answer(255, "the connection has closed")})
    assert one.outcome == UNFINISHED
    assert "n0: a block is damaged" in one.reason and "n2: the connection has closed" in one.reason


def test_a_cache_in_use_is_tried_again_later() -> None:
    [one] = outcomes(PLANS, {"n0": answer("incomplete", [1]), "n1": Answer(TEMPORARY, "cairn: error: a job uses the cache")})
    assert one.outcome == LATER and "a job uses the cache" in one.reason
    [one] = outcomes(PLANS, {"n0": Answer(TEMPORARY, "the allocation ends")})
    assert one.outcome == LATER and one.text().endswith("its copy is not finished: n0: the allocation ends")


@pytest.mark.parametrize("first, reason", [
    (answer("incomplete", [1]), ""), (Answer(0, '{"datasets": []}'), ""),
    (answer("failed", [0, 1], "the plan is gone", 1), "n0: the plan is gone; ")])
def test_a_plan_that_a_node_does_not_see_any_more_is_in_other_hands(first: Answer, reason: str) -> None:
    """The node that does not see it may hold what the other has missed."""
    [one] = outcomes(PLANS, {"n0": first, "n1": Answer(0, '{"datasets": []}')})
    assert (one.outcome, one.reason) == (LATER, f"{reason}a node sees its plan no more: another process has changed it, or the prefix directory is not mounted there")


def test_what_a_node_could_not_read_is_a_reason() -> None:
    one = {"number": 3, "uuid": "03", "name": "ckpt.3", "ranks": [], "missing": [1], "outcome": "incomplete", "reason": ""}
    told = json.dumps({"node": "n", "datasets": [one], "unreadable": ["/cache/x: Input/output error"], "left": []})
    [drained] = outcomes(PLANS, {"n0": Answer(1, told)})
    assert drained.reason == "n0: /cache/x: Input/output error"


# ---- a real job ----

# So slow that the program dies in the middle of a copy.
SLOW = {"SCR_FLUSH": "1", "SCR_FLUSH_ASYNC": "1", "SCR_FLUSH_ASYNC_BW": "200000", "SCR_FETCH": "1"}


def plans(folder: Path) -> List[Path]:
    return list(folder.glob(".cairn/epoch.*/dataset.*/dataset"))


def published(folder: Path) -> List[str]:
    return [path.name.split(".")[1] for path in folder.glob(".cairn/datasets/dataset.*")]


def drain(cairn: Path, folder: Path, *options: str) -> Dict[str, Any]:
    done = subprocess.run([cairn, "drain", "-p", folder, "--storage", folder / "storage", "--json", *options], text=True,
                          env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return {"code": done.returncode, "told": done.stderr, **(json.loads(done.stdout) if done.stdout else {})}


def status(cairn: Path, folder: Path) -> str:
    return subprocess.run([cairn, "status", "-p", folder], text=True, env=environment_of(), stdout=subprocess.PIPE,
                          timeout=60, check=True).stdout


def slow_job(cairn: Path, folder: Path, flavour: str, program_of: Dict[str, str], *options: str) -> Job:
    return heat(cairn, folder, flavour, program_of, ["--nodes", "4", "--storage", str(folder / "storage"), *options], 4000,
                settings=SLOW)


def test_a_drain_finishes_the_copy_of_a_job_that_was_killed(cairn: Path, tmp_path: Path, first_flavour: str,
                                                            program_of: Dict[str, str]) -> None:
    job = slow_job(cairn, tmp_path, first_flavour, program_of, "--runs", "1")
    job.until(lambda: bool(plans(tmp_path)), timeout_s=60)
    job.send(signal.SIGHUP)  # at once, without a scavenge
    job.wait()
    assert plans(tmp_path) and not published(tmp_path)
    assert re.search(r"^copying     \S+ \(dataset 1\): \d of 4 parts copied; cairn drain finishes the copy$",
                     status(cairn, tmp_path), re.MULTILINE)

    [plan] = plans(tmp_path)
    plan.rename(tmp_path / "plan")
    plan.mkdir()  # reading it fails, as on a disk with errors
    done = drain(cairn, tmp_path)
    assert done["code"] == 1 and "it is unknown whether" in done["told"], done
    plan.rmdir()
    (tmp_path / "plan").rename(plan)

    done = drain(cairn, tmp_path)
    assert done["code"] == 0, done
    [one] = done["datasets"]
    assert one["outcome"] == PUBLISHED and published(tmp_path) == [str(one["number"])]
    assert "the nodes have finished its copy" in done["told"]
    assert not list(tmp_path.rglob(".cairn.*")), "files have their own names"
    assert drain(cairn, tmp_path)["datasets"] == []
    assert "copying" not in status(cairn, tmp_path)

    shutil.rmtree(tmp_path / "storage")
    again = heat(cairn, tmp_path, first_flavour, program_of, ["--nodes", "4", "--runs", "1"], 8, settings={"SCR_FETCH": "1"}).wait()
    assert again.code == 0 and again.steps("start") == [4], again


def test_status_shows_the_copy_that_waits(cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """It has no plan in the prefix directory yet."""
    job = heat(cairn, tmp_path, first_flavour, program_of, ["--nodes", "4", "--storage", str(tmp_path / "storage"), "--runs", "1"],
               100000, settings={**SLOW, "SCR_FLUSH_ASYNC_BW": "1000"})
    line = r"^not flushed \S+ \(dataset {}\): {}protected for [^;]+; its copy {}$"

    def shown(number: str, was: str, copy: str) -> bool:
        return bool(re.search(line.format(number, was, copy), status(cairn, tmp_path), re.MULTILINE))
    job.until(lambda: bool(plans(tmp_path)), timeout_s=60)
    job.until(lambda: shown("1", "", "has begun") and shown(r"[2-9]\d*", "", "waits"), timeout_s=60)
    job.send(signal.SIGHUP)
    job.wait()
    assert shown("1", "was ", "has begun") and not shown(r"\d+", "was ", "waits"), status(cairn, tmp_path)


def test_a_lost_node_is_reported_and_the_scavenge_rebuilds_its_part(cairn: Path, tmp_path: Path, first_flavour: str,
                                                                    program_of: Dict[str, str]) -> None:
    job = slow_job(cairn, tmp_path, first_flavour, program_of, "--runs", "1")
    job.until(lambda: bool(plans(tmp_path)), timeout_s=60)
    job.send(signal.SIGHUP)
    job.wait()
    shutil.rmtree(tmp_path / "storage" / "nodes" / "n2")
    done = drain(cairn, tmp_path)
    assert done["code"] == 1, done
    assert "holds the parts of rank 2" in done["datasets"][0]["reason"]
    saved = subprocess.run([cairn, "scavenge", "-p", tmp_path, "--storage", tmp_path / "storage"], text=True,
                           env=environment_of(), stderr=subprocess.PIPE, timeout=60, check=False)
    assert "is now in the prefix directory" in saved.stderr, saved
    assert published(tmp_path)


def test_cairn_run_finishes_copies_before_it_launches_again(cairn: Path, tmp_path: Path, first_flavour: str,
                                                            program_of: Dict[str, str]) -> None:
    job = slow_job(cairn, tmp_path, first_flavour, program_of, "--runs", "2")
    job.until(lambda: bool(plans(tmp_path)), timeout_s=60)
    assert re.search(r"^copying     \S+ \(dataset 1\): \d of 4 parts copied$", status(cairn, tmp_path), re.MULTILINE)
    os.kill(rank_of(tmp_path), signal.SIGKILL)
    job.until_halted("RUN_START", 2)
    job.send(signal.SIGHUP)
    told = job.wait().printed
    drained, relaunched = told.find("the nodes have finished its copy"), told.find("run 2 on")
    assert 0 <= drained < relaunched, told


def test_a_node_that_left_the_job_does_not_copy_for_a_job_that_lives(cairn: Path, tmp_path: Path, first_flavour: str,
                                                                     program_of: Dict[str, str]) -> None:
    job = slow_job(cairn, tmp_path, first_flavour, program_of, "--runs", "1")
    job.until(lambda: bool(plans(tmp_path)), timeout_s=60)
    done = subprocess.run([cairn, "drain-node", "-p", tmp_path], text=True, env=environment_of({"SCR_NODE_NAME": "n9"}),
                          stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == TEMPORARY and "which is running on" in done.stderr, done
    job.send(signal.SIGHUP)
    job.wait()


def rank_of(folder: Path) -> int:
    """A process of the heat solver."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "cmdline").exists():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"2_heat") and str(folder / "result").encode() in words:
                return int(entry.name)
    raise AssertionError("the solver does not run")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_it_says_what_it_is(cairn: Path, option: str) -> None:
    assert subprocess.run([cairn, "drain", option], env=environment_of(), stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_a_prefix_directory_without_a_job_is_an_error_that_says_so(cairn: Path, tmp_path: Path) -> None:
    done = drain(cairn, tmp_path)
    assert done["code"] != 0 and str(tmp_path) in done["told"], done
