"""Signals to `cairn run`: what they ask of the program, and that nothing of that is left to the next allocation."""

import errno
import json
import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

from cairn.commands import run, status
from cairn.commands.run import on_signals
from cairn.drain import PUBLISHED, UNFINISHED, Drained
from cairn.halt_file import HaltFile
from cairn.job_log import Entry
from cairn.loop import Stop
from cairn.native import Native, Trouble
from cairn.policy import Action, Kind
from cairn.scavenge import Dataset, Result, Saved, Verdict
from cairn.unflushed import Unflushed
from jobs import HEAT, NODES, Job, Outcome, environment_of, heat, launcher_of, shell_job

WAITS = "touch begun; while [ ! -e over ]; do sleep 0.05; done"


def reason_in(cairn: Path, prefix: Path) -> str:
    """Of the halt file."""
    printed = subprocess.run([cairn, "halt", "--list", "--json", "-p", prefix], check=True, text=True, timeout=30,
                          stdout=subprocess.PIPE, env=environment_of()).stdout
    return json.loads(printed)["prefixes"][0]["reason"] or ""


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_leads_to_a_checkpoint_and_the_next_allocation_goes_on(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], number: int) -> None:
    """As resource managers send it some time before they end the job; SIGUSR2 is LSF's."""
    settings = {"SCR_FLUSH": "1000"}  # so that the last one is copied at the end
    job = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100000, settings=settings)
    job.until_halted("CHECKPOINT_END")
    job.send(number)
    halted = job.wait()
    assert halted.code == 3, halted
    assert signal.Signals(number).name in halted.printed and len(halted.steps("end")) == 1
    assert "scavenge" not in halted.printed, "all is in the prefix directory"
    reached = halted.steps("end")[0]
    assert 4 <= reached < 100000
    under_way = re.findall(r"still under way: the cop(?:y|ies) of .*?\(dataset (\d+)\)", halted.printed)
    assert set(under_way) <= {str(reached // 4)}, "only the last one is copied, at the end"
    # Other nodes, and nothing in the way of going on.
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, reached + 4, settings=settings).wait()
    assert done.code == 0 and done.steps("start") == [reached], done


ASKS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)


@pytest.mark.parametrize("number", ASKS)
def test_the_first_asks_and_the_second_ends(number: int) -> None:
    """LSF's bkill begins with SIGINT."""
    stop = Stop()
    with on_signals(stop, has_keyboard=False):
        os.kill(os.getpid(), number)
        assert stop.asked == f"{signal.Signals(number).name} was received" and not stop.now
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.now == "SIGTERM was received"


@pytest.mark.parametrize("number, has_keyboard, at_once", [
    (signal.SIGINT, True, True), (signal.SIGHUP, True, True), (signal.SIGHUP, False, True), (signal.SIGTERM, True, False)])
def test_what_ends_at_once(number: int, has_keyboard: bool, at_once: bool) -> None:
    stop = Stop()
    with on_signals(stop, has_keyboard):
        os.kill(os.getpid(), number)
    assert bool(stop.now) == at_once and bool(stop.asked) != at_once


