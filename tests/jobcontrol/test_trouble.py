"""What goes wrong around a job, and does not end it; what ends it nevertheless, and what is saved then."""

import errno
import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import pytest

from cairn import loop, node_tests
from cairn.account import Account
from cairn.commands import run
from cairn.commands.for_scripts import EndTime
from cairn.halting import Halt
from cairn.job_log import Entry
from cairn.loop import Job, Plan, Stop
from cairn.native import Native, Trouble
from cairn.policy import Action, Kind, Policy
from cairn.processes import Exit
from cairn.resources.listed import ListedHosts
from cairn.roles import Ended
from cairn.unpublished import Unpublished
from jobs import Job as RealJob
from jobs import environment_of
from production import BEGIN_S, Course, World, check_end

NODES = ["n0", "n1"]
WATCHED = {"SCR_WATCHDOG": "1", "SCR_WATCHDOG_TIMEOUT": "60", "SCR_WATCHDOG_TIMEOUT_PFS": "600"}
HOUR_S = 3600.0
CRASHES = Course(segments=2, segment_s=1.0, dump_s=1.0, mtbf_s=1.0, node_share=0.0)  # some times, with seed 4


@dataclass
class Troubled(World):
    """A world in which the halt file cannot be read, for some calls; None: never."""

    fails: Optional[int] = None
    reason: str = ""
    asked: int = 0
    taken_back: List[str] = field(default_factory=list)

    def _tried(self) -> None:
        if self.fails is None or self.fails > 0:
            self.fails = None if self.fails is None else self.fails - 1
            raise Trouble("/prefix/.cairn/halt is damaged")

    def halt(self) -> Halt:
        self._tried()
        return Halt(reason=self.reason)

    def ask_to_stop(self) -> Halt:
        self.asked += 1
        self._tried()
        self.reason = "SIGNAL_RECEIVED"
        return Halt(reason=self.reason)

    def take_back(self, reason: str) -> Halt:
        self.taken_back.append(reason)
        self.reason = ""
        return Halt()


class Done:
    """A job in a world."""

    def __init__(self, world: Any, stop: Optional[Stop] = None, said: Optional[List[str]] = None, **plan: Any) -> None:
        self.said = [] if said is None else said
        self.account = Account("simulated", "mpirun", "1", NODES, 2, begun_s=BEGIN_S)
        self.plan = Plan(Policy(9, 2, 2, failures_max=9, halt_seconds=plan.pop("halt_seconds", 0)),
                         lambda chosen, left_out, newest, environment: list(chosen),
                         plan.pop("environment", lambda end_s: {}), **plan)
        self.action: Action = Job(self.plan, world, [world], world, world, world, self.account, stop or Stop(),
                                  self.said.append, machine=world, events=world).run()
        check_end(world, self.account, self.plan.policy)

    def count(self, words: str) -> int:
        return sum(words in line for line in self.said)


def course() -> Course:
    return Course(segments=2, segment_s=1.0, dump_s=1.0, mtbf_s=1e12)


def test_a_halt_file_that_cannot_be_read_is_reported_once_and_ends_nothing() -> None:
    done = Done(Troubled(course(), 1, fails=None))
    assert done.action.kind == Kind.SUCCESS, done.action
    assert done.count("is damaged") == 1 and len(done.account.runs) == 1


def test_what_was_read_last_holds() -> None:
    world = Troubled(course(), 1, fails=0, reason="lunch")
    halt_file = loop.HaltFile(world, lambda _: None)  # type: ignore[arg-type]
    assert halt_file.reason() == "lunch"
    world.fails = None
    assert halt_file.look() is None and halt_file.latest().reason == "lunch" and halt_file.reason() == "lunch"
    assert loop.HaltFile(world, lambda _: None).reason() is None  # type: ignore[arg-type]


@dataclass
class Signalled(Troubled):
    """A signal comes when the program has begun."""

    stop: Stop = field(default_factory=Stop)

    def sleep(self, seconds: float) -> None:
        if self.running and not self.stop.asked:
            self.fails, self.stop.asked = 2, "SIGTERM was received"
        if self.reason:  # the program heeds it
            super().sleep(seconds)
        else:
            self.now += seconds


def test_a_wish_to_stop_that_could_not_be_written_is_written_later() -> None:
    world = Signalled(course(), 1, fails=0)
    done = Done(world, world.stop)
    assert world.asked == 3 and world.now - BEGIN_S >= 2 * loop.ASK_AGAIN_S
    assert done.action.kind == Kind.HALTED and done.count("is asked to stop") == 1 == done.count("is damaged")
    assert world.taken_back == ["SIGNAL_RECEIVED"]


