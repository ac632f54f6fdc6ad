"""Decides what `cairn run` does next, with pure functions. tests/jobcontrol has a row for every combination."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Optional, Tuple


NO_COMMAND = 127  # the exit code of shells and launchers if the program does not exist


class How(Enum):
    """How the last run ended."""

    NOT_STARTED = "not started"
    EXIT_0 = "exit 0"
    EXIT_OTHER = "exit other than 0"
    SIGNAL = "killed by a signal"
    HUNG = "hung"
    NODE_LOST = "ended because a node was lost"


class Kind(Enum):
    """The next action. The values from 0 on are the exit codes of `cairn run`."""

    LOOK_AGAIN = -2  # test nodes again that were left out
    LAUNCH = -1
    SUCCESS = 0
    FAILED = 1  # an error of cairn run itself, or what the program was to copy is left or lost
    HALTED = 3
    GIVEN_UP = 4


@dataclass(frozen=True)
class Policy:
    """The user's limits."""

    runs_max: int = 1  # launches in this allocation; -1: no limit
    nodes_wanted: int = 1  # nodes on which the program runs
    nodes_min: int = 1  # the smallest number with which it can run
    halt_seconds: int = 0  # SCR_HALT_SECONDS
    failures_max: int = 3  # at the same point


@dataclass(frozen=True)
class State:
    """The facts before the decision."""

    runs_used: int = 0
    nodes_healthy: int = 1
    halt: Optional[str] = None  # why the job must stop
    seconds_left: Optional[float] = None  # of the allocation; None: unknown
    failures_here: int = 0  # runs that died since the newest dataset, without the loss of a node
    left_out: int = 0  # nodes that do not count as healthy, and were not tested again since the last launch
    halt_seconds: int = 0  # no launch when the allocation ends within this time
    signalled: bool = False  # `halt` is a signal, on which a program may stop by itself


@dataclass(frozen=True)
class Event:
    """The end of the last run."""

    how: How = How.NOT_STARTED
    code: int = 0  # the exit code, or the signal
    finalized: Optional[bool] = None  # the program has called SCR_Finalize; None: no run has called even SCR_Init
    nodes_lost: Tuple[str, ...] = ()  # found dead since the run began
    split_world: str = ""  # why its processes did not work together, else empty
    init_failure: str = ""  # why SCR_Init failed, else empty
    init_fails_again: bool = False  # in each run, unless the user changes something
    is_to_exit: bool = False  # SCR_Should_exit returned yes

    def text(self) -> str:
        """As text."""
        if self.how == How.NODE_LOST:
            return f"lost {', '.join(self.nodes_lost)}"
        lost = f"; lost {', '.join(self.nodes_lost)}" if self.nodes_lost else ""
        if self.how == How.EXIT_0 and self.split_world:
            return f"exit 0, but its processes did not work together{lost}"
        if self.how == How.EXIT_0 and self.init_fails_again:
            return f"exit 0, but SCR_Init failed{lost}"
        if self.how == How.EXIT_0 and self.finalized is False:
            return f"exit 0 without SCR_Finalize{lost}"
        if self.how == How.EXIT_OTHER:
            return f"exit {self.code}{lost}"
        if self.how == How.SIGNAL:
            return f"signal {self.code}{lost}"
        return self.how.value + lost


@dataclass(frozen=True)
class Action:
    """The next action, and its reason. `nodes`: on how many nodes to launch."""

    kind: Kind
    reason: str
    nodes: int = 0


def ended_well(event: Event) -> bool:
    """Some launchers, such as srun, return 0 even after the loss of a node. So the program's log and the loss of a node
    have precedence."""
    if event.how != How.EXIT_0 or event.split_world or event.init_fails_again:
        return False
    return not event.nodes_lost if event.finalized is None else event.finalized


