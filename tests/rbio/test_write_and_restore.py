"""What is written comes back byte by byte, in every mode, by any number of ranks."""

import pytest

from steps import CORRUPT, GOOD, NEWEST, TWO_NODES, Steps

ONE_NODE = ["n0"] * 3
MODES = ["threaded", "sync", "collective"]


@pytest.mark.parametrize("mode", [*MODES, "split group=2"])
def test_restores_on_the_same_and_on_another_number_of_ranks(steps: Steps, mode: str) -> None:
    assert steps.write(TWO_NODES, f"mode={mode}", [1, 2]) == {1: [GOOD] * 4, 2: [GOOD] * 4}
    assert steps.restore(TWO_NODES, NEWEST, options=f"mode={mode}") == [2]
    assert steps.restore(["n0", "n1", "n2"], NEWEST, 1) == [2, 1]


@pytest.mark.any_mpi
@pytest.mark.parametrize("ranks, options", [
    (1, ""), (2, "mode=sync group=1 files=1"), (3, "mode=collective group=2"), (5, "group=2 files=2"),
    (8, "mode=split group=3 files=1"), (13, "mode=collective group=64 files=1"),
    # Groups that span nodes, and files that groups share.
    (16, "group=3 files=4"), (16, "mode=split group=4")])
def test_one_to_sixteen_ranks_come_back_on_as_many_and_on_other_ranks(steps: Steps, ranks: int, options: str) -> None:
    placement = [f"n{rank // 4}" for rank in range(ranks)]
    assert steps.write(placement, options, [1]) == {1: [GOOD] * ranks}
    assert steps.restore(placement, NEWEST, options=options) == [1]
    assert steps.restore(ONE_NODE, NEWEST) == [1]


def expect_same_bytes(steps: Steps, options: str, files: int) -> None:
    written = []
    for mode in MODES:
        if mode == "collective" and files == 3:
            continue  # one file, or one per group of ranks
        series = steps.another(mode)
        output = series.run(TWO_NODES, "program", "overlap", series.directory, f"mode={mode} {options}", 5)
        assert output.count("begin 0\n") == output.count("close: 0\n") == 4
        written.append(series.parts(5))
    assert len(written[0]) == files
    assert all(parts == written[0] for parts in written)


@pytest.mark.parametrize("options, files", [("", 2), ("files=1", 1)])
def test_all_modes_write_the_same_bytes(steps: Steps, options: str, files: int) -> None:
    expect_same_bytes(steps, options, files)


@pytest.mark.any_mpi
@pytest.mark.parametrize("options, files", [("group=3", 2), ("group=1 files=3", 3)])
def test_groups_do_not_change_the_bytes(steps: Steps, options: str, files: int) -> None:
    expect_same_bytes(steps, options, files)


@pytest.mark.parametrize("mode", ["threaded", "collective"])
def test_steps_that_overlap_are_all_written(steps: Steps, mode: str) -> None:
    output = steps.run(TWO_NODES, "program", "overlap", steps.directory, f"mode={mode} pace=0", *range(6))
    assert output.count(": begin 0\n") == 24 and output.count("close: 0\n") == 4
    assert steps.published() == list(range(6))
    assert steps.restore(ONE_NODE, NEWEST, 2) == [5, 2]


@pytest.mark.any_mpi
def test_keeps_as_many_steps_as_wanted(steps: Steps) -> None:
    steps.write(ONE_NODE, "keep=2", [1, 2, 3])
    assert steps.published() == [2, 3]


@pytest.mark.any_mpi
def test_the_environment_overrides_single_options(steps: Steps) -> None:
    steps.write(TWO_NODES, "files=1 keep=1", [1, 2], settings={"CAIRN_RBIO": "files=2"})
    assert len(steps.parts(2)) == 2
    assert steps.published() == [2]


@pytest.mark.any_mpi
def test_a_wrong_option_in_the_environment_names_the_variable(steps: Steps) -> None:
    with pytest.raises(AssertionError, match=r"CAIRN_RBIO\); did you mean files\?"):
        steps.write(ONE_NODE, "", [1], settings={"CAIRN_RBIO": "fles=2"})


@pytest.mark.any_mpi
def test_a_damaged_step_is_passed_over_and_never_handed_out(steps: Steps) -> None:
    steps.write(ONE_NODE, "files=1", [1, 2])
    part = steps.directory / "step.2" / "part.0.rbio"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    assert steps.restore(ONE_NODE, NEWEST) == [1]
    assert "warning" in steps.log and "step.2" in steps.log
    output = steps.run(ONE_NODE, "program", "restore", steps.directory, "", 2)
    assert output.count(f"restored -7: {CORRUPT}\n") == 3