def test_what_is_in_flight_is_named_once_when_the_program_is_asked_to_stop() -> None:
    """Also if the request has to be written again; after that this process may be killed at any time."""
    world = Signalled(course(), 1, fails=0)
    done = Done(world, world.stop, planned_copies=lambda: {7: "d.7 (dataset 7)"})
    assert world.asked == 3 and done.count("still under way: the copy of d.7 (dataset 7); ") == 1, done.said
    world = Signalled(course(), 1, fails=0)
    assert Done(world, world.stop).count("under way") == 0


@dataclass
class Copying(Signalled):
    """Two copies are under way then, by the log. The halt file may only answer when there has been a second signal."""

    said: List[str] = field(default_factory=list)
    is_slow: bool = False

    def sleep(self, seconds: float) -> None:
        if self.running and not self.stop.asked:
            for number in (1, 2):
                self.printed.append(Entry("CHECKPOINT_END", self.now, number, f"d.{number}", scheme="XOR"))
                self.printed.append(Entry("ASYNC_FLUSH_START", self.now, number, f"d.{number}"))
        super().sleep(seconds)

    def ask_to_stop(self) -> Halt:
        self.said.append("the halt file is written")
        self.stop.now = "SIGTERM was received" if self.is_slow else ""
        return super().ask_to_stop()

    def planned_copies(self) -> Dict[int, str]:
        self.said.append("the plans are read")
        return {1: "d.1 (dataset 1)", 7: "d.7 (dataset 7)"}


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_the_log_names_is_said_before_the_prefix_directory_is_looked_at(is_slow: bool) -> None:
    """That may not answer before this process is killed. It has the plans of earlier runs too."""
    world = Copying(course(), 1, fails=0, is_slow=is_slow)
    done = Done(world, world.stop, world.said, planned_copies=world.planned_copies)
    of_copies = [line.partition("; so far")[0] for line in done.said if "under way" in line or "plans" in line or "halt file" in line]
    first = ["still under way: the copies of d.1 (dataset 1), d.2 (dataset 2)", "the halt file is written"]
    then = ["the plans are read", "still under way: the copy of d.7 (dataset 7)"]
    assert of_copies[:4] == (first if is_slow else first + then), done.said


class Blind(World):
    """No process can be started that says that a node lives."""

    def heartbeats(self, remote: Any, nodes: Any, silence_s: float) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class GoesBlind(World):
    """Nor later, where one is to be started again."""

    def suspects(self) -> List[str]:
        self.trouble = "there is no ssh"
        return super().suspects()


@pytest.mark.parametrize("world", [Blind, GoesBlind])
def test_without_signs_of_life_a_run_goes_on(world: type) -> None:
    done = Done(world(course(), 1))
    assert done.action.kind == Kind.SUCCESS and done.count("only the launcher") == 1, done.said


class Fuller(World):
    """Node n0 is silent for a while, and is not fit for a launch meanwhile, but lives."""

    tells_loss = False
    rested = 0

    def suspects(self) -> List[str]:
        return ["n0"] if "n0" in self.running and not self.rested else []

    def rest(self, node: str) -> None:
        self.rested += 1

    def unfit(self, nodes: Any) -> Dict[str, str]:
        return {node: "/dev/shm has 5 bytes free, not 6" for node in nodes if node == "n0" and self.launches}


def test_a_silent_node_that_is_only_fuller_than_it_should_be_is_not_lost() -> None:
    world = Fuller(course(), 1)
    done = Done(world)
    assert done.action.kind == Kind.SUCCESS and len(done.account.runs) == 1 == world.rested, done.said
    assert done.account.runs[0].nodes_lost == {}, "nor after the run"
    assert "n0" in done.account.unfit, "another run would not begin there"


class HeardMeanwhile(World):
    """The test of a silent node takes so long that the node is heard again."""

    asked, rested = 0, 0

    def suspects(self) -> List[str]:
        return ["n0"] if self.running and not self.asked else []

    def rest(self, node: str) -> None:
        self.rested += 1

    def unfit(self, nodes: Any) -> Dict[str, str]:
        if not self.launches or self.asked:
            return {}
        self.asked += 1
        return {node: "runs no commands" for node in nodes}


def test_a_node_that_is_heard_again_during_its_test_is_not_lost() -> None:
    world = HeardMeanwhile(course(), 1)
    done = Done(world)
    assert done.action.kind == Kind.SUCCESS and len(done.account.runs) == 1 == world.rested == world.asked, done.said
    assert not done.account.unfit and done.account.runs[0].nodes_lost == {}, done.said