def test_the_keyboard_ends_a_run_at_once(cairn: Path, tmp_path: Path, first_flavour: str) -> None:
    keyboard, terminal = pty.openpty()
    job = Job(cairn, tmp_path, ["--nodes", "2"],
              [launcher_of(first_flavour), "-n", "2", "sh", "-c", "touch begun; sleep 600"], stdin=terminal)
    job.until((tmp_path / "begun").exists)
    job.send(signal.SIGINT)
    done = job.wait(20)
    os.close(keyboard)
    os.close(terminal)
    assert done.code == 3 and "SIGINT" in done.printed and "is asked to stop" not in done.printed, done
    assert "--storage" in done.printed and "cairn scavenge saves" not in done.printed, "the simulated nodes are deleted"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_it_was_started_to_ignore_it_ignores(cairn: Path, tmp_path: Path, mpirun: str, number: int) -> None:
    """nohup; a shell script that puts it into the background."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        job = Job(cairn, tmp_path, ["--nodes", "2"], [mpirun, "-n", "2", "sh", "-c", WAITS])
    finally:
        signal.signal(number, before)
    job.until((tmp_path / "begun").exists)
    job.send(number)
    time.sleep(0.3)
    (tmp_path / "over").touch()
    done = job.wait()
    assert done.code == 0 and "was received" not in done.printed, done


def test_a_signalled_job_that_is_killed_then_does_not_stop_the_next_allocation(
        cairn: Path, tmp_path: Path, mpirun: str) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "2", "--storage", str(tmp_path / "storage")], [mpirun, "-n", "2", "sh", "-c", WAITS])
    job.until((tmp_path / "begun").exists)
    job.send(signal.SIGUSR1)
    job.until(lambda: reason_in(cairn, tmp_path) == "SIGNAL_RECEIVED")
    job.send(signal.SIGKILL)
    (tmp_path / "over").touch()
    job.wait()
    assert reason_in(cairn, tmp_path) == "SIGNAL_RECEIVED", "nobody is left to take it back"
    done = shell_job(cairn, tmp_path, mpirun, f"{cairn} halt --list; touch launched")
    assert done.code == 0 and (tmp_path / "launched").exists(), done
    assert "nothing stops the" in done.output and "was killed" in done.printed, done
    assert reason_in(cairn, tmp_path) == ""


def test_what_the_user_asks_for_after_a_signal_stays(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "2"], [mpirun, "-n", "2", "sh", "-c", WAITS])
    job.until((tmp_path / "begun").exists)
    job.send(signal.SIGTERM)
    job.until(lambda: reason_in(cairn, tmp_path) == "SIGNAL_RECEIVED")
    subprocess.run([cairn, "halt", "-p", tmp_path], check=True, stdout=subprocess.DEVNULL, timeout=30, env=environment_of())
    (tmp_path / "over").touch()
    assert job.wait().code == 3 and reason_in(cairn, tmp_path) == "JOB_HALTED"
    assert shell_job(cairn, tmp_path, mpirun, "exit 0").code == 3


def test_a_signal_between_the_launch_and_scr_init_is_not_lost(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """Though the halt file holds the word of a run that has come to its end, which SCR_Init takes back."""
    assert heat(cairn, tmp_path, first_flavour, program_of, NODES, 4).wait().code == 0
    assert reason_in(cairn, tmp_path) == "SCR_FINALIZE_CALLED"
    job = Job(cairn, tmp_path, NODES, [launcher_of(first_flavour), "-n", "4", "sh", "-c", f'{WAITS}; exec "$@"', "sh",
                                       program_of[first_flavour], *HEAT, "--steps", "1000000"])
    job.until((tmp_path / "begun").exists)
    job.send(signal.SIGTERM)
    with suppress(AssertionError):
        job.until(lambda: reason_in(cairn, tmp_path) == "SIGNAL_RECEIVED", timeout_s=5)
    (tmp_path / "over").touch()
    done = job.wait(20)
    assert done.code == 3 and done.steps("end")[0] < 1000000, done
    assert reason_in(cairn, tmp_path) != "SIGNAL_RECEIVED"


def published(folder: Path) -> List[str]:
    """The names of the datasets in the prefix directory."""
    return [path.name for path in folder.glob(".cairn/datasets/dataset.*")]


def unfinished(folder: Path) -> List[Path]:
    return list(folder.glob(".cairn/epoch.*/dataset.*/dataset"))


def signalled_while_it_copies(cairn: Path, folder: Path, flavour: str, programs: Dict[str, str],
                              **settings: str) -> Outcome:
    """As by #SBATCH --signal=B:TERM@N."""
    job = heat(cairn, folder, flavour, programs, NODES, 1000000, settings={
        "SCR_FLUSH": "1", "SCR_FLUSH_ASYNC": "1", "SCR_FLUSH_ASYNC_BW": "200000", **settings})
    job.until(lambda: bool(unfinished(folder)), timeout_s=60)
    job.send(signal.SIGTERM)
    return job.wait()


