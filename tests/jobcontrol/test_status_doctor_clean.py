"""The commands around a job: they tell the truth, and remove nothing that lives."""

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Dict, List, Optional, Tuple

import pytest

from cairn.account import Account
from cairn.commands import clean, doctor, status
from cairn.job_log import NOT_PROTECTED
from cairn.resources import local
from cairn.resources.local import SimulatedNodes
from cairn.roles import Answer
from cairn.state_file import StateFile
from jobs import Job, environment_of, launcher_of
from stand_ins import put_on_path


def call(cairn: Path, folder: Path, *words: object, **settings: str) -> Tuple[int, str, str]:
    done = subprocess.run([cairn, *map(str, words)], cwd=folder, env=environment_of(settings), text=True, timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr


# ---- status ----


@pytest.mark.parametrize("place, usable, shown", [
    ("cache", False, "in /c, but TEXT"), ("prefix", False, "in the prefix directory, but TEXT"),
    ("scavenged", False, "TEXT"), ("unfinished flush", True, "TEXT"), ("cache", True, "in /c"),
])
def test_status_names_each_place_of_a_checkpoint_once(place: str, usable: bool, shown: str) -> None:
    """The text of some places has their name."""
    one = {"name": "a", "place": place, "usable": usable, "text": "TEXT"}
    assert status.places_of("a", {"caches": ["/c"], "datasets": [one]}) == shown


def test_status_says_that_a_dataset_is_only_written() -> None:
    one = {"name": "a", "place": "cache", "usable": True, "only_written": True, "text": "TEXT"}
    assert status.places_of("a", {"caches": ["/c"], "datasets": [one]}) == f"in /c, {NOT_PROTECTED}"


def test_status_of_a_live_job_and_of_one_that_is_over(cairn: Path, tmp_path: Path, first_flavour: str,
                                                      program_of: Dict[str, str]) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "4", "--spares", "2", "--runs", "2", "--kill-node", "n1@checkpoint:1"],
              [launcher_of(first_flavour), "-n", "4", program_of[first_flavour], "--size", "1", "--every", "2",
               "--steps", "100000"])
    job.until_halted("RESTART_SUCCESS")
    job.until_halted("CHECKPOINT_END", 3)
    code, output, _ = call(cairn, tmp_path, "status", "--json")
    live = json.loads(output)
    assert code == 0 and live["alive"] and live["outcome"] == ""
    assert [run["failed"] for run in live["runs"]] == [True, False]
    assert live["spares_left"] == 1 and list(live["unfit"]) == ["n1"]
    assert re.fullmatch(r"in /.*/%n by XOR over sets of 4", live["checkpoint"]["protection"]), live
    assert 0 <= live["checkpoint"]["age_s"] < 30
    assert live["checkpoint"]["cost_s"] > 0 and live["lost_s"] > 0
    assert "run 1 died: lost n1" in call(cairn, tmp_path, "status")[1]
    job.send(signal.SIGTERM)
    assert job.wait().code == 3
    over = json.loads(call(cairn, tmp_path.parent, "status", "-p", tmp_path, "--json")[1])
    assert not over["alive"] and over["outcome"] == "halted"
    code, output, printed = call(cairn, tmp_path, "report", "--metrics", "figures")
    assert (code, output, printed) == (0, "report.html: 2 runs of 1 job\n", "")
    figures = (tmp_path / "figures").read_text()
    assert 'end="died"} 1\n' in figures and 'end="halted"} 1\n' in figures
    # A node that dies between the commit of one checkpoint and the removal of the one before leaves two.
    assert re.search(r'operation="rebuild",result="success"} [12]\n', figures)


def test_status_of_a_job_without_a_cache(cairn: Path, tmp_path: Path, first_flavour: str,
                                         program_of: Dict[str, str]) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "2"],
              [launcher_of(first_flavour), "-n", "2", program_of[first_flavour], "--size", "1", "--every", "2", "--steps", "4"],
              {"SCR_CACHE_BYPASS": "1"})
    outcome = job.wait()
    assert outcome.code == 0 and "to cache" not in outcome.printed, outcome
    assert re.search("to prefix +2 times, 4 MiB in", outcome.printed), outcome.printed
    status = json.loads(call(cairn, tmp_path, "status", "--json")[1])
    assert status["checkpoint"]["protection"] == "in the prefix directory"
    assert status["checkpoints"] == 2 and status["mean_cost_s"] > 0
    (tmp_path / ".cairn" / "halt").write_bytes(b"no halt file")
    code, output, printed = call(cairn, tmp_path, "status")
    assert code == 0 and re.search(r"to stop +is not known: .*halt", output), output + printed


