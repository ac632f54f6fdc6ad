"""What a resource manager goes on with when the launcher of a run is gone."""

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import pytest

from cairn.launchers.flux_run import FluxRun
from cairn.launchers.mpi import OpenMpi
from cairn.resources import flux as flux_module
from cairn.resources import slurm as slurm_module
from cairn.resources.flux import Flux
from cairn.resources.slurm import Slurm
from cairn.roles import Answer, Ended, ask_here
from jobs import Job
from stand_ins import put_on_path
from test_resources import FLUX, SLURM

FLUX_JOBS = "flux jobs -n -c 100000 -o {id.hex} {state} {name}"
SHOW_STEP = "scontrol --oneliner show step 42"
# What Slurm 22.05.8 has printed of a step, on one line as --oneliner has it; the ids are ours.
STEP = ("StepId=42.{step} UserId=0 StartTime=2026-11-22T19:40:32 TimeLimit=UNLIMITED State=RUNNING Partition=main NodeList=node0 "
        "Nodes=1 CPUs=1 Tasks=1 Name=heat Network=(null) TRES=cpu=1,mem=0,node=1 ResvPorts=(null) CPUFreqReq=Default "
        "Dist=Cyclic SrunHost:Pid={host}:{pid} \n")
HOST = socket.gethostname().partition(".")[0]
STEPS = "".join(STEP.format(step=step, host=host, pid=pid) for step, host, pid in [
    (3, HOST, 7), (4, HOST, 70), (5, "another", 7), (6, HOST, 7)])


class Lists:
    """Answers of a manager that has the jobs or steps until so many looks after they were cancelled."""

    def __init__(self, command: str, listed: str, looks: int) -> None:
        self._command, self._listed, self._looks = command, listed, looks
        self.cancelled: List[str] = []

    def ask(self, words: Sequence[str]) -> Answer:
        line = " ".join(words)
        if line != self._command:
            self.cancelled.append(line)
            return Answer(0, "")
        self._looks -= bool(self.cancelled)
        return Answer(0, self._listed if self._looks >= 0 else "")


def test_a_job_of_flux_is_found_by_its_name_and_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flux_module, "GONE_S", 1.0)
    listed = "0x1 RUN heat\n0x2 RUN heat.12\n0x3 RUN sleep\n0x4 SCHED heat.12\n0x6 RUN a heat.12\n"
    for looks, reported in ((2, ""), (1000, "flux cancel 0x2 0x4")):
        lists = Lists(FLUX_JOBS, listed, looks)
        said = Flux(FLUX, lists.ask).end_leftovers(Ended(7, "heat.12"))
        assert said.endswith(reported) and bool(said) == bool(reported)
        assert lists.cancelled == ["flux cancel 0x2 0x4"]
    lists = Lists(FLUX_JOBS, listed, 0)
    assert Flux(FLUX, lists.ask).end_leftovers(Ended(7, "")) == "" and not lists.cancelled, "another launcher's"


