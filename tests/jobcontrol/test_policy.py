"""Every combination of what may be known before a decision has a row."""

from itertools import product
from typing import Dict, List, NamedTuple, Tuple

import pytest

from cairn.policy import Action, Event, FailureTally, How, Kind, Policy, State, decide, ended_well

ANY = "*"
# What is known, and the values that make a difference. A run ends well (exit 0 with all nodes there, or
# with SCR_Finalize called), or badly in one of several ways.
AXES: Dict[str, Tuple[str, ...]] = {
    "how": tuple(how.name for how in How),
    "finalized": ("yes", "no", "not in use"),  # SCR_Finalize was called; not, but SCR_Init; neither
    "lost": ("none", "one"),  # nodes found dead since the run began
    "halt": ("asked", "no"),
    "asked": ("yes", "no"),  # SCR_Should_exit said yes to the program
    "time": ("unknown", "enough", "short"),
    "runs": ("left", "used up", "no limit"),
    "nodes": ("with spares", "as wanted", "fewer", "too few"),
    "same": ("2", "3"),  # failures at one point
    "again": ("none", "some"),  # nodes that were left out, and not asked again yet
}


class Row(NamedTuple):
    """The first row that fits decides."""

    how: str
    finalized: str
    lost: str
    halt: str
    asked: str
    time: str
    runs: str
    nodes: str
    same: str
    again: str
    expected: str


#              how            fin   lost    halt     asked    time     runs       nodes      same  again  then
TABLE = [Row(*line.split("|")) for line in """\
EXIT_0|yes|*|asked|yes|*|*|*|*|*|HALTED
EXIT_0|yes|*|asked|no|*|*|*|*|*|SUCCESS
EXIT_0|yes|*|no|*|*|*|*|*|*|SUCCESS
EXIT_0|not in use|none|asked|*|*|*|*|*|*|HALTED
EXIT_0|not in use|none|no|*|*|*|*|*|*|SUCCESS
EXIT_OTHER|yes|none|*|*|*|*|*|*|*|GIVEN_UP
SIGNAL|yes|none|*|*|*|*|*|*|*|GIVEN_UP
HUNG|yes|none|*|*|*|*|*|*|*|GIVEN_UP
NODE_LOST|yes|none|*|*|*|*|*|*|*|GIVEN_UP
*|*|*|asked|*|*|*|*|*|*|HALTED
*|*|*|*|*|short|*|*|*|*|HALTED
*|*|*|*|*|*|used up|*|*|*|GIVEN_UP
*|*|*|*|*|*|*|*|3|*|GIVEN_UP
*|*|*|*|*|*|*|fewer|2|some|LOOK_AGAIN
*|*|*|*|*|*|*|too few|2|some|LOOK_AGAIN
*|*|*|*|*|*|*|too few|2|none|GIVEN_UP
*|*|*|*|*|*|*|with spares|2|*|LAUNCH 4
*|*|*|*|*|*|*|as wanted|2|*|LAUNCH 4
*|*|*|*|*|*|*|fewer|2|none|LAUNCH 3""".splitlines()]

HEALTHY = {"with spares": 6, "as wanted": 4, "fewer": 3, "too few": 2}
SECONDS = {"unknown": None, "enough": 61, "short": 60}
RUNS_MAX = {"left": 3, "used up": 2, "no limit": -1}


def row_of(case: Tuple[str, ...]) -> int:
    """Which row decides that case."""
    for number, row in enumerate(TABLE):
        if all(mask in (ANY, value) for mask, value in zip(row, case)):
            return number
    raise AssertionError(f"no row for {dict(zip(AXES, case))}")


def decided(case: Tuple[str, ...]) -> Action:
    known = dict(zip(AXES, case))
    policy = Policy(RUNS_MAX[known["runs"]], nodes_wanted=4, nodes_min=3)
    state = State(2, HEALTHY[known["nodes"]], "why" if known["halt"] == "asked" else None,
                  SECONDS[known["time"]], int(known["same"]), {"none": 0, "some": 1}[known["again"]], 60)
    event = Event(How[known["how"]], 1, {"yes": True, "no": False, "not in use": None}[known["finalized"]],
                  ("n2",) if known["lost"] == "one" else (), is_to_exit=known["asked"] == "yes")
    return decide(policy, state, event)


def all_cases() -> List[Tuple[str, ...]]:
    return list(product(*AXES.values()))


def test_every_combination_has_a_row_and_is_decided_by_it() -> None:
    cases = all_cases()
    assert len(cases) == 6 * 3 * 2 * 2 * 2 * 3 * 3 * 4 * 2 * 2
    for case in cases:
        action = decided(case)
        got = action.kind.name + (f" {action.nodes}" if action.kind == Kind.LAUNCH else "")
        assert got == TABLE[row_of(case)].expected, dict(zip(AXES, case))
        assert action.reason


def test_no_row_is_idle() -> None:
    assert {row_of(case) for case in all_cases()} == set(range(len(TABLE)))