def test_status_where_there_is_no_job(cairn: Path, tmp_path: Path) -> None:
    code, output, printed = call(cairn, tmp_path, "status")
    assert (code, output) == (1, "") and "no job has worked in" in printed


def test_status_is_watched_through_a_time_in_which_nothing_can_be_read(cairn: Path, tmp_path: Path) -> None:
    account = Account("local", "mpirun", "watched", ["n0"], 1, begun_s=time.time())
    with StateFile(str(tmp_path)) as state:
        state.write(account)
    watched = subprocess.Popen([cairn, "status", "--interval", "0.1", "--watch", "-p", tmp_path], text=True, cwd=tmp_path.parent,
                               env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watched.stdout and watched.stderr

    def until(printed: IO[str], word: str) -> None:
        assert any(word in line for line in iter(printed.readline, "")), f"{word} is never printed"

    until(watched.stdout, "job         watched in")
    state_file = tmp_path / ".cairn" / "run.json"
    kept = state_file.rename(tmp_path / "kept")
    until(watched.stderr, "no job has worked in")
    kept.write_text(kept.read_text().replace('"watched"', '"again"'))
    kept.rename(state_file)
    until(watched.stdout, "job         again in")
    watched.send_signal(signal.SIGINT)
    assert watched.wait(10) == 0


@pytest.mark.parametrize("words", [["-p", "."], ["--prefix", "."]])
def test_status_takes_the_prefix_directory_in_any_form(cairn: Path, tmp_path: Path, words: "list[str]") -> None:
    with StateFile(str(tmp_path)) as state:
        state.write(Account(job="mine"))
    code, output, printed = call(cairn, tmp_path, "status", *words, SCR_PREFIX="/no/such/folder")
    assert code == 0 and "job         mine in" in output, printed


# ---- clean ----


PREFIX_ID = "0123456789abcdef"


def left_by(cache: Path, user: str, job: str, hours_old: float, prefix_id: str = PREFIX_ID) -> Path:
    folder = cache / user / f"cairn.{job}.{prefix_id}"
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


def test_clean_removes_what_is_old_and_only_when_asked_to(cairn: Path, tmp_path: Path, user: str) -> None:
    old, young = left_by(tmp_path, user, "old", 30), left_by(tmp_path, user, "young", 1)
    other = tmp_path / user / "something else"
    other.mkdir()
    for _ in range(2):  # to look changes nothing
        assert "would be removed" in call(cairn, tmp_path, "clean", "--cache", tmp_path)[1]
    code, output, _ = call(cairn, tmp_path, "clean", "--remove", "--cache", tmp_path)
    assert code == 0 and f"cairn.old.{PREFIX_ID}: 1000 B" in output and "in the last 24 h" in output
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


def test_clean_touches_nothing_of_a_job_that_runs(cairn: Path, tmp_path: Path, first_flavour: str,
                                                  program_of: Dict[str, str]) -> None:
    """By the locks of its ranks, whatever prefix directory is looked at."""
    nodes = tmp_path / "storage" / "nodes"
    job = Job(cairn, tmp_path, ["--nodes", "2", "--storage", str(tmp_path / "storage")],
              [launcher_of(first_flavour), "-n", "2", program_of[first_flavour], "--size", "1", "--every", "2",
               "--steps", "100000"])
    job.until_halted("CHECKPOINT_END", 2)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words in (["--job", "local"], ["--older-than", "0"]):
        code, output, printed = call(cairn, elsewhere, "clean", "--remove", *words, "--cache", nodes / "%n")
        assert code == 0 and output.count("a run of the job is alive") == 2, output + printed
    assert len(list(nodes.glob("*/*/cairn.local.*/lock"))) == 2
    assert [path.read_text() for path in nodes.glob("*/*/cairn.local.*/prefix")] == [str(tmp_path)] * 2
    job.send(signal.SIGTERM)
    outcome = job.wait()
    assert outcome.code == 3, outcome
    assert call(cairn, tmp_path, "clean", "--remove", "--job", "local", "--cache", nodes / "%n")[0] == 0
    assert not list(nodes.glob("*/*/cairn.local.*"))


def test_clean_keeps_what_the_next_launch_needs(cairn: Path, tmp_path: Path, user: str) -> None:
    """Between two runs of a job nobody holds the locks of its caches."""
    folder = left_by(tmp_path, user, "again", 30)
    job = Job(cairn, tmp_path, [], ["mpirun", "-n", "1", "sh", "-c", "touch begun; sleep 60"], {"SCR_JOB_ID": "again"})
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    for words in (["--job", "again"], ["--older-than", "0"]):
        output = call(cairn, tmp_path, "clean", "--remove", *words, "--cache", tmp_path)[1]
        assert "of the job of the cairn run that is active in" in output and folder.exists(), output
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "prefix").write_text(str(tmp_path))  # as the job's runs do
    output = call(cairn, elsewhere, "clean", "--remove", "--job", "again", "--cache", tmp_path)[1]
    assert f"of the job of the cairn run that is active in {tmp_path}" in output and folder.exists(), output
    damaged = tmp_path / "damaged" / ".cairn" / "run.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    (folder / "prefix").write_text(str(tmp_path / "damaged"))
    output = call(cairn, elsewhere, "clean", "--remove", "--job", "again", "--cache", tmp_path)[1]
    assert "kept" in output and str(damaged) in output and folder.exists(), output
    (folder / "prefix").write_text(str(tmp_path))
    job.send(signal.SIGHUP)
    job.wait()
    call(cairn, elsewhere, "clean", "--remove", "--job", "again", "--cache", tmp_path)
    assert not folder.exists()


