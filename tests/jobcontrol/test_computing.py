"""What of a job's computing its checkpoints hold, from the events of its log."""

from typing import Any, List

from cairn.computing import Computing, lost_s
from cairn.job_log import Entry


def follow(computing: Computing, *events: Any) -> Computing:
    """Each event is its name, its time, and the number of a checkpoint, if it has one."""
    for what, time_s, *number in events:
        computing.add(Entry(what, time_s, *number, name=f"ckpt.{number[0]}" if number else "", job="7"))
    return computing


FIRST: List[Any] = [("COMPUTE_START", 10), ("CHECKPOINT_START", 49), ("CHECKPOINT_END", 50, 1), ("COMPUTE_START", 51),
                    ("CHECKPOINT_END", 100, 2)]


def second(*events: Any) -> Computing:
    """The run after one that made two checkpoints."""
    computing = follow(Computing(), *FIRST)
    computing.begin_run()
    return follow(computing, ("COMPUTE_START", 150), *events)


def test_a_checkpoint_holds_what_was_computed_since_the_start() -> None:
    assert follow(Computing(), *FIRST).kept_s == 90


def test_a_restart_regains_what_its_checkpoint_holds() -> None:
    for number, held_s in ((1, 40), (2, 90)):
        run = second(("RESTART_SUCCESS", 155, number))
        assert (run.began_s, run.regained_s, run.from_scratch) == (155, held_s, "")
        follow(run, ("CHECKPOINT_END", 165, 3))
        assert run.kept_s == held_s + 10


def test_a_run_that_the_library_says_begins_from_scratch_regains_nothing() -> None:
    computing = second()
    computing.add(Entry("FRESH_START", 151, note="two nodes are gone"))
    assert (computing.regained_s, computing.kept_s, computing.from_scratch) == (0, 0, "two nodes are gone")


def test_a_run_that_goes_on_without_a_restart_has_begun_from_scratch() -> None:
    """As where no node has anything left that the library could speak of."""
    assert second().from_scratch == "", "it may still restart"
    computing = second(("CHECKPOINT_START", 160))
    assert (computing.regained_s, "ckpt.2" in computing.from_scratch) == (0, True)
    assert second(("CURRENT", 155, 2), ("CHECKPOINT_START", 160)).from_scratch == "", "it did so by its own means"
    assert follow(Computing(), *FIRST).from_scratch == "", "there was nothing"


def test_who_starts_a_job_again_that_has_come_to_its_end_may_want_to_begin_from_scratch() -> None:
    for events, expected in (((), False), ((("HALT", 101),), True)):
        computing = follow(Computing(), *FIRST, *events, ("FINALIZE", 110))
        computing.begin_run()
        assert bool(follow(computing, ("CHECKPOINT_START", 160)).from_scratch) == expected


def test_without_runs_nothing_is_lost() -> None:
    assert lost_s([], 100) == 0