def test_which_tests_tell_that_a_node_is_lost() -> None:
    settings = {"SCR_USER_NAME": "ann", "SCR_JOB_ID": "1", "SCR_CACHE_BASE": "/dev/shm", "SCR_CNTL_BASE": "/dev/shm"}
    tests = node_tests.tests_of(["ping", "echo", "dir_capacity"], ListedHosts({}, "a,b"), ["b"], settings)
    assert {one.name: one.tells_loss for one in tests} == {
        "excluded": True, "resource_manager": True, "kernel": True, "echo": True, "ping": False, "dir_capacity": False}


def test_a_node_whose_kernel_is_silent_is_lost_whatever_the_tests_are(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = ListedHosts({}, "a,b")
    monkeypatch.setattr(manager.remote(), "gone", lambda nodes: {"b"} & set(nodes))
    tests = [one for one in node_tests.tests_of(["none"], manager, [], {}) if one.tells_loss]
    assert node_tests.unfit(tests, ["a", "b"]) == {"b": "its host no longer answers"}


# ---- the end of the allocation ----


@pytest.mark.parametrize("known, halt_seconds, in_file, warnings", [
    (False, 60, None, 1), (False, 0, None, 0), (False, 0, 60, 1), (False, 60, 0, 0), (True, 60, None, 0)])
def test_halt_seconds_are_reported_to_be_idle_where_the_end_is_not_known(
        known: bool, halt_seconds: int, in_file: Optional[int], warnings: int) -> None:
    world = Troubled(CRASHES, 4, fails=0)
    world.halt = lambda: Halt(halt_seconds=in_file)  # type: ignore[method-assign]
    done = Done(world, end_time=lambda: BEGIN_S + HOUR_S if known else None, halt_seconds=halt_seconds)
    assert len(done.account.runs) >= 2 and done.count("SCR_END_TIME") == warnings, done.said


@pytest.mark.parametrize("setting, in_file, launches", [(60, None, 0), (60, 0, 1), (0, 60, 0), (0, None, 1), (60, 10, 1)])
def test_the_seconds_in_the_halt_file_go_before_the_setting(setting: int, in_file: Optional[int], launches: int) -> None:
    world = World(course(), 1)
    world.halt = lambda: Halt(halt_seconds=in_file)  # type: ignore[method-assign]
    done = Done(world, end_time=lambda: BEGIN_S + 30, halt_seconds=setting)
    assert world.launches == launches and (done.action.kind == Kind.HALTED) == (not launches), done.action


def test_the_end_is_asked_for_again_until_it_is_known() -> None:
    """One squeue that failed at the start is no reason to compute until the end."""
    answers, given = [None, None, BEGIN_S + HOUR_S], []

    class Manager:
        def seconds_left(self, now_s: float) -> Optional[float]:
            return answers.pop(0) and HOUR_S

    class Settings:
        def number(self, key: str) -> None:
            return None
    end = EndTime(Settings(), Manager())  # type: ignore[arg-type]
    world = World(CRASHES, 4)
    launch = world.launch
    world.launch = lambda command, environment: given.append(environment) or launch(  # type: ignore[method-assign]
        command, environment)
    Done(world, end_time=end.ask, environment=lambda end_s: {"known": str(end_s is not None)})
    assert [one["known"] for one in given[:3]] == ["False", "False", "True"] and not answers


@dataclass
class Leaves(World):
    """The launcher ends so at once; None: it hangs."""

    ends: Optional[Exit] = None
    leftovers: List[Ended] = field(default_factory=list)  # that were asked for

    def launch(self, command: Any, environment: Any) -> Any:
        launched = super().launch(command, environment)
        self._exit = self.ends
        return launched

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def end_leftovers(self, run: Ended) -> str:
        self.leftovers.append(run)
        return super().end_leftovers(run)


@pytest.mark.parametrize("ends, plan, by_force, returned_0", [
    (Exit(0, False), {}, False, True),
    (Exit(1, False), {}, False, False),
    (Exit(signal.SIGKILL, True), {}, True, False),  # for want of memory, say
    (None, {"hung_after_s": 0.5}, True, False),
])
def test_how_a_run_ended_is_reported_with_what_may_be_left_of_it(ends: Optional[Exit], plan: Dict[str, float], by_force: bool,
                                                             returned_0: bool) -> None:
    """A launcher that was killed has not ended its program."""
    world = Leaves(course(), 1, ends=ends)
    Done(world, **plan)
    assert world.leftovers and set(world.leftovers) == {Ended(world.pid, "", by_force, returned_0)}, world.leftovers


# ---- what nobody has foreseen ----


class Broken(World):
    """Something is wrong with the job control itself."""

    def poll(self) -> Any:
        if self.committed:
            raise RuntimeError("no such thing")
        return super().poll()


def test_what_nobody_has_foreseen_ends_the_job_in_good_order() -> None:
    done = Done(Broken(course(), 1))
    assert done.action.kind == Kind.FAILED and done.action.reason == "cairn run itself failed: no such thing"
    run_, = done.account.runs
    assert run_.failed and run_.ended_s and done.count("Traceback") == 1


def test_what_nobody_has_foreseen_is_followed_by_a_scavenge_and_the_account(
        cairn: Path, tmp_path: Path, mpirun: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    def breaks(*_: Any) -> bool:
        raise RuntimeError("no such thing")
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in environment_of().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Job, "_is_hung", breaks)
    saved: List[str] = []
    monkeypatch.setattr(run.Scavenge, "run", lambda self, nodes, down: saved.extend(nodes) or breaks())
    code = run.main(["--nodes", "2", mpirun, "-n", "2", "sh", "-c", "sleep 60"], cairn)
    printed = capfd.readouterr().err
    assert code == 1 and saved == ["n0", "n1"], printed
    assert "failed: cairn run itself failed: no such thing" in printed and "runs         1, of which 1 died" in printed
    assert "scavenge     failed: no such thing" in printed, printed
    assert json.loads((tmp_path / ".cairn" / "run.json").read_text())["alive"] is False


def test_a_job_goes_on_where_its_output_is_not_read(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    """The terminal is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([cairn, "run", "--nodes", "2", mpirun, "-n", "2", "sh", "-c", "touch done"], cwd=tmp_path,
                          env=environment_of(), stdin=subprocess.DEVNULL, stderr=writer, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == 0 and (tmp_path / "done").exists()


DAMAGES = "mkdir -p .cairn; echo garbage > .cairn/halt; touch begun; while [ ! -e over ]; do sleep 0.05; done; echo over"


def test_a_damaged_halt_file_stops_no_job(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    job = RealJob(cairn, tmp_path, ["--nodes", "2"], [mpirun, "-n", "2", "sh", "-c", DAMAGES])
    job.until((tmp_path / "begun").exists)
    job.send(signal.SIGUSR1)
    with pytest.raises(AssertionError):
        job.until(lambda: False, timeout_s=1.5)
    (tmp_path / "over").touch()
    done = job.wait()
    assert done.code == 3 and done.output == "over\n", done
    assert done.printed.count("halt is damaged") == 1 and "goes on without it" in done.printed, done.printed


@pytest.mark.parametrize("option, settings, limit_s", [
    ("", {}, 0.0),
    ("7", {}, 7.0),
    ("", WATCHED, 600.0),
    ("7", WATCHED, 7.0),
    ("", {**WATCHED, "SCR_WATCHDOG": "0"}, 0.0),
    ("", {"SCR_WATCHDOG": "1"}, "needs SCR_WATCHDOG_TIMEOUT"),
    ("7", {"CAIRN_LOG_JSON": "0"}, "need CAIRN_LOG_JSON=1"),
    ("", {**WATCHED, "CAIRN_LOG_JSON": "0"}, "need CAIRN_LOG_JSON=1"),
    ("", {"CAIRN_LOG_JSON": "0"}, 0.0),
    ("7", {"SCR_ENABLE": "0"}, 0.0),
    ("", {**WATCHED, "SCR_ENABLE": "0", "CAIRN_LOG_JSON": "0"}, 0.0),
])
def test_no_run_is_hung_of_which_nothing_can_be_heard(cairn: Path, tmp_path: Path, option: str, settings: Dict[str, str],
                                                      limit_s: "float | str") -> None:
    options = run.parser().parse_args(["--hung-after", option] if option else [])
    native = Native(cairn, str(tmp_path), environment_of(settings))
    if isinstance(limit_s, float):
        assert run.hung_after_of(options, native) == limit_s
    else:
        with pytest.raises(Trouble, match=limit_s):
            run.hung_after_of(options, native)


def test_what_was_scavenged_and_cannot_be_looked_at_ends_no_job(tmp_path: Path) -> None:
    def fails() -> bool:
        raise OSError(errno.EMFILE, "too many open files")

    said: List[str] = []
    native = SimpleNamespace(settings={"SCR_ENABLE": "1"}, can_make_whole=fails)
    Unpublished(native, None, said.append, lambda: "", lambda: None).publish(lambda: None)  # type: ignore[arg-type]
    assert len(said) == 1 and "too many open files; cairn rebuild tries" in said[0]