def test_clean_keeps_the_job_of_this_allocation(cairn: Path, tmp_path: Path, user: str) -> None:
    folder = left_by(tmp_path, user, "42", 300)
    output = call(cairn, tmp_path, "clean", "--remove", "--cache", tmp_path, SLURM_JOB_ID="42")[1]
    assert "of this allocation" in output and folder.exists()


def test_clean_removes_the_caches_of_one_prefix_directory_by_its_id_or_path(cairn: Path, tmp_path: Path, user: str) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for prefix in (mine, other):
        prefix.mkdir()
    call(cairn, mine, "index", "id", PREFIX_ID, SCR_PREFIX=str(mine))
    by_id = left_by(tmp_path, user, "7", 0)
    by_path = left_by(tmp_path, user, "7", 0, "1" * 16)
    (by_path / "prefix").write_text(str(mine))
    kept = left_by(tmp_path, user, "7", 300, "2" * 16)
    (kept / "prefix").write_text(str(other))
    code, output, printed = call(cairn, tmp_path, "clean", "--remove", "--of", mine, "--cache", tmp_path)
    assert code == 0 and "another prefix directory" in output, output + printed
    assert kept.exists() and not by_id.exists() and not by_path.exists()
    call(cairn, tmp_path, "clean", "--remove", "--job", "7", "--cache", tmp_path)
    assert not kept.exists()


def test_clean_keeps_the_cache_of_a_directory_that_was_moved_away(cairn: Path, tmp_path: Path, user: str) -> None:
    old = tmp_path / "old"
    folder = left_by(tmp_path, user, "7", 0)
    (folder / "prefix").write_text(str(old))
    (folder / "prefix.id").write_text(PREFIX_ID)
    for _ in ("nothing is at the old path", "another directory is"):
        code, output, printed = call(cairn, tmp_path, "clean", "--remove", "--of", old, "--cache", tmp_path)
        assert code == 0 and PREFIX_ID in output and "--job" in output, output + printed
        assert folder.exists()
        old.mkdir(exist_ok=True)
    call(cairn, old, "index", "id", PREFIX_ID, SCR_PREFIX=str(old))
    call(cairn, tmp_path, "clean", "--remove", "--of", old, "--cache", tmp_path)
    assert not folder.exists()


def test_clean_of_a_directory_that_no_cache_knows_fails(cairn: Path, tmp_path: Path, user: str) -> None:
    left_by(tmp_path, user, "7", 300)
    code, output, printed = call(cairn, tmp_path, "clean", "--of", "/nosuch", "--cache", tmp_path)
    assert code == 1 and output == "" and "/nosuch" in printed, output + printed


