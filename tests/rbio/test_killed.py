"""SIGKILL at each change that a run makes on disk for a step: the next run restores the newest published step."""

from pathlib import Path
from typing import List

import pytest

from steps import TWO_NODES, Steps

WRITERS = {0: 0, 2: 1}  # by rank
OPTIONS = "files=1"


def changes_of(steps: Steps, rank: int, folder: Path) -> List[str]:
    """What the rank changes on disk for a step, in order: "CALL PATH"."""
    steps.write(TWO_NODES, OPTIONS, [1, 2], settings=steps.interference(2, TRACE=str(folder / "trace")))
    return (folder / f"trace.{rank}").read_text().splitlines()


def expect_whole(steps: Steps) -> int:
    """After a crash while step 2 was written over a whole step 1."""
    is_complete = 2 in steps.published() or steps.has_all_markers(2, len(WRITERS))
    restored = steps.restore(["n0", "n1"], OPTIONS)
    assert restored == (2 if is_complete else 1)
    assert [path.name for path in (steps.directory / ".rbio").glob("attempt.*")] == []
    return restored


@pytest.mark.parametrize("all_at_once", [False, True], ids=["one rank", "all ranks"])
@pytest.mark.parametrize("rank", WRITERS)
def test_each_moment_leaves_a_whole_newest_step(steps: Steps, rank: int, all_at_once: bool, tmp_path: Path) -> None:
    changes = changes_of(steps, rank, tmp_path)
    assert any(change.startswith("pwrite") for change in changes)
    # All of them in one kind of run; in the others, which take long, some.
    is_quick = steps.flavour == "mpich" and not all_at_once
    restored = set()
    for change in range(0, len(changes), 1 if is_quick else 5):
        killed = steps.another(f"killed.{change}")
        killed.write(TWO_NODES, OPTIONS, [1])
        killed.start_killed(TWO_NODES, OPTIONS, 2, rank, change, all_at_once)
        restored.add(expect_whole(killed))
    assert 1 in restored


def test_a_complete_step_is_published_by_the_next_open(steps: Steps, tmp_path: Path) -> None:
    traces = {rank: changes_of(steps, rank, tmp_path) for rank in WRITERS}
    [rank] = [rank for rank, lines in traces.items() if any(line.endswith("/step.2") for line in lines)]
    publication = next(at for at, line in enumerate(traces[rank]) if line.endswith("/step.2"))
    fresh = steps.another("fresh")
    fresh.write(TWO_NODES, OPTIONS, [1])
    fresh.start_killed(TWO_NODES, OPTIONS, 2, rank, publication, False)
    if 2 not in fresh.published():  # otherwise the other writer came last this time
        assert fresh.has_all_markers(2, len(WRITERS))
    assert expect_whole(fresh) == 2