def decide(policy: Policy, state: State, event: Event) -> Action:
    """The order of the conditions is their priority."""
    if event.how != How.NOT_STARTED:
        if event.split_world:
            return Action(Kind.GIVEN_UP, event.split_world)
        if event.init_fails_again:
            return Action(Kind.GIVEN_UP, f"SCR_Init failed: {event.init_failure}")
        if ended_well(event):
            return _good_end(state, event)
        if event.finalized and not event.nodes_lost:
            return Action(Kind.GIVEN_UP, f"{event.text()}, after the program had called SCR_Finalize: "
                                         "another run would compute nothing new")
        if _is_no_command(event):
            return Action(Kind.GIVEN_UP, "exit 127: the launcher or the program could not be started; its message says why")
    if state.halt:
        return Action(Kind.HALTED, state.halt)
    if state.seconds_left is not None and state.seconds_left <= state.halt_seconds:
        return Action(Kind.HALTED, "TIME_LIMIT: the allocation ends too soon for another run")
    obstacle = _obstacle(policy, state, event)
    if obstacle:
        return Action(Kind.GIVEN_UP, obstacle)
    if state.left_out and state.nodes_healthy < policy.nodes_wanted:
        return Action(Kind.LOOK_AGAIN, "nodes that were left out may have recovered")
    if state.nodes_healthy < policy.nodes_min:
        return Action(Kind.GIVEN_UP, f"too few nodes: {state.nodes_healthy} left, {policy.nodes_min} needed. Ask for "
                                     "spares, or set SCR_MIN_NODES if the program can run on fewer nodes")
    return Action(Kind.LAUNCH, event.text(), min(state.nodes_healthy, policy.nodes_wanted))


def _good_end(state: State, event: Event) -> Action:
    """If SCR_Should_exit has not returned yes, the program did not stop because of the request, except for a signal, on
    which it may stop by itself."""
    if not state.halt:
        return Action(Kind.SUCCESS, _success_text(event))
    if event.finalized is None:
        return Action(Kind.HALTED, f"{state.halt}. The launcher returned 0, and no call of SCR_Init was logged: whether the "
                                   "program stopped or finished is unknown")
    if event.is_to_exit or state.signalled:
        return Action(Kind.HALTED, state.halt)
    return Action(Kind.SUCCESS, "the program finished by itself, although it was to stop: it did not call SCR_Should_exit "
                                "after that, and SCR_HALT_EXIT=1 was not set. The request was "
                                f"{state.halt}")


def _is_no_command(event: Event) -> bool:
    """A program that has called SCR_Init exists, so its exit code 127 means something else."""
    return (event.how == How.EXIT_OTHER and event.code == NO_COMMAND and event.finalized is None
            and not event.nodes_lost)


def _success_text(event: Event) -> str:
    if event.finalized:
        return "the program called SCR_Finalize, and the launcher returned 0"
    if event.init_failure:
        return f"the launcher returned 0, but SCR_Init failed, so the run was not protected: {event.init_failure}"
    return "the launcher returned 0; no call of SCR_Init was logged"


def _obstacle(policy: Policy, state: State, event: Event) -> str:
    if 0 <= policy.runs_max <= state.runs_used:
        used = f"{state.runs_used} of {policy.runs_max} allowed runs are used"
        if event.init_failure:
            return f"SCR_Init failed: {event.init_failure} ({used})"
        return f"{used}. To allow more, set --runs or SCR_RUNS (-1: any number)"
    if state.failures_here >= policy.failures_max:
        return (f"{state.failures_here} runs in a row died without a new dataset, although all nodes were well: another "
                "run would probably die at the same point. The output of the program may say why")
    return ""


@dataclass(frozen=True)
class FailureTally:
    """Counts the failures since the newest dataset. The loss of a node is no failure of the program and does not count;
    earlier failures still count then."""

    newest: int = 0  # number of the newest dataset ever seen
    count: int = 0

    def after(self, event: Event, newest: int) -> "FailureTally":
        """The tally after a run that ended badly."""
        if newest > self.newest:
            return FailureTally(newest, 0 if event.nodes_lost else 1)
        return FailureTally(self.newest, self.count + (0 if event.nodes_lost else 1))