def test_clean_follows_no_links(cairn: Path, tmp_path: Path, user: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").touch()
    cache = tmp_path / "cache"
    (cache / user).mkdir(parents=True)
    (cache / user / f"cairn.9.{PREFIX_ID}").symlink_to(precious)
    folder = left_by(cache, user, "8", 30)
    (folder / "link").symlink_to(precious)
    call(cairn, tmp_path, "clean", "--remove", "--job", "8", "--job", "9", "--cache", cache)
    assert (precious / "data").exists() and not folder.exists()


def test_clean_knows_the_caches_of_simulated_nodes(cairn: Path, tmp_path: Path, user: str) -> None:
    folders = [left_by(tmp_path / "nodes" / node, user, "old", 30) for node in ("n0", "n1")]
    call(cairn, tmp_path, "clean", "--remove", SCR_CACHE_BASE=str(tmp_path / "nodes" / "%n"),
         SCR_CNTL_BASE=str(tmp_path / "nodes" / "%n"))
    assert not any(folder.exists() for folder in folders)


def test_clean_says_the_same_in_json(cairn: Path, tmp_path: Path, user: str) -> None:
    old, new = left_by(tmp_path, user, "old", 30), left_by(tmp_path, user, "new", 1)
    for words, state in (((), "removable"), (("--remove",), "removed")):
        code, output, printed = call(cairn, tmp_path, "clean", "--json", "--cache", tmp_path, *words)
        found = {one["path"]: one for one in json.loads(output)["directories"]}
        assert (code, printed) == (0, "") and found.keys() == {str(old), str(new)}
        assert found[str(old)] == {"path": str(old), "state": state, "why": "", "bytes": 1000}
        assert found[str(new)]["state"] == "kept" and "in the last 24 h" in found[str(new)]["why"]
    assert json.loads(call(cairn, tmp_path, "clean", "--json", "--cache", tmp_path / "gone")[1]) == {"directories": []}


def test_clean_reports_what_it_cannot_remove(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    def fail() -> clean.Outcome:
        raise PermissionError(errno.EACCES, "no right")
    for as_json in (False, True):
        assert not clean.report_outcomes(filter(None, iter([clean.settled(tmp_path, fail)])), as_json)
        output, printed = capsys.readouterr()
        assert printed == f"cairn: error: {tmp_path}: no right\n" and (json.loads(output)["directories"][0]["state"] == "failed" if as_json else not output)


@pytest.mark.parametrize("prefix", [".", "gone"])
def test_doctor_says_the_same_in_json(cairn: Path, tmp_path: Path, prefix: str) -> None:
    code, text, _ = call(cairn, tmp_path, "doctor", "-p", prefix)
    code_json, record, _ = call(cairn, tmp_path, "doctor", "--json", "-p", prefix)
    found = json.loads(record)["findings"]
    lines = [f"{one['level']:<4}  {one['what']}\n" + (f"      -> {one['remedy']}\n" if one["remedy"] else "") for one in found]
    assert code == (1 if prefix == "gone" else 0)
    without_numbers = [re.sub(r"[\d.]+", "0", one) for one in (text, "".join(lines))]
    assert without_numbers[0] == without_numbers[1] and code == code_json and {one["level"] for one in found} <= {"good", "note", "bad"}


def test_clean_looks_into_every_store(cairn: Path, tmp_path: Path, user: str) -> None:
    (tmp_path / ".scrconf").write_text(f"STORE={tmp_path}/ssd COUNT=2\nSTORE={tmp_path}/nodes/%n/disk\n")
    folders = [left_by(tmp_path / cache, user, "old", 30) for cache in ("ssd", "nodes/n0/disk", "nodes/n1/disk")]
    call(cairn, tmp_path, "clean", "--remove")
    assert not any(folder.exists() for folder in folders)


def cleaned(folder: Path, *words: str) -> str:
    """Of simulated nodes in this folder; what is printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        options = clean.parser().parse_args(list(words))
        outcomes = clean.clean_simulated(options, clean.Known(None, str(folder), ""), "ada", [folder])
        assert clean.report_outcomes(outcomes, as_json=False)
    return printed.getvalue()


def test_clean_removes_nodes_that_a_killed_cairn_run_has_simulated(tmp_path: Path) -> None:
    for name in ("dead", "alive", "unlocked"):
        (tmp_path / f"cairn-nodes-{name}" / "nodes" / "n0").mkdir(parents=True)
        if name != "unlocked":
            (tmp_path / f"cairn-nodes-{name}" / "owner").touch()
    (tmp_path / "other").mkdir()
    with (tmp_path / "cairn-nodes-alive" / "owner").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in ((), (), ("--remove",)):
            assert cleaned(tmp_path, *words).count("cairn-nodes-dead") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cairn-nodes-alive", "cairn-nodes-unlocked", "other"]


@pytest.mark.parametrize("words, hours_old, goes", [
    ([], 1, False), ([], 30, True), (["--older-than", "0"], 1, True), (["--job", "sim"], 1, True),
    (["--job", "other"], 30, False)])
def test_clean_keeps_what_simulated_nodes_hold_as_long_as_other_caches(tmp_path: Path, words: List[str], hours_old: float,
                                                                      goes: bool) -> None:
    nodes = tmp_path / "cairn-nodes-dead"
    for node in ("n0", "n1"):
        left_by(nodes / "nodes" / node, "ada", "sim", hours_old)
    (nodes / "owner").touch()
    printed = cleaned(tmp_path, "--remove", *words)
    assert nodes.exists() != goes and str(nodes) in printed, printed


def test_clean_keeps_simulated_nodes_on_which_a_rank_still_runs(tmp_path: Path) -> None:
    folder = left_by(tmp_path / "cairn-nodes-dead" / "nodes" / "n1", "ada", "sim", 30)
    (tmp_path / "cairn-nodes-dead" / "owner").touch()
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "alive" in cleaned(tmp_path, "--remove", "--job", "sim") and folder.exists()
    cleaned(tmp_path, "--remove", "--job", "sim")
    assert not folder.exists()


def test_simulated_nodes_are_not_taken_for_those_of_the_dead() -> None:
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
    ({"PATH": "/nowhere"}, ["no launcher", "load the module"]),
    ({"CAIRN_CHECKPOINT_SIZE": "8000TB"}, ["8e+03 TiB"]),
])
def test_doctor_names_what_is_bad_with_its_remedy(cairn: Path, tmp_path: Path, settings: Dict[str, str],
                                                  words: "list[str]") -> None:
    code, output, _ = call(cairn, tmp_path, "doctor", **settings)
    bad = [line for line in output.splitlines() if line.startswith("bad")]
    assert code == 1 and bad, output
    assert all(word in output for word in words), output
    assert all(after.startswith("      -> ") for line, after in zip(output.splitlines(), output.splitlines()[1:])
               if line.startswith("bad"))


HYDRA = "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: ...\n"
PMI_LISTS = {  # of Slurm 22.05
    "MPI plugin types are...\n\tnone\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n": True,
    "MPI plugin types are...\n\tcray_shasta\n\tnone\n": True,
    "MPI plugin types are...\n\tnone\n": False,
}


def test_doctor_tells_whose_each_launcher_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mpirun", "mpiexec", "flux"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    answers = {"mpirun": Answer(0, "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n"), "mpiexec": Answer(0, HYDRA),
               "flux": Answer(127, "flux: cannot find its library\n")}
    found = list(doctor.check_launchers(lambda words: answers[words[0]]))
    assert [(one.level, one.what) for one in found] == [
        ("note", "launcher flux does not work: flux: cannot find its library"),
        ("good", "launcher mpirun: mpirun (Open MPI) 4.1.4"), ("good", "launcher mpiexec: Hydra of MPICH 4.0.2")]
    answers.update({name: Answer(1, "") for name in ("mpirun", "mpiexec")})
    found = list(doctor.check_launchers(lambda words: answers[words[0]]))
    assert {one.level for one in found} == {"bad"} and all(one.remedy for one in found), found


ROOT_ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI = Answer(0, "mpirun (Open MPI) 4.1.4\n")


@pytest.mark.parametrize("here, mpiexec, levels", [
    (doctor.OpenMpiHere({}, as_root=True), OPEN_MPI, ["bad"]),
    (doctor.OpenMpiHere({}, as_root=True), Answer(0, HYDRA), ["note"]),  # the other one starts programs
    (doctor.OpenMpiHere({}, as_root=True), Answer(1, "broken"), ["bad"]),
    (doctor.OpenMpiHere({"OMPI_ALLOW_RUN_AS_ROOT": "1"}, as_root=True), OPEN_MPI, ["bad"]),
    (doctor.OpenMpiHere(ROOT_ALLOWED, as_root=True), OPEN_MPI, []),
    (doctor.OpenMpiHere({}, ["--allow-run-as-root"], as_root=True), OPEN_MPI, []),
    (doctor.OpenMpiHere({}), OPEN_MPI, []),
    (doctor.OpenMpiHere({}, cores=2), OPEN_MPI, ["note"]),
    (doctor.OpenMpiHere({}, ["--nooversubscribe"], cores=2), OPEN_MPI, ["note"]),
    (doctor.OpenMpiHere({}, ["--oversubscribe"], cores=2), OPEN_MPI, []),
    (doctor.OpenMpiHere({}, ["--map-by", ":OVERSUBSCRIBE"], cores=2), OPEN_MPI, []),
    (doctor.OpenMpiHere({"OMPI_MCA_rmaps_base_oversubscribe": "1"}, cores=2), OPEN_MPI, []),
    (doctor.OpenMpiHere({"OMPI_MCA_rmaps_base_oversubscribe": "false"}, cores=2), OPEN_MPI, ["note"]),
    (doctor.OpenMpiHere({"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}, cores=2), OPEN_MPI, []),
])
def test_doctor_says_what_open_mpi_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: doctor.OpenMpiHere,
                                           mpiexec: Answer, levels: List[str]) -> None:
    """Programs of root, and more ranks than cores."""
    for name in ("mpirun", "mpiexec"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = list(here.check(lambda words: mpiexec if words[0] == "mpiexec" else OPEN_MPI))
    assert [one.level for one in found] == levels and all(one.remedy for one in found), found
    assert all("mpirun" in one.what and ("at most 2" in one.what) == (here.cores == 2) for one in found), found


def test_doctor_says_nothing_of_open_mpi_where_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mpiexec").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not list(doctor.OpenMpiHere({}, as_root=True, cores=2).check(lambda words: Answer(0, HYDRA)))


def test_processors_of_one_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    assert doctor.cores_here(tmp_path) == 2
    assert doctor.cores_here(tmp_path / "none") == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="Open MPI refuses root only")
def test_doctor_calls_a_place_where_root_starts_nothing_not_good(cairn: Path, tmp_path: Path, first_flavour: str) -> None:
    if first_flavour != "openmpi":
        pytest.skip("Open MPI is not here")
    outputs = [call(cairn, tmp_path, "doctor", **{name: value for name in ROOT_ALLOWED})[1] for value in ("0", "1")]
    assert ["OMPI_ALLOW_RUN_AS_ROOT" in output for output in outputs] == [True, False], outputs


def test_doctor_counts_cores_where_no_resource_manager_counts_the_ranks(cairn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                        ) -> None:
    """And no option of the command line allows more."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("OMPI_MCA_rmaps_base_oversubscribe", raising=False)
    (tmp_path / "hosts").write_text("localhost\n")
    pbs = {"PBS_JOBID": "7", "PBS_NODEFILE": str(tmp_path / "hosts")}
    outputs = [call(cairn, tmp_path, "doctor")[1], call(cairn, tmp_path, "doctor", **pbs)[1],
               call(cairn, tmp_path, "doctor", "mpirun", "--oversubscribe", "true")[1]]
    assert ["starts at most" in output for output in outputs] == [True, False, False], outputs


@pytest.mark.parametrize("printed", PMI_LISTS)
def test_doctor_reports_where_srun_starts_each_rank_alone(printed: str) -> None:
    found = list(doctor.check_srun(lambda words: Answer(0, printed)))
    assert len(found) == (0 if PMI_LISTS[printed] else 1), found
    assert not list(doctor.check_srun(lambda words: Answer(1, "it fails"))), "that is printed already"


def test_doctor_tests_the_room_that_folders_must_have(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / ".scrconf").write_text(f"CACHEDIR={tmp_path} BYTES=8000TB\nCNTLDIR={tmp_path} BYTES=1KB\n")
    code, output, _ = call(cairn, tmp_path, "doctor", "--all-nodes")
    assert code == 1 and f"{tmp_path} has " in output and str((8000 << 40) + 1024) in output, output


def test_doctor_looks_at_every_store(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / ".scrconf").write_text(f"STORE=/dev/null/ssd COUNT=2\nSTORE=/dev/null/off ENABLED=0\nSTORE={tmp_path}/ssd\n")
    code, output, _ = call(cairn, tmp_path, "doctor", "--all-nodes", CAIRN_CHECKPOINT_SIZE="1MB")
    assert code == 1 and "cache /dev/null/ssd: /dev/null cannot be written" in output, output
    assert re.search(rf"good  cache {tmp_path}/ssd .* free, room for a checkpoint of [0-9]+ ranks", output), output
    assert "/dev/null/off" not in output
    assert "0 of 1 nodes are fit" in output, output


@pytest.mark.parametrize("free, level", [(8 << 10, "bad"), (64 << 20, "note"), (1 << 40, "good")])
def test_doctor_calls_a_cache_good_only_if_it_has_room(free: int, level: str) -> None:
    assert doctor.check_room("cache /c", free, None, 0).level == level
    assert doctor.check_room("cache /c", free, None, free + 1).level == "bad"
    assert doctor.check_room("cache /c", free, None, free).level == "good"


def test_doctor_calls_a_full_prefix_directory_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=8 << 10))
    assert next(doctor.check_prefix(str(tmp_path))).level == "bad"


