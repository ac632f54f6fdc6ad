"""Groups whose ranks are on several nodes, and writers without data."""

from typing import List

import pytest

from steps import BAD_ARGUMENT, GOOD, NEWEST, Steps

ALTERNATING = ["n0", "n1", "n0", "n1"]
APART = ["n0", "n1", "n2", "n3", "n4"]
LAYOUTS = [(ALTERNATING, "group=4"), (ALTERNATING, "group=2 files=1"), (ALTERNATING, "group=4 mode=sync"),
           (APART, "group=3"), (APART, "group=64")]


@pytest.mark.parametrize("placement, options", LAYOUTS)
def test_each_rank_learns_that_a_step_is_done(steps: Steps, placement: List[str], options: str) -> None:
    """Without a collective call; the data change as soon as begin has returned."""
    written = steps.write(placement, options, [1, 2])
    assert written == {1: [GOOD] * len(placement), 2: [GOOD] * len(placement)}
    assert steps.restore(["n0", "n1"], NEWEST, 1) == [2, 1]


@pytest.mark.parametrize("placement", [ALTERNATING, APART], ids=["two nodes", "five nodes"])
def test_a_writer_that_waits_serves_ranks_that_test_first(steps: Steps, placement: List[str]) -> None:
    """It is in a collective call, which the others do not make before the step is done."""
    written = steps.write(placement, "group=64", [1, 2], command="uneven")
    assert written == {1: [GOOD] * len(placement), 2: [GOOD] * len(placement)}


@pytest.mark.any_mpi
def test_nodes_do_not_change_the_bytes(steps: Steps) -> None:
    parts = []
    for name, placement in (("one", ["n0"] * 4), ("two", ALTERNATING), ("four", APART[:4])):
        series = steps.another(name)
        assert series.write(placement, "group=4", [1]) == {1: [GOOD] * 4}
        parts.append(series.parts(1))
    assert parts[1:] == parts[:1] * 2


@pytest.mark.parametrize("options", ["group=4 pace=0", "group=2 pace=0 memory=2MB"])
def test_steps_that_overlap_are_all_written(steps: Steps, options: str) -> None:
    output = steps.run(ALTERNATING, "program", "overlap", steps.directory, options, *range(6))
    assert output.count(": begin 0\n") == 24 and output.count("close: 0\n") == 4
    assert steps.published() == list(range(6))
    assert steps.restore(["n0"] * 3, NEWEST, 2) == [5, 2]


def test_a_program_that_makes_no_call_for_longer_than_the_timeout_loses_no_step(steps: Steps) -> None:
    output = steps.run(ALTERNATING, "program", "silent", steps.directory, "group=4 timeout=1", 1, 2)
    assert output.count(": begin 0 wait 0\n") == 8
    assert steps.restore(["n0"], NEWEST) == [2]


@pytest.mark.any_mpi
@pytest.mark.parametrize("placement", [["n0"] * 4, ALTERNATING], ids=["one node", "two nodes"])
@pytest.mark.parametrize("group", [2, 4])
def test_split_writers_write_the_data_of_the_others(steps: Steps, placement: List[str], group: int) -> None:
    assert steps.write(placement, f"mode=split group={group}", [1, 2]) == {1: [GOOD] * 4, 2: [GOOD] * 4}
    assert steps.restore(["n0", "n1", "n2"], NEWEST, 1) == [2, 1]


def test_a_split_writer_with_data_gets_an_error_on_all_ranks(steps: Steps) -> None:
    output = steps.run(["n0"] * 4, "program", "overlap", steps.directory, "group=2 mode=split", 1)
    assert output.count(f": begin {BAD_ARGUMENT}\n") == 4, output
    assert steps.log.count("in mode split a writer") == 1
    assert steps.published() == []