@pytest.mark.parametrize("event, kind", [
    (Event(How.EXIT_0, 0, None, ()), Kind.SUCCESS),          # a program that does not use the library
    (Event(How.EXIT_0, 0, None, (), "each rank is alone"), Kind.GIVEN_UP),
    (Event(How.EXIT_0, 0, True, (), "each rank is alone"), Kind.GIVEN_UP),
    (Event(How.EXIT_OTHER, 1, False, (), "each rank is alone"), Kind.GIVEN_UP),  # another run would be the same
    (Event(How.EXIT_0, 0, None, ("n1",)), Kind.LAUNCH),
    (Event(How.EXIT_0, 0, False, ()), Kind.LAUNCH),          # the node is not known to be dead yet
    (Event(How.EXIT_0, 0, True, ("n1",)), Kind.SUCCESS),
])
def test_the_exit_code_of_a_launcher_is_not_trusted(event: Event, kind: Kind) -> None:
    """srun may return 0 after the loss of a node."""
    assert decide(Policy(3), State(1), event).kind == kind


def test_a_program_that_finished_although_it_was_to_stop_is_no_halted_one() -> None:
    """Nor is it called one where nothing is known of it."""
    state = State(1, halt="JOB_HALTED: requested by cairn halt; cairn halt --remove withdraws it")
    finished = decide(Policy(), state, Event(How.EXIT_0, 0, True))
    assert finished.kind == Kind.SUCCESS and "finished by itself" in finished.reason, finished
    assert "SCR_HALT_EXIT" in finished.reason and "cairn halt --remove" in finished.reason
    unknown = decide(Policy(), state, Event(How.EXIT_0, 0, None))
    assert unknown.kind == Kind.HALTED and "unknown" in unknown.reason


def test_a_program_may_obey_a_signal_by_itself() -> None:
    state = State(1, halt="SIGUSR1 was received", signalled=True)
    assert decide(Policy(), state, Event(How.EXIT_0, 0, True)).kind == Kind.HALTED


def test_exit_codes_tell_the_outcomes_apart() -> None:
    assert [Kind.SUCCESS.value, Kind.HALTED.value, Kind.GIVEN_UP.value] == [0, 3, 4]


@pytest.mark.parametrize("state, words", [
    (State(runs_used=1), ["SCR_RUNS", "1 of 1"]),
    (State(nodes_healthy=0), ["0 left", "spares", "SCR_MIN_NODES"]),
    (State(failures_here=3), ["3 runs", "without a new dataset"]),
])
def test_giving_up_tells_why_and_what_to_do(state: State, words: List[str]) -> None:
    reason = decide(Policy(1), state, Event(How.EXIT_OTHER, 7)).reason
    assert all(word in reason for word in words), reason


@pytest.mark.parametrize("event, word", [
    (Event(How.EXIT_OTHER, 1, False, init_failure="the caches are in use"), "the caches are in use"),
    (Event(How.EXIT_OTHER, 127), "could not be started")])
def test_more_runs_are_no_remedy_where_the_program_could_not_begin(event: Event, word: str) -> None:
    action = decide(Policy(1), State(runs_used=1), event)
    assert action.kind == Kind.GIVEN_UP and word in action.reason and "--runs" not in action.reason, action


def test_exit_127_of_a_program_that_has_begun_is_a_failure_like_any_other() -> None:
    assert decide(Policy(3), State(1), Event(How.EXIT_OTHER, 127, finalized=False)).kind == Kind.LAUNCH


def test_a_failed_init_that_does_not_pass_ends_the_job_and_is_called_what_it_is() -> None:
    event = Event(How.EXIT_0, 0, False, init_failure="STORE is wrong", init_fails_again=True)
    action = decide(Policy(3), State(1), event)
    assert action.kind == Kind.GIVEN_UP and "SCR_Init" in action.reason and "STORE is wrong" in action.reason
    assert not ended_well(event), "the account counts it as a failure"
    assert "SCR_Init failed" in event.text() and "together" not in event.text()
    assert decide(Policy(3), State(1), Event(How.EXIT_0, 0, None, init_fails_again=True)).kind == Kind.GIVEN_UP


def test_a_failed_init_that_may_pass_is_tried_again() -> None:
    assert decide(Policy(2), State(1), Event(How.EXIT_OTHER, 1, False, init_failure="busy")).kind == Kind.LAUNCH
    assert "busy" in decide(Policy(2), State(1), Event(How.EXIT_0, 0, init_failure="busy")).reason


CRASH, LOSS = Event(How.SIGNAL, 11), Event(How.NODE_LOST, 0, False, ("n1",))


@pytest.mark.parametrize("events, count", [
    ([(CRASH, 0), (CRASH, 0), (CRASH, 0)], 3),
    ([(CRASH, 5), (CRASH, 5), (CRASH, 5)], 3),
    ([(CRASH, 5), (CRASH, 6), (CRASH, 6)], 2),   # progress begins the count anew
    ([(CRASH, 5), (CRASH, 4), (CRASH, 5)], 3),   # a step back is no progress
    ([(CRASH, 5), (LOSS, 5), (CRASH, 5)], 2),    # a lost node is not the program's failure
    ([(LOSS, 5), (LOSS, 5), (LOSS, 5)], 0),
    ([(CRASH, 5), (LOSS, 6), (CRASH, 6)], 1),
    ([(CRASH, 5), (Event(How.EXIT_OTHER, 1), 5), (Event(How.HUNG), 5)], 3),
])
def test_failures_at_one_point_are_counted(events: List[Tuple[Event, int]], count: int) -> None:
    tally = FailureTally()
    for event, newest in events:
        tally = tally.after(event, newest)
    assert tally.count == count