def test_doctor_says_that_a_cache_or_prefix_directory_cannot_be_written() -> None:
    for found in (doctor.check_cache("/proc/cache", "n0", 0, None), doctor.check_prefix("/proc")):
        only, = found
        assert only.level == "bad" and "/proc cannot be written" in only.what, "root too, whom access() allows it"


def test_doctor_leaves_nothing_in_the_directories_that_it_tests(tmp_path: Path) -> None:
    assert doctor.why_unwritable(tmp_path) == "" and not list(tmp_path.iterdir())


def test_doctor_compares_a_checkpoint_with_the_memory_of_the_job() -> None:
    if doctor.file_system_of("/dev/shm") != "tmpfs":
        pytest.skip("no memory is mounted at /dev/shm")
    lefts = (1 << 19, 1 << 21, 1 << 59, None)
    findings = {left: list(doctor.check_cache("/dev/shm", "n0", 1 << 20, left)) for left in lefts}
    assert [found[0].level for found in findings.values()] == ["bad", "good", "good", "good"]
    assert "of memory left for the job" in findings[1 << 19][0].what and "ask for more memory" in findings[1 << 19][0].remedy
    assert "room for a checkpoint of 2 ranks" in findings[1 << 21][0].what
    # Wherever there is a limit, the text says that what is in the cache counts.
    assert [any("/dev/shm count as memory" in one.what for one in found) for found in findings.values()] == [True, True, True, False]