@pytest.mark.parametrize("run, answers, cancelled, reported", [
    (Ended(7, "heat.12", returned_0=True), ["CLEANUP"], [], ""),
    (Ended(7, "heat.12", returned_0=True), [None], [], ""),
    (Ended(7, "heat.12"), ["CLEANUP", "CLEANUP", ""], [], ""),
    (Ended(7, "heat.12"), ["RUN", "CLEANUP", "CLEANUP", ""], ["flux cancel 0x2"], ""),
    (Ended(7, "heat.12"), ["RUN", "CLEANUP"], ["flux cancel 0x2"], "Flux still has processes of the run: flux cancel 0x2"),
], ids=["after a good end", "and Flux is silent", "at its end", "cancelled", "its processes stay"])
def test_a_job_of_flux_at_its_end_is_not_cancelled(run: Ended, answers: List[Optional[str]], cancelled: List[str], reported: str,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """But one that was cancelled is in that state as long as its processes are there, which the next run would meet. After the
    last answer it stays so."""
    monkeypatch.setattr(flux_module, "GONE_S", 1.0)
    asked: List[str] = []

    def ask(words: Sequence[str]) -> Answer:
        asked.append(" ".join(words))
        if asked[-1] != FLUX_JOBS:
            return Answer(0, "")
        state = answers[min(asked.count(FLUX_JOBS), len(answers)) - 1]
        return Answer(1, "") if state is None else Answer(0, f"0x2 {state} heat.12\n" if state else "")
    assert Flux(FLUX, ask).end_leftovers(run) == reported
    assert [line for line in asked if line != FLUX_JOBS] == cancelled
    assert asked.count(FLUX_JOBS) >= len(answers) and (asked == [FLUX_JOBS]) == run.returned_0


@pytest.mark.parametrize("by_force, looks, reported", [
    (True, 2, ""), (True, 1000, "scancel 42.3 42.6"), (False, 1000, "")])
def test_a_step_of_slurm_is_found_by_its_launcher_and_cancelled(by_force: bool, looks: int, reported: str,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said, nor waited for, where a node may be gone: its step stays for minutes."""
    monkeypatch.setattr(slurm_module, "GONE_S", 1.0)
    lists = Lists(SHOW_STEP, STEPS, looks)
    said = Slurm(SLURM, lists.ask).end_leftovers(Ended(7, "", by_force))
    assert said.endswith(reported) and bool(said) == bool(reported) and lists.cancelled == ["scancel 42.3 42.6"]


@pytest.mark.parametrize("text", ["\x1b[1m?? node1 :: \n\n-- 7\n", ""])
def test_what_nobody_understands_cancels_nothing(text: str) -> None:
    for manager in (Flux(FLUX, lambda words: Answer(0, text)), Slurm(SLURM, lambda words: Answer(0, text))):
        assert manager.end_leftovers(Ended(7, "heat.12", True)) == ""


@pytest.mark.parametrize("by_force", [True, False])
def test_a_manager_that_does_not_answer_is_asked_again_and_that_reported(by_force: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (flux_module, slurm_module):
        monkeypatch.setattr(module, "GONE_S", 0.5)
    for kind, listed, reported in ((Flux, "0x2 RUN heat.12\n", "flux jobs"), (Slurm, STEPS, "squeue --steps --jobs=42")):
        answers = iter([Answer(1, listed)] * 2)
        manager = kind({**FLUX, **SLURM}, lambda words, answers=answers, listed=listed: next(answers, Answer(1, listed)))
        said = manager.end_leftovers(Ended(7, "heat.12", by_force))
        assert (said.endswith(reported) and "no answer" in said and not list(answers)) if by_force else said == ""


def test_a_manager_that_answers_late_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_module, "GONE_S", 2.0)
    lists, deaf = Lists(SHOW_STEP, STEPS, 1), iter([True, True])
    manager = Slurm(SLURM, lambda words: Answer(1, "no answer") if next(deaf, False) else lists.ask(words))
    assert manager.end_leftovers(Ended(7, "", True)) == "" and lists.cancelled == ["scancel 42.3 42.6"]


def test_a_job_without_a_step_has_nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scontrol says that, with exit code 1, to its standard output (src/scontrol/info_job.c)."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'Job step 42.4294967294 not found'; exit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(slurm_module, "GONE_S", 0.0)
    assert Slurm(SLURM).end_leftovers(Ended(7, "", True)) == ""


def test_what_a_command_that_fails_has_said_is_heard() -> None:
    assert ask_here(["sh", "-c", "echo oh >&2; echo no; exit 1"]) == Answer(1, "oh\nno\n")


def test_a_run_has_a_name_that_no_other_has() -> None:
    names = {FluxRun().run_name(options, ["/bin/heat"]) for options in ([], [], ["--job-name=mine"], ["--job-name", "mine"])}
    assert len(names) == 4 and sorted(name.partition(".")[0] for name in names) == ["heat", "heat", "mine", "mine"]
    assert OpenMpi().run_name(["--job-name=mine"], ["heat"]) == ""


def lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    return False


def test_a_hung_job_of_flux_is_gone_before_the_next_one_begins(cairn: Path, tmp_path: Path) -> None:
    settings: Dict[str, str] = {"FLUX_URI": "local:///x", "PATH": put_on_path(tmp_path), "SCR_JOB_ID": "1"}
    job = Job(cairn, tmp_path, ["--hung-after", "1", "--runs", "2"],
              ["flux", "run", "-n", "2", "--job-name=mine", "sh", "-c", "sleep 600; true"], settings)
    done = job.wait()
    jobs = [path.read_text().split() for path in (tmp_path / "flux.jobs").iterdir()]
    alive = [int(pid) for pid, _ in jobs if lives(int(pid))]
    for pid in alive:
        os.killpg(pid, signal.SIGKILL)
    assert done.code == 4 and done.printed.count("died: hung") == 2 and len(jobs) == 2, done
    assert (tmp_path / "flux.met").read_text() == "" and not alive
    assert all(name.startswith("mine.") for _, name in jobs) and "goes on" not in done.printed, done.printed