def test_after_a_signal_what_is_in_flight_is_finished_first(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    done = signalled_while_it_copies(cairn, tmp_path, first_flavour, program_of)
    assert done.code == 3 and "SIGTERM" in done.printed, done
    under_way = re.findall(r"^cairn run: still under way: the cop(?:y|ies) of (.*); so far", done.printed, re.MULTILINE)
    named = re.findall(r"\(dataset (\d+)\)", " ".join(under_way))
    assert named and len(named) == len(set(named)), done
    assert not unfinished(tmp_path) and not list(tmp_path.rglob(".cairn.*"))
    numbers = sorted(int(name.split(".")[1]) for name in published(tmp_path))
    assert numbers[0] == 1 and numbers[-1] == done.steps("end")[0] // 4, (numbers, done)
    assert "not finished" not in done.output + done.printed


def test_after_a_signal_the_nodes_finish_what_the_program_has_left(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    done = signalled_while_it_copies(cairn, tmp_path, first_flavour, program_of, CAIRN_FLUSH_AT_END="leave",
                                     SCR_FLUSH_ASYNC_BW="1000")
    left = re.search(r"CAIRN_FLUSH_AT_END=leave: not finished: the cop(?:y|ies) of (.*) to ", done.printed + done.output)
    assert done.code == 3 and left, done
    finished = set(re.findall(r"\(dataset (\d+)\) is now in the prefix directory: the nodes have finished", done.printed))
    assert set(re.findall(r"dataset (\d+)", left[1])) == finished, done
    assert not unfinished(tmp_path) and not list(tmp_path.rglob(".cairn.*")), "files have their own names"
    newest = done.steps("end")[0] // 4
    assert str(newest) in [name.split(".")[1] for name in published(tmp_path)], done


def leaves_a_copy(cairn: Path, folder: Path, flavour: str, programs: Dict[str, str], then: str, *options: str) -> Outcome:
    """The program ends well and leaves its copy unfinished; then its processes do `then`."""
    settings = {"SCR_FLUSH": "1", "SCR_FLUSH_ASYNC": "1", "SCR_FLUSH_ASYNC_BW": "1000", "CAIRN_FLUSH_AT_END": "leave"}
    command = [launcher_of(flavour), "-n", "4", "sh", "-c", f'"$@"; code=$?; {then}; exit $code', "sh", programs[flavour],
               *HEAT, "--steps", "4", "--output", str(folder / "result")]
    return Job(cairn, folder, ["--nodes", "4", "--storage", str(folder / "storage"), *options], command, settings).wait()


@pytest.mark.parametrize("option", ["--runs=1", "--no-scavenge"])
def test_a_copy_that_was_left_and_is_lost_with_its_nodes_is_named(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], option: str) -> None:
    done = leaves_a_copy(cairn, tmp_path, first_flavour, program_of, f'rm -rf "{tmp_path}/storage/nodes"', option)
    assert done.code == 1 and unfinished(tmp_path) and not published(tmp_path), done
    assert re.search(r"^cairn run: scavenge     .*not finished", done.printed, re.MULTILINE), done


# When cairn run has read of the copy in the log: another directory takes the place of the prefix directory, as where a file
# system is unmounted; or no node answers, and the copy has no plan, as where it waits for its turn.
UNMOUNTED, SILENT = "mkdir gone && mv .cairn gone", "rm -rf storage/nodes .cairn/epoch.*/dataset.*"


@pytest.mark.parametrize("option", ["--runs=1", "--no-scavenge"])
@pytest.mark.parametrize("then", [UNMOUNTED, SILENT])
def test_a_job_whose_copy_does_not_come_has_not_succeeded(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], option: str, then: str) -> None:
    done = leaves_a_copy(cairn, tmp_path, first_flavour, program_of, f"sleep 1; {then}", option)
    missing = r"not in the prefix directory: \S+ \(dataset 1\)"
    assert done.code == 1, done
    assert re.search(rf"^cairn run: failed: the program called SCR_Finalize, .* {missing}$", done.printed, re.MULTILINE), done
    assert re.search(rf"^cairn run: scavenge     .*{missing}; cairn scavenge tries again", done.printed, re.MULTILINE), done
    assert then == SILENT or list((tmp_path / "storage").rglob("dataset.*")), "the caches keep it"


@pytest.mark.parametrize("then", [
    ":", "rm -rf .cairn/epoch.*/dataset.*",
    "mkdir once && CAIRN_LOG_JSON=0 {cairn} drain -p . --storage storage"], ids=["drained", "scavenged", "there"])
def test_a_job_whose_copy_comes_after_its_end_has_succeeded(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], then: str) -> None:
    """The nodes finish it, or they make it once more without its plan, or others have done so unnoticed."""
    done = leaves_a_copy(cairn, tmp_path, first_flavour, program_of, f"sleep 1; {then.format(cairn=cairn)}")
    assert done.code == 0 and len(published(tmp_path)) == 1 and not unfinished(tmp_path), done
    assert "not in the prefix directory" not in done.printed, done