def test_doctor_speaks_of_memory_only_where_the_cache_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "file_system_of", lambda path: "xfs")
    found, = doctor.check_cache(str(tmp_path), "n0", 1, 0)
    assert found.level == "good"


def test_doctor_names_what_scr_left_until_a_run_has_imported_it(tmp_path: Path) -> None:
    assert not list(doctor.check_left_by_scr(tmp_path))
    (tmp_path / ".scr").mkdir()
    (tmp_path / ".scr" / "index.scr").write_bytes(b"")
    found, = doctor.check_left_by_scr(tmp_path)
    assert found.level == doctor.NOTE and str(tmp_path) in found.what
    (tmp_path / ".cairn" / "datasets").mkdir(parents=True)
    assert not list(doctor.check_left_by_scr(tmp_path))


def test_doctor_names_what_scr_left_that_it_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    monkeypatch.setattr(Path, "exists", refuses)
    found, = doctor.check_left_by_scr(tmp_path)
    assert found.level == doctor.NOTE and str(tmp_path / ".scr") in found.what and "Permission denied" in found.what


def test_doctor_tries_once_whether_a_directory_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try may have another answer."""
    for check in (lambda: doctor.check_prefix(str(tmp_path)), lambda: doctor.check_cache(str(tmp_path), "n0", 1, None)):
        answers = ["the quota is used up"]
        monkeypatch.setattr(doctor, "why_unwritable", lambda folder, left=answers: left.pop())
        found, = check()
        assert found.level == doctor.BAD and "the quota is used up" in found.what


def test_doctor_tests_the_hosts_that_are_listed(cairn: Path, tmp_path: Path) -> None:
    path = put_on_path(tmp_path)
    for dead, code, words in (("", 0, "2 of 2 nodes are fit"), ("node1", 1, "node1 does not answer to ping")):
        (tmp_path / "dead").write_text(f"{dead}\n")
        returned, output, _ = call(cairn, tmp_path, "doctor", "--all-nodes", SCR_NODELIST="node[0-1]", PATH=path)
        assert returned == code and words in output and "listed hosts: 2 nodes" in output, output


STAT_2 = "anon 10\nfile 700\nshmem 100\ninactive_file 200\nactive_file 400\n"
STAT_1 = "active_file 1\ninactive_file 1\ntotal_inactive_file 200\ntotal_active_file 400\n"


@pytest.mark.parametrize("files, own, left", [
    ({"memory.max": "max", "job/memory.max": "4096", "job/step/memory.max": "max"}, "0::/job/step\n", 4096),
    ({"job/memory.max": "4096", "job/memory.current": "1000", "job/memory.stat": STAT_2}, "0::/job\n", 3696),
    # The step has the lower limit, the job less left.
    ({"job/memory.max": "4096", "job/memory.current": "4000", "job/step/memory.max": "2048", "job/step/memory.current": "5"},
     "0::/job/step\n", 96),
    ({"job/memory.max": "4096", "job/memory.current": "5000"}, "0::/job\n", 0),
    ({"job/memory.max": "max", "job/memory.current": "1000"}, "0::/job\n", None),
    ({"memory/job/memory.limit_in_bytes": "8192", "memory/memory.limit_in_bytes": "9223372036854771712",
      "memory/job/memory.usage_in_bytes": "1600", "memory/job/memory.stat": STAT_1, "memory/memory.usage_in_bytes": "9000"},
     "4:memory:/job\n3:cpu,cpuacct:/\n", 7192),
    ({}, "", None),
])
def test_the_memory_left_is_the_least_of_all_above(tmp_path: Path, files: Dict[str, str], own: str,
                                                   left: Optional[int]) -> None:
    """What is used counts, but for the cache of files, which the kernel gives back; /dev/shm is none of that."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own)
    assert doctor.memory_left(tmp_path, tmp_path / "own") == left


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = "a / ext4 rw 0 0\nb /dev/shm tmpfs rw 0 0\nc /dev devtmpfs rw 0 0\nd /a\\040b xfs rw 0 0\n"
    kinds = {path: doctor.file_system_of(path, mounts) for path in ("/x", "/dev/shm/y", "/dev/shmy", "/a b/c")}
    assert kinds == {"/x": "ext4", "/dev/shm/y": "tmpfs", "/dev/shmy": "devtmpfs", "/a b/c": "xfs"}


