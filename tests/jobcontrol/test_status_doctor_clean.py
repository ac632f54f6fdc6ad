"""The commands around a job: they tell the truth, and remove nothing that lives."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, Optional, Tuple

import pytest

from cairn.commands import clean, doctor
from cairn.resources import local
from cairn.resources.local import SimulatedNodes
from cairn.roles import Answer
from jobs import Job, environment_of, launcher_of


def call(cairn: Path, folder: Path, *words: object, **settings: str) -> Tuple[int, str, str]:
    done = subprocess.run([cairn, *map(str, words)], cwd=folder, env=environment_of(settings), text=True, timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr


# ---- status ----


def test_status_of_a_live_job_and_of_one_that_is_over(cairn: Path, tmp_path: Path, first_flavour: str,
                                                      program_of: Dict[str, str]) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "4", "--spares", "2", "--runs", "2", "--kill-node", "n1@checkpoint:1"],
              [launcher_of(first_flavour), "-n", "4", program_of[first_flavour], "--size", "1", "--every", "2",
               "--steps", "100000"])
    job.until_logged("RESTART_SUCCESS")
    job.until_logged("CHECKPOINT_END", 3)
    code, output, _ = call(cairn, tmp_path, "status", "--json")
    live = json.loads(output)
    assert code == 0 and live["alive"] and live["outcome"] == ""
    assert [run["failed"] for run in live["runs"]] == [True, False]
    assert live["spares_left"] == 1 and list(live["unfit"]) == ["n1"]
    assert live["checkpoint"]["protection"] == "in the cache" and 0 <= live["checkpoint"]["age_s"] < 30
    assert live["checkpoint"]["cost_s"] > 0 and live["lost_s"] > 0
    assert "run 1 died: lost n1" in call(cairn, tmp_path, "status")[1]
    job.send(signal.SIGTERM)
    assert job.wait().code == 3
    over = json.loads(call(cairn, tmp_path.parent, "status", tmp_path, "--json")[1])
    assert not over["alive"] and over["outcome"] == "halted"
    code, output, told = call(cairn, tmp_path, "report", "--metrics", "figures")
    assert (code, output, told) == (0, "report.html: 2 runs of 1 job\n", "")
    figures = (tmp_path / "figures").read_text()
    assert 'end="died"} 1\n' in figures and 'end="halted"} 1\n' in figures
    # A node that dies between the commit of one checkpoint and the removal of the one before leaves two.
    assert re.search(r'operation="rebuild",result="success"} [12]\n', figures)


def test_status_where_there_is_no_job(cairn: Path, tmp_path: Path) -> None:
    code, output, told = call(cairn, tmp_path, "status")
    assert (code, output) == (1, "") and "no cairn run has worked in" in told


# ---- clean ----


def left_by(cache: Path, user: str, job: str, hours_old: float) -> Path:
    folder = cache / user / f"cairn.{job}"
    (folder / "dataset.1.0" / "rank.0").mkdir(parents=True)
    (folder / "dataset.1.0" / "rank.0" / "record").write_bytes(bytes(1000))
    (folder / "lock").touch()
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (time.time() - hours_old * 3600,) * 2)
    return folder


@pytest.fixture
def user(cairn: Path, tmp_path: Path) -> str:
    settings = json.loads(call(cairn, tmp_path, "config", "--json")[1])["settings"]
    return next(one["value"] for one in settings if one["key"] == "SCR_USER_NAME")


def test_clean_removes_what_is_old_and_only_when_it_is_told(cairn: Path, tmp_path: Path, user: str) -> None:
    old, young = left_by(tmp_path, user, "old", 30), left_by(tmp_path, user, "young", 1)
    other = tmp_path / user / "something else"
    other.mkdir()
    for _ in range(2):  # to look changes nothing
        assert "would be removed" in call(cairn, tmp_path, "clean", "--cache", tmp_path)[1]
    code, output, _ = call(cairn, tmp_path, "clean", "--remove", "--cache", tmp_path)
    assert code == 0 and "cairn.old: 1000 B" in output and "less than 24 h ago" in output
    assert not old.exists() and young.exists() and other.exists()
    call(cairn, tmp_path, "clean", "--remove", "--job", "young", "--cache", tmp_path)
    assert not young.exists()


def test_clean_never_touches_a_live_job(cairn: Path, tmp_path: Path, user: str) -> None:
    folder = left_by(tmp_path, user, "live", 30)
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, output, _ = call(cairn, tmp_path, "clean", "--remove", "--job", "live", "--cache", tmp_path)
        assert code == 0 and "alive" in output and (folder / "dataset.1.0" / "rank.0" / "record").exists()
    call(cairn, tmp_path, "clean", "--remove", "--job", "live", "--cache", tmp_path)
    assert not folder.exists()


def test_clean_keeps_the_job_of_this_allocation(cairn: Path, tmp_path: Path, user: str) -> None:
    folder = left_by(tmp_path, user, "42", 300)
    output = call(cairn, tmp_path, "clean", "--remove", "--cache", tmp_path, SLURM_JOB_ID="42")[1]
    assert "of this allocation" in output and folder.exists()


def test_clean_follows_no_links(cairn: Path, tmp_path: Path, user: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").touch()
    cache = tmp_path / "cache"
    (cache / user).mkdir(parents=True)
    (cache / user / "cairn.9").symlink_to(precious)
    folder = left_by(cache, user, "8", 30)
    (folder / "link").symlink_to(precious)
    call(cairn, tmp_path, "clean", "--remove", "--job", "8", "--job", "9", "--cache", cache)
    assert (precious / "data").exists() and not folder.exists()


def test_clean_knows_the_caches_of_simulated_nodes(cairn: Path, tmp_path: Path, user: str) -> None:
    folders = [left_by(tmp_path / "nodes" / node, user, "old", 30) for node in ("n0", "n1")]
    call(cairn, tmp_path, "clean", "--remove", SCR_CACHE_BASE=str(tmp_path / "nodes" / "%n"),
         SCR_CNTL_BASE=str(tmp_path / "nodes" / "%n"))
    assert not any(folder.exists() for folder in folders)


def test_clean_removes_nodes_that_a_killed_cairn_run_has_simulated(tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cairn-nodes-dead", "cairn-nodes-alive", "cairn-nodes-young", "cairn-nodes-unlocked", "other"):
        (tmp_path / name / "nodes" / "n0").mkdir(parents=True)
        if "unlocked" not in name:
            (tmp_path / name / "owner").touch()
            os.utime(tmp_path / name / "owner", (time.time() - (0 if "young" in name else 100),) * 2)
    lock = (tmp_path / "cairn-nodes-alive" / "owner").open()
    fcntl.flock(lock, fcntl.LOCK_EX)
    for remove in (False, False, True):
        assert clean.clean_simulated(clean.parser().parse_args(["--remove"] if remove else []), [tmp_path])
        assert capsys.readouterr().out.count("cairn-nodes-dead") == 1
    lock.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cairn-nodes-alive", "cairn-nodes-unlocked", "cairn-nodes-young", "other"]


def test_simulated_nodes_are_not_taken_for_those_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "YOUNG_S", -1.0)
    with SimulatedNodes(dict(os.environ), 1, 0) as nodes:
        folder = nodes.storage("n0").parents[1]
        assert folder.name.startswith("cairn-nodes-") and folder not in local.left_by_the_dead([folder.parent])
    assert not folder.exists()


# ---- doctor ----


def test_doctor_finds_a_good_place_good(cairn: Path, tmp_path: Path) -> None:
    code, output, _ = call(cairn, tmp_path, "doctor", "--all-nodes", SCR_JOB_ID="x", SCR_CACHE_BASE=str(tmp_path),
                           SCR_CNTL_BASE=str(tmp_path))
    assert code == 0 and "1 of 1 nodes are fit" in output and "bad" not in output, output


@pytest.mark.parametrize("settings, words", [
    ({"SCR_PREFIX": "/no/such/folder"}, ["/no/such/folder", "SCR_PREFIX"]),
    ({"SCR_CACHE_BASE": "/proc/cache"}, ["/proc", "SCR_CACHE_BASE"]),
    ({"PATH": "/nowhere"}, ["no launcher"]),
    ({"CAIRN_CHECKPOINT_SIZE": "8000TB"}, ["free, and a checkpoint takes"]),
])
def test_doctor_names_what_is_bad_with_its_remedy(cairn: Path, tmp_path: Path, settings: Dict[str, str],
                                                  words: "list[str]") -> None:
    code, output, _ = call(cairn, tmp_path, "doctor", **settings)
    bad = [line for line in output.splitlines() if line.startswith("bad")]
    assert code == 1 and bad, output
    assert all(word in output for word in words), output
    assert all(after.startswith("      -> ") for line, after in zip(output.splitlines(), output.splitlines()[1:])
               if line.startswith("bad"))


def test_doctor_tests_the_room_that_folders_must_have(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / ".scrconf").write_text(f"CACHEDIR={tmp_path} BYTES=8000TB\nCNTLDIR={tmp_path} BYTES=1KB\n")
    code, output, _ = call(cairn, tmp_path, "doctor", "--all-nodes")
    assert code == 1 and f"{tmp_path} has " in output and f"not {(8000 << 40) + 1024}" in output, output


@pytest.mark.parametrize("files, own, limit", [
    ({"memory.max": "max", "job/memory.max": "4096", "job/step/memory.max": "max"}, "0::/job/step\n", 4096),
    ({"job/memory.max": "max"}, "0::/job\n", None),
    ({"memory/job/memory.limit_in_bytes": "8192", "memory/memory.limit_in_bytes": "9223372036854771712"},
     "4:memory:/job\n3:cpu,cpuacct:/\n", 8192),
    ({}, "", None),
])
def test_the_memory_limit_is_the_least_of_all_above(tmp_path: Path, files: Dict[str, str], own: str,
                                                    limit: Optional[int]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own)
    assert doctor.memory_limit(tmp_path, tmp_path / "own") == limit


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = "a / ext4 rw 0 0\nb /dev/shm tmpfs rw 0 0\nc /dev devtmpfs rw 0 0\nd /a\\040b xfs rw 0 0\n"
    kinds = {path: doctor.file_system_of(path, mounts) for path in ("/x", "/dev/shm/y", "/dev/shmy", "/a b/c")}
    assert kinds == {"/x": "ext4", "/dev/shm/y": "tmpfs", "/dev/shmy": "devtmpfs", "/a b/c": "xfs"}


def test_what_slurm_wipes_is_told() -> None:
    said = "JobContainerType        = job_container/tmpfs\nEpilog                  = /etc/slurm/epilog\n"
    assert len(list(doctor.check_slurm_wipes(lambda words: Answer(0, said)))) == 2
    assert list(doctor.check_slurm_wipes(lambda words: Answer(1, "no"))) == []
    quiet = "JobContainerType        = job_container/none\nEpilog                  = (null)\n"
    assert list(doctor.check_slurm_wipes(lambda words: Answer(0, quiet))) == []
