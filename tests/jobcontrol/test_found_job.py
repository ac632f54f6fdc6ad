"""Commands find a job by its prefix directory alone: the job, its caches and its nodes, alive or dead, however it was
started."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

import pytest

from cairn.account import Account
from cairn.found_job import FoundJob, LastRun
from cairn.life import identity, lives
from cairn.state_file import StateFile, is_over, read_state
from cairn.unpublished import Unpublished
from jobs import Job, environment_of, launcher_of
from stand_ins import put_on_path

FOR_EVER = ["--size", "1", "--every", "2", "--steps", "1000000"]


class Told(NamedTuple):
    code: int
    output: str
    printed: str

    def json(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(self.output)
        return found


class Shell:
    """Another one than the job's: nothing of the job is in its environment."""

    def __init__(self, cairn: Path, folder: Path, prefix: Path) -> None:
        self._cairn, self._folder, self._prefix = cairn, folder, prefix
        folder.mkdir()

    def __call__(self, name: str, *words: str, **settings: str) -> Told:
        environment = {key: value for key, value in environment_of().items() if not key.startswith(("SCR_", "CAIRN_"))}
        done = subprocess.run([str(self._cairn), name, "-p", str(self._prefix), *words], cwd=self._folder, text=True,
                              env={**environment, **settings}, timeout=60, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Told(done.returncode, done.stdout, done.stderr)

    def found(self) -> Dict[str, Any]:
        return self("job").json()

    def status(self) -> Dict[str, Any]:
        printed = self("status", "--json")
        assert printed.code == 0, printed
        return printed.json()

    def taken(self) -> str:
        """The checkpoint that a restart would take, by explain."""
        return next(str(one["name"]) for one in self("explain", "--json").json()["datasets"] if one["taken"])

    def places(self) -> Dict[str, List[str]]:
        """Of each checkpoint that can be restarted from, by explain."""
        places: Dict[str, List[str]] = {}
        for one in self("explain", "--json").json()["datasets"]:
            if one["usable"]:
                places.setdefault(one["name"], []).append(one["place"])
        return places


def until(happens: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)


def absent_paths(text: str) -> List[str]:
    """Absolute paths that it names and that are not there."""
    return [path for path in re.findall(r"(?<![\w.])/[\w./%:+-]*[\w%]", text) if not os.path.exists(path)]


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "prefix"
    folder.mkdir()
    return folder


@pytest.fixture
def shell(cairn: Path, tmp_path: Path, prefix: Path) -> Shell:
    return Shell(cairn, tmp_path / "elsewhere", prefix)


@pytest.fixture
def killed(cairn: Path, prefix: Path, shell: Shell, first_flavour: str, program_of: Dict[str, str]) -> Iterator[Job]:
    """A `cairn run` on four simulated nodes that is killed with checkpoints only in their caches: at least two whole ones,
    also if the kill comes while one is written or removed."""
    job = Job(cairn, prefix, ["--nodes", "4"], [launcher_of(first_flavour), "-n", "4", program_of[first_flavour], *FOR_EVER],
              {"SCR_CACHE_SIZE": "3"})
    job.until_halted("CHECKPOINT_END", 3)
    storage = Path(shell.found()["stores"][0]).parents[1]
    assert storage.name.startswith("cairn-nodes-") and shell.status()["alive"]
    job.send(signal.SIGKILL)
    yield job
    job.wait()
    shutil.rmtree(storage, ignore_errors=True)


class Plain:
    """A job that a launcher starts without `cairn run`."""

    def __init__(self, folder: Path, launcher: str, program: str, *words: str, **settings: str) -> None:
        self.cache = folder / "cache"
        self.cache.mkdir()
        self.process = subprocess.Popen(
            [launcher, "-n", "2", program, *words], cwd=folder / "prefix", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment_of({
                "SCR_JOB_ID": "plain", "SCR_CACHE_BASE": str(self.cache), "SCR_CNTL_BASE": str(self.cache),
                "SCR_COPY_TYPE": "SINGLE", "OMPI_MCA_rmaps_base_oversubscribe": "1", "CAIRN_LOG_JSON": "1", **settings}))

    def until_halted(self, folder: Path, event: str, count: int = 1) -> None:
        log = folder / "prefix" / ".cairn" / "log.json"
        until(lambda: log.exists() and log.read_text().count(f'"{event}"') >= count)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def plain(tmp_path: Path, prefix: Path, first_flavour: str, program_of: Dict[str, str]) -> Iterator[Plain]:
    """That computes until it is killed."""
    job = Plain(tmp_path, launcher_of(first_flavour), program_of[first_flavour], *FOR_EVER)
    job.until_halted(prefix.parent, "CHECKPOINT_END", 2)
    yield job
    job.end()


# ---- after a kill of cairn run ----


def test_what_a_killed_cairn_run_left_is_saved_by_the_prefix_directory_alone(shell: Shell, killed: Job) -> None:
    status = shell.status()
    assert not status["alive"] and status["life"] == "died", "at once, on the same host"
    assert [run["failed"] for run in status["runs"]] == [True] and status["lost_s"] > 0
    assert "1 died" in shell("status").output and "in use" not in shell("status").output
    until(lambda: shell.status()["program"] == "died")
    newest = shell.taken()
    assert shell.places()[newest] == ["cache"]
    status = shell.status()
    assert status["checkpoint"]["name"] == newest and absent_paths(status["checkpoint"]["protection"]) == []
    saved = shell("scavenge", "--json")
    assert saved.code == 0 and saved.json()["verdict"] == "saved", saved
    assert [one["name"] for one in saved.json()["datasets"]] == [newest] and "job local" in saved.printed, saved
    assert sorted(shell.places()[newest]) == ["cache", "prefix"]
    assert "in the prefix directory" in shell.status()["checkpoint"]["protection"]
    assert shell("verify").code == 0


class Caches:
    """Of the simulated nodes of a dead job."""

    def __init__(self, storage: Path) -> None:
        self._nodes = storage / "nodes"

    def numbers(self) -> List[int]:
        """Of the datasets, the oldest first."""
        return sorted({int(path.name.split(".")[1]) for path in self._nodes.rglob("dataset.*")})

    def remove(self, number: int) -> None:
        for path in list(self._nodes.rglob(f"dataset.{number}.*")):
            shutil.rmtree(path)

    def leave_in_commit(self, number: int, committed: Set[int], prepared: Set[int]) -> None:
        """As a kill in the middle of Complete: these ranks have their committed record, those the prepared one only."""
        for part in self._nodes.rglob(f"dataset.{number}.*/rank.*"):
            rank = int(part.name.split(".")[1])
            with suppress(FileNotFoundError):  # the kill of the job was in its commit too
                (part / "record.new").rename(part / "record")
            if rank in prepared:
                (part / "record").rename(part / "record.new")
            elif rank not in committed:
                (part / "record").unlink()

    def lose_node_of(self, rank: int) -> None:
        part = next(self._nodes.rglob(f"rank.{rank}"))
        shutil.rmtree(next(path for path in part.parents if path.parent == self._nodes))


@pytest.mark.parametrize("committed, prepared, lost, saves_newest", [
    ({0, 1, 2, 3}, set(), None, True), ({2}, {0, 1, 3}, None, True), ({2}, {0, 1, 3}, 0, True),
    # One that no node has committed, as far as can be seen, counts neither for a restart nor for the scavenge.
    (set(), {0, 1, 2, 3}, None, False), (set(), {0, 1}, None, False), ({2}, {0, 1, 3}, 2, False),
])
def test_after_a_kill_in_the_commit_the_scavenge_saves_what_a_restart_would_take(
        shell: Shell, killed: Job, committed: Set[int], prepared: Set[int], lost: Optional[int], saves_newest: bool) -> None:
    """By what is left in the caches: with the parity of a node that is lost, where one is."""
    until(lambda: shell.status()["program"] == "died")
    caches = Caches(Path(shell.found()["stores"][0]).parents[1])
    listed = {one["number"]: one for one in shell("explain", "--json").json()["datasets"]}
    newest = next(number for number, one in listed.items() if one["taken"])
    for number in caches.numbers():  # the program may have begun another one, or removed a part of an older one
        if number > newest:
            caches.remove(number)
    caches.leave_in_commit(newest, committed, prepared)
    if lost is not None:
        caches.lose_node_of(lost)
    name = listed[newest]["name"]
    taken = [one["name"] for one in shell("explain", "--json").json()["datasets"] if one["taken"]]
    assert len(taken) == 1 and (taken == [name]) == saves_newest
    saved = shell("scavenge", "--json")
    assert saved.code == 0 and [one["name"] for one in saved.json()["datasets"]] == taken, saved
    assert ("was never complete" in saved.printed) != saves_newest, saved
    assert ("prefix" in shell.places().get(name, [])) == saves_newest


def test_clean_removes_the_nodes_that_a_killed_cairn_run_has_simulated(shell: Shell, killed: Job) -> None:
    storage = Path(shell.found()["stores"][0]).parents[1]
    until(lambda: shell.status()["program"] == "died")
    printed = shell("clean", "--remove")
    assert str(storage) in printed.output and "cairn scavenge" in printed.output and storage.exists(), "it holds a checkpoint"
    printed = shell("clean", "--job", "local")
    assert "would be removed" in printed.output and storage.exists(), printed
    printed = shell("clean", "--remove", "--job", "another")
    assert storage.exists(), printed
    printed = shell("clean", "--remove", "--job", "local")
    assert printed.code == 0 and not storage.exists(), printed
    gone = shell("scavenge")
    assert gone.code == 1 and "storage is gone" in gone.printed, gone
    explained = shell("explain")
    assert explained.code == 0 and "scavenge" not in explained.output, "there is nothing left to save"
    assert absent_paths(shell("status").output) == []


def test_the_end_of_the_nodes_leaves_no_name_of_them_in_the_status(cairn: Path, shell: Shell, prefix: Path, first_flavour: str,
                                                                   program_of: Dict[str, str]) -> None:
    job = Job(cairn, prefix, ["--nodes", "2"], [launcher_of(first_flavour), "-n", "2", program_of[first_flavour], "--size", "1",
                                                "--every", "2", "--steps", "4"], {"SCR_FLUSH": "1"})
    outcome = job.wait()
    assert outcome.code == 0, outcome
    printed = shell("status")
    assert printed.code == 0 and "in the prefix directory" in printed.output and absent_paths(printed.output) == [], printed
    assert shell.status()["life"] == "ended"
    listed = shell("halt", "--list")
    assert "no run to stop" in listed.output and "ended" in listed.output, listed
    assert shell("halt", "--list", "--json").json()["prefixes"][0]["run"] == "ended"


def test_what_a_run_lost_with_its_simulated_nodes_is_not_said_to_be_saved_later(
        cairn: Path, shell: Shell, prefix: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """Two of four nodes are more than XOR can rebuild, and the storage of the others is deleted at the end."""
    job = Job(cairn, prefix, ["--nodes", "4", "--kill-node", "n1@checkpoint:2", "--kill-node", "n2@checkpoint:2"],
              [launcher_of(first_flavour), "-n", "4", program_of[first_flavour], *FOR_EVER])
    outcome = job.wait()
    assert outcome.code == 4 and "--storage DIR keeps them" in outcome.printed, outcome
    explained = shell("explain")
    assert explained.code == 0 and "cairn scavenge" not in explained.output and "is lost" in explained.output, explained
    gone = shell("scavenge")
    assert gone.code == 1 and "storage is gone" in gone.printed and "other nodes" not in gone.printed, gone


# ---- without cairn run ----


def test_status_of_a_job_that_cairn_run_did_not_start(shell: Shell, plain: Plain) -> None:
    status = shell.status()
    assert status["alive"] and not status["by_cairn_run"] and status["job"] == "plain"
    assert status["checkpoint"] and status["checkpoints"] >= 2
    assert "no run to stop" not in shell("halt", "--list").output
    with suppress(ProcessLookupError):
        os.kill(status["process"], signal.SIGKILL)
    until(lambda: shell.status()["life"] == "died", 5)
    status = shell.status()
    assert not status["alive"] and absent_paths(shell("status").output) == []
    assert status["checkpoint"]["name"] == shell.taken()
    plain.end()
    saved = shell("scavenge", "--json")
    assert saved.code == 0 and saved.json()["verdict"] == "saved" and "job plain" in saved.printed, saved


def test_status_of_a_job_without_cairn_run_and_without_a_log_that_has_ended(
        tmp_path: Path, shell: Shell, prefix: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    job = Plain(tmp_path, launcher_of(first_flavour), program_of[first_flavour], "--size", "1", "--every", "2", "--steps", "4",
                CAIRN_LOG_JSON="0", SCR_FLUSH="1")
    assert job.process.wait(60) == 0
    status = shell.status()
    assert (status["life"], status["alive"], status["job"]) == ("ended", False, "plain")
    assert "in the prefix directory" in status["checkpoint"]["protection"]
    assert "ended" in shell("status").output
    shutil.rmtree(prefix / ".cairn" / "halt", ignore_errors=True)
    (prefix / ".cairn" / "last_run").unlink()
    status = shell.status()
    assert status["life"] == "unknown" and status["checkpoint"]["name"], "the datasets are still there"


def test_a_later_run_without_cairn_run_is_the_one_that_is_shown(shell: Shell, prefix: Path, plain: Plain) -> None:
    with StateFile(str(prefix)) as state:
        state.write(Account(job="earlier", begun_s=1.0, outcome="success"), alive=False)
    status = shell.status()
    assert status["job"] == "plain" and status["alive"] and status["outcome"] == ""


def test_a_program_that_lives_is_shown_though_a_later_cairn_run_has_failed(shell: Shell, prefix: Path, plain: Plain) -> None:
    with StateFile(str(prefix)) as state:
        state.write(Account(job="later", begun_s=time.time(), outcome="given up", reason="of no matter"), alive=False)
    status = shell.status()
    assert status["job"] == "plain" and status["alive"] and not status["by_cairn_run"]


def test_a_program_beside_a_living_cairn_run_is_shown_too(shell: Shell, prefix: Path, plain: Plain) -> None:
    with StateFile(str(prefix)) as state:
        state.write(Account(job="later", begun_s=time.time()))
        printed = shell("status")
    assert f"process {shell.found()['last_run']['process']} on" in printed.output and "without cairn run" in printed.output, printed


def test_a_copy_of_the_directory_says_nothing_of_the_job(cairn: Path, tmp_path: Path, prefix: Path, plain: Plain) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(prefix, copy)
    shell = Shell(cairn, tmp_path / "there", copy)
    printed = shell("scavenge")
    assert printed.code == 1 and str(prefix) in printed.printed, printed
    printed = shell("status")
    assert printed.code == 1 and str(prefix) in printed.printed, printed
    printed = shell("scavenge-node", "--list", "--json", SCR_JOB_ID="plain", SCR_CACHE_BASE=str(plain.cache))
    assert printed.code == 1 and printed.json()["left"] and not printed.json()["unreadable"], printed


def test_a_directory_that_was_moved_keeps_its_job(cairn: Path, tmp_path: Path, prefix: Path, plain: Plain) -> None:
    plain.end()
    moved = prefix.rename(tmp_path / "moved")
    printed = Shell(cairn, tmp_path / "there", moved)("scavenge", "--json")
    assert printed.code == 0 and printed.json()["verdict"] == "saved" and "job plain" in printed.printed, printed


# ---- what is not known is not called saved ----


def test_scavenge_for_another_job_fails_and_names_the_one_that_ran_there(shell: Shell, plain: Plain) -> None:
    plain.end()
    printed = shell("scavenge", SCR_JOB_ID="wrong")
    assert printed.code == 1 and "wrong" in printed.printed and "SCR_JOB_ID=plain" in printed.printed, printed


def test_this_host_needs_no_way_to_itself(shell: Shell, plain: Plain) -> None:
    plain.end()
    printed = shell("scavenge", "--json", "--nodes", socket.gethostname(), PATH="/usr/bin:/bin")
    assert printed.code == 0 and printed.json()["verdict"] == "saved", printed


def found_job(job: str = "7", state: str = "", by_cairn_run: bool = False) -> FoundJob:
    run = LastRun(job, state, "h", 1, 100.0, 0.0, by_cairn_run, 1, (("n0", "h"),)) if state else None
    return FoundJob("/p", job, "ada", "", False, "", [], "", [], "h", run)


def test_the_nodes_are_those_of_the_last_run_of_this_job() -> None:
    assert found_job(state="ended").nodes() == ["n0", "h"]
    assert found_job().nodes() == []
    assert replace(found_job("7", state="ended"), job="8").nodes() == []


def test_on_nodes_the_record_of_the_last_run_counts_more_than_files() -> None:
    files = {"SCR_CACHE_BASE": "/of/a/file", "SCR_USER_NAME": "bob", "SCR_FLUSH": "3", "SCR_JOB_ID": "9"}
    assert found_job(state="ended").settings_for_nodes(files, {}) == {"SCR_FLUSH": "3", "SCR_JOB_ID": "7"}
    given = found_job(state="ended").settings_for_nodes(files, {"SCR_CACHE_BASE": "/of/a/file"})
    assert given == {"SCR_CACHE_BASE": "/of/a/file", "SCR_FLUSH": "3", "SCR_JOB_ID": "7"}
    assert found_job().settings_for_nodes(files, {}) == {**files, "SCR_JOB_ID": "7"}


@pytest.mark.parametrize("job, begun_s, over", [
    (found_job(), 50, True),  # run.json alone speaks
    (found_job("8"), 50, False),  # of another job
    (found_job(state="runs"), 200, False),  # a program lives, whatever came of a later cairn run
    (found_job(state="runs", by_cairn_run=True), 50, False),
    (found_job(state="ended"), 50, True),
    (found_job(state="died"), 50, True),
    (replace(found_job("7", state="ended"), job="8"), 50, False),  # of another job as well
    (replace(found_job("8", state="died"), job="7"), 50, False),
    (replace(found_job("8", state="runs"), job="7"), 200, False),
    (found_job(state="unknown"), 50, False),  # begun after that cairn run, by other means
    (found_job(state="unknown", by_cairn_run=True), 50, True)])
def test_the_end_of_cairn_run_says_nothing_of_another_program(job: FoundJob, begun_s: float, over: bool) -> None:
    assert is_over({"alive": False, "account": Account(job="7", begun_s=begun_s, outcome="given up")}, job) == over
    if job.last_run is None:
        assert not is_over(None, job)


def test_scavenge_fails_where_nothing_says_which_job_ran(shell: Shell) -> None:
    printed = shell("scavenge")
    assert printed.code == 1 and "SCR_JOB_ID" in printed.printed and "--nodes" in printed.printed, printed


def test_scavenge_fails_where_the_stores_are_gone(shell: Shell, plain: Plain) -> None:
    plain.end()
    plain.cache.rename(plain.cache.with_name("unmounted"))
    printed = shell("scavenge")
    assert printed.code == 1 and str(plain.cache) in printed.printed, printed
    plain.cache.with_name("unmounted").rename(plain.cache)
    assert shell("scavenge").code == 0


def test_scavenge_fails_where_the_nodes_of_the_last_run_were_not_asked(tmp_path: Path, shell: Shell, plain: Plain) -> None:
    plain.end()
    plain.cache.rename(plain.cache.with_name("moved"))
    plain.cache.mkdir()
    path = put_on_path(tmp_path)
    printed = shell("scavenge", SCR_NODELIST="node0", PATH=path)
    assert printed.code == 1 and "not of this allocation" in printed.printed, printed
    printed = shell("scavenge")
    assert printed.code == 0 and "hold nothing of job plain" in printed.printed, printed


def test_a_damaged_record_is_named_with_what_to_give(shell: Shell, prefix: Path, plain: Plain) -> None:
    plain.end()
    record = prefix / ".cairn" / "last_run"
    content = bytearray(record.read_bytes())
    content[-1] ^= 1
    record.write_bytes(content)
    printed = shell("scavenge")
    assert printed.code == 1 and str(record) in printed.printed and "SCR_JOB_ID" in printed.printed, printed
    given = {"SCR_JOB_ID": "plain", "SCR_CACHE_BASE": str(plain.cache), "SCR_CNTL_BASE": str(plain.cache)}
    assert shell("scavenge", **given).code == 0


# ---- processes ----


def test_a_process_is_known_by_more_than_its_id() -> None:
    mine = identity()
    assert lives(mine) is True
    assert lives({**mine, "start_ticks": "1"}) is False
    assert lives({**mine, "kernel": "another"}) is None
    assert lives({"host": "of an older version", "process": 1}) is None
    with subprocess.Popen(["sleep", "60"]) as child:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert lives({**mine, "process": child.pid, "start_ticks": ""}) is False, "its parent has not asked for its end yet"


def test_a_copy_is_not_taken_for_the_directory_that_cairn_run_works_in(tmp_path: Path, prefix: Path) -> None:
    with StateFile(str(prefix)) as state:
        state.write(Account(job="far"))
        copy = tmp_path / "copy"
        shutil.copytree(prefix, copy)
        (tmp_path / "link").symlink_to(prefix)
        assert read_state(str(prefix)) and read_state(str(tmp_path / "link")) and read_state(str(copy)) is None
    prefix.rename(tmp_path / "gone")
    assert read_state(str(tmp_path / "gone")), "a directory that was moved keeps its record"


class RebuildOf(NamedTuple):
    """In place of the native part: writes down how it is called."""

    path: Path
    prefix: str
    environment: Dict[str, str]
    found: FoundJob
    settings: Dict[str, str] = {"SCR_ENABLE": "1"}

    def can_make_whole(self) -> bool:
        return True

    def job(self) -> FoundJob:
        return self.found


@pytest.mark.parametrize("ran, state, is_over_for_certain", [
    ("old", "ended", True), ("other", "ended", False), ("old", "runs", False)])
def test_that_another_job_has_ended_does_not_publish_at_once(tmp_path: Path, ran: str, state: str,
                                                             is_over_for_certain: bool) -> None:
    """What is published first was left by the job of the last `cairn run`; a new job, of another id, asks for it."""
    command = tmp_path / "cairn"
    command.write_text(f"#!/bin/sh\necho \"$SCR_JOB_ID $*\" > {tmp_path}/call\necho '{{\"datasets\": []}}'\n")
    command.chmod(0o755)
    job = replace(found_job(ran, state), job="new")
    native = RebuildOf(command, str(tmp_path), dict(os.environ), job)
    last = {"alive": False, "account": Account(job="old", begun_s=50, outcome="given up")}
    Unpublished(native, last, print, lambda: "", lambda: None).publish(lambda: None)  # type: ignore[arg-type]
    call = (tmp_path / "call").read_text()
    assert call.startswith("old rebuild") and ("--run-ended" in call) == is_over_for_certain, call


def test_signs_of_life_decide_on_another_machine(prefix: Path) -> None:
    with StateFile(str(prefix)) as state:
        state.write(Account(job="far"))
    path = prefix / ".cairn" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "kernel": "another"}))
    found = read_state(str(prefix))
    assert found and found["alive"]
    os.utime(path, (time.time() - 60,) * 2)
    found = read_state(str(prefix))
    assert found and not found["alive"]