def test_what_others_wipe_is_said_to_be_unknown(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node0\nnode1\n")
    output = call(cairn, tmp_path, "doctor", PBS_JOBID="7.server", PBS_NODEFILE=str(tmp_path / "hosts"))[1]
    assert "resource manager pbs: 2 nodes" in output and "at the end of a job" in output, output


def test_what_slurm_wipes_is_reported() -> None:
    said = "JobContainerType        = job_container/tmpfs\nEpilog                  = /etc/slurm/epilog\n"
    assert len(list(doctor.check_slurm_wipes(lambda words: Answer(0, said)))) == 2
    quiet = "JobContainerType        = job_container/none\nEpilog                  = (null)\n"
    assert list(doctor.check_slurm_wipes(lambda words: Answer(0, quiet))) == []
    # Newer ones number them.
    newer = "BurstBufferType         = (null)\nEpilogMsgTime           = 2000 usec\n"
    assert list(doctor.check_slurm_wipes(lambda words: Answer(0, newer))) == []
    found, = doctor.check_slurm_wipes(lambda words: Answer(0, newer + "Epilog[0]               = /etc/slurm/epilog\n"))
    assert "an epilog runs" in found.what
    for answer in (Answer(1, "no"), Answer(0, "")):
        found, = doctor.check_slurm_wipes(lambda words, answer=answer: answer)
        assert "unknown" in found.what, "no answer is not a good one"