def test_without_a_scavenge_the_nodes_finish_what_the_program_has_left(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    done = leaves_a_copy(cairn, tmp_path, first_flavour, program_of, ":", "--no-scavenge")
    assert done.code == 0 and len(published(tmp_path)) == 1 and not unfinished(tmp_path), done
    assert not list(tmp_path.rglob(".cairn.*")), "files have their own names"
    assert "cairn run: scavenge" not in done.printed, done


def test_what_could_not_be_finished_in_time_is_named(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    end_s = int(time.time()) + 20
    done = signalled_while_it_copies(cairn, tmp_path, first_flavour, program_of, SCR_END_TIME=str(end_s),
                                     CAIRN_FLUSH_BANDWIDTH="1000", SCR_FLUSH_ASYNC_BW="1000")
    assert time.time() < end_s and done.code == 3, done
    left = re.search(r"not finished: the cop(?:y|ies) of (.*) to ", done.printed + done.output)
    assert left and "dataset 1 " in left[1], done
    assert re.search(r"the copy of .*dataset 1|\(dataset 1\): its copy is not finished", done.printed), done
    assert unfinished(tmp_path) and not published(tmp_path)


@pytest.mark.parametrize("numbers, option", [
    ([signal.SIGHUP], "--runs=1"), ([signal.SIGHUP], "--no-scavenge"), ([signal.SIGTERM, signal.SIGTERM], "--runs=1")])
def test_what_is_in_flight_is_named_if_a_signal_ends_the_run_at_once(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], numbers: List[int], option: str) -> None:
    """SCR_Finalize waits for two copies. Of the second, which waits for its turn, only the log knows."""
    job = heat(cairn, tmp_path, first_flavour, program_of, [*NODES, option], 8, settings={
        "SCR_FLUSH": "1", "SCR_FLUSH_ASYNC": "1", "CAIRN_FLUSH_BANDWIDTH": "1000"})
    job.until_halted("ASYNC_FLUSH_START", 2, timeout_s=60)
    job.until(lambda: bool(unfinished(tmp_path)), timeout_s=60)
    for number in numbers:
        job.send(number)
        with suppress(AssertionError):  # two signals at the same time may come as one
            job.until(lambda: reason_in(cairn, tmp_path) == "SIGNAL_RECEIVED", timeout_s=1)
    done = job.wait()
    left = re.search(r"^cairn run: scavenge +skipped, because SIG(?:HUP|TERM) was received; not finished: the cop(?:y|ies) of (.*); ",
                     done.printed, re.MULTILINE)
    assert done.code == 3 and left, done
    planned = [path.parent.name.split(".")[1] for path in unfinished(tmp_path)]
    assert planned == ["1"] and re.findall(r"\(dataset (\d+)\)", left[1]) == ["1", "2"], (planned, done)


class Plans:
    """In place of the native command: the copies that have a plan in the prefix directory."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def unfinished_copies(self, patience_s: float) -> List[Dict[str, Any]]:
        if not self._numbers:
            raise Trouble("the prefix directory does not answer")
        return [{"number": number, "name": f"d.{number}"} for number in self._numbers]


def two_in_flight() -> Unflushed:
    unflushed = Unflushed()
    for number in (1, 2, 3):
        unflushed.add(Entry("CHECKPOINT_END", 10.0 * number, number, f"d.{number}", to="/ssd", scheme="XOR"))
        unflushed.add(Entry("ASYNC_FLUSH_START", 10.0 * number + 1, number, f"d.{number}"))
    unflushed.add(Entry("ASYNC_FLUSH_SUCCESS", 40.0, 1, "d.1"))
    unflushed.add(Entry("CHECKPOINT_END", 50.0, 4, "d.4", to="/ssd", scheme="XOR"))
    return unflushed


@pytest.mark.parametrize("native, planned", [(Plans(2, 7), {2: "d.2 (dataset 2)", 7: "d.7 (dataset 7)"}), (Plans(), {})])
def test_plans_that_cannot_be_read_are_none(native: Any, planned: Dict[int, str]) -> None:
    assert run.planned_copies(native) == planned


def test_a_prefix_directory_that_hangs_is_not_waited_for_long(
        cairn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm kills a job 30 s after the signal, and nobody watches the run meanwhile."""
    (tmp_path / ".cairn" / "datasets").mkdir(parents=True)
    native = Native(cairn, str(tmp_path), environment_of())
    waited_s: List[float] = []

    def hangs(command: Any, timeout: float, **_: Any) -> Any:
        waited_s.append(timeout)
        raise subprocess.TimeoutExpired(command, timeout)
    monkeypatch.setattr(subprocess, "run", hangs)
    monkeypatch.setattr(os, "stat", lambda path, **_: pytest.fail(f"this process looks at {path}, which may hang"))
    assert not HaltFile(native, lambda line: None).ask_to_stop() and run.planned_copies(native) == {}
    assert len(waited_s) == 2 and max(waited_s) <= 10


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_prefix_directory_that_fails_has_no_plans_and_ends_nothing(
        cairn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    native = Native(cairn, str(tmp_path), environment_of())
    stat = os.stat

    def fails(path: Any, **how: Any) -> os.stat_result:
        if str(path).endswith("/.cairn/datasets"):
            raise OSError(number, os.strerror(number))
        return stat(path, **how)
    monkeypatch.setattr(os, "stat", fails)
    assert run.planned_copies(native) == {} and status.copies_of(native) == []
    with pytest.raises(Trouble, match=os.strerror(number)):
        status.state_of(native, native.job())


@pytest.mark.parametrize("at_end", ["scavenge_at_end", "drain_at_end"])
def test_what_is_skipped_names_what_is_in_flight(at_end: str) -> None:
    """By the log alone: the prefix directory may not answer before this process is killed."""
    work: Any = SimpleNamespace(unflushed=two_in_flight())
    native: Any = SimpleNamespace(settings={"SCR_ENABLE": "1"})
    nothing: Any = None
    stop = Stop(now="SIGHUP was received")
    done = (run.drain_at_end(work, native, nothing, nothing, stop, nothing) if at_end == "drain_at_end" else
            run.scavenge_at_end(work, native, nothing, nothing, stop, False, nothing, nothing))
    named = "not finished: the copies of d.2 (dataset 2), d.3 (dataset 3)"
    assert done.startswith(f"skipped, because SIGHUP was received; {named}; cairn "), done


@pytest.mark.parametrize("kind, code, reason", [
    (Kind.SUCCESS, Kind.FAILED, "it ended, but what it left to copy is not in the prefix directory: d.2 (dataset 2); {lost}"),
    (Kind.HALTED, Kind.HALTED, "it ended; {lost}")])
def test_a_job_that_has_lost_a_dataset_has_not_succeeded(kind: Kind, code: Kind, reason: str) -> None:
    unflushed = Unflushed()
    for number, what in ((1, "ASYNC_FLUSH_FAIL"), (2, "ASYNC_FLUSH_STOP")):
        unflushed.add(Entry("OUTPUT_END", 10.0, number, f"d.{number}", to="/ssd", scheme="XOR"))
        unflushed.add(Entry("ASYNC_FLUSH_START", 11.0, number, f"d.{number}"))
        unflushed.add(Entry(what, 12.0, number, f"d.{number}"))
    work: Any = SimpleNamespace(unflushed=unflushed)
    unflushed.add(Entry("LOST", 13.0, 1, "d.1", output=True))
    done = run.with_left(work, Action(kind, "it ended"))
    assert done == Action(code, reason.format(lost="lost before the copy to the prefix directory: d.1 (dataset 1)"))
    unflushed.note_in_prefix([(2, "d.2")])
    assert run.with_left(work, Action(Kind.SUCCESS, "it ended")) == Action(
        Kind.FAILED, "it ended, but lost before the copy to the prefix directory: d.1 (dataset 1)")
    unflushed.note_in_prefix([(1, "d.1")])
    unflushed.add(Entry("LOST", 14.0, 1, "d.2", output=True))  # written again as dataset 2
    assert run.with_left(work, Action(Kind.SUCCESS, "it ended")) == Action(Kind.SUCCESS, "it ended")


@pytest.mark.parametrize("lost, later", [(1, ""), (2, f"; {run.TRIES_AGAIN}")])
def test_nothing_tries_again_to_save_what_is_lost(monkeypatch: pytest.MonkeyPatch, lost: int, later: str) -> None:
    """The caches have what is left of it still, and the scavenge at the end has tried."""
    output = Dataset(1, "u1", "d.1", False, True, 8, False)
    result = Result({}, ["n0"], [Saved(output, Verdict.FAILED, "failed", "too few parts", {})], listed=1, complete=1)
    monkeypatch.setattr(run, "Scavenge", lambda *_: SimpleNamespace(run=lambda *_: result))
    monkeypatch.setattr(run, "settings_on_nodes", lambda *_: {})
    monkeypatch.setattr(run, "down_of", lambda *_: {})
    unflushed = Unflushed()
    unflushed.add(Entry("LOST", 13.0, lost, f"d.{lost}", output=True))
    work: Any = SimpleNamespace(unflushed=unflushed, account=SimpleNamespace(nodes=["n0"], job="7", runs=[]),
                                progress=SimpleNamespace(finalized=True))
    native: Any = SimpleNamespace(settings={"SCR_ENABLE": "1", "SCR_FLUSH": "1"})
    manager: Any = SimpleNamespace(remote=lambda: None)
    plan: Any = SimpleNamespace(end_time=lambda: None)
    nothing: Any = None
    text = run.scavenge_at_end(work, native, manager, plan, Stop(), True, nothing, nothing)
    assert text == f"d.1 failed{later}"


def text_of_drain(monkeypatch: pytest.MonkeyPatch, drained: List[Drained], *log: Entry) -> str:
    """What is left at the end of a job."""
    monkeypatch.setattr(run, "drain_of", lambda *_: SimpleNamespace(run=lambda _: drained, give_names=lambda _: None))
    monkeypatch.setattr(run, "down_of", lambda *_: {})
    unflushed = Unflushed()
    for entry in log:
        unflushed.add(entry)
    work: Any = SimpleNamespace(unflushed=unflushed, account=SimpleNamespace(nodes=["n0"], job="7"))
    native: Any = SimpleNamespace(settings={"SCR_ENABLE": "1"})
    nothing: Any = None
    return run.drain_at_end(work, native, nothing, nothing, Stop(), nothing)


def test_an_output_whose_copy_the_nodes_cannot_finish_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the log does not say so."""
    drained = [Drained(number, f"u{number}", f"d.{number}", UNFINISHED, "no part", number == 1) for number in (1, 2)]
    text = text_of_drain(monkeypatch, drained)
    assert text == ("d.1 not finished: no part; d.2 not finished: no part; not in the prefix directory: d.1 (dataset 1); "
                    f"{run.TRIES_AGAIN}")


@pytest.mark.parametrize("older, newer, left", [
    (PUBLISHED, UNFINISHED, f"d.1 not finished: no part; not in the prefix directory: d.1 (dataset 1); {run.TRIES_AGAIN}"),
    (UNFINISHED, PUBLISHED, "")])
def test_of_two_copies_of_one_number_and_name_the_newer_one_counts(
        monkeypatch: pytest.MonkeyPatch, older: str, newer: str, left: str) -> None:
    drained = [Drained(1, uuid, "d.1", outcome, "no part", True) for uuid, outcome in (("01", older), ("09", newer))]
    log = [Entry("OUTPUT_END", 10.0, 1, "d.1", to="/ssd", scheme="XOR", output=True), Entry("ASYNC_FLUSH_START", 11.0, 1, "d.1")]
    assert text_of_drain(monkeypatch, drained) == text_of_drain(monkeypatch, drained, *log) == left


@pytest.mark.parametrize("at_end", [run.scavenge_at_end, run.drain_at_end])
def test_what_the_program_has_left_is_named_if_saving_it_fails(at_end: Any) -> None:
    def fails() -> None:
        raise Trouble("the resource manager does not answer")
    unflushed = two_in_flight()
    unflushed.add(Entry("ASYNC_FLUSH_START", 51.0, 4, "d.4"))
    work: Any = SimpleNamespace(unflushed=unflushed, account=SimpleNamespace(nodes=["n0"], job="7", runs=[]))
    native: Any = SimpleNamespace(settings={"SCR_ENABLE": "1"})
    manager: Any = SimpleNamespace(name="slurm", down=lambda nodes: {})
    rest: List[Any] = [None] if at_end is run.drain_at_end else [True, None, None]
    text = at_end(work, native, manager, SimpleNamespace(end_time=fails), Stop(), *rest)
    assert "the resource manager does not answer; not in the prefix directory: d.4 (dataset 4); cairn " in text, text
