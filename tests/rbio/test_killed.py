"""SIGKILL at each change that a run makes on disk for a step: the next run restores the newest published step."""

from pathlib import Path
from typing import Callable, Dict, List

import pytest

from steps import TWO_NODES, Death, Steps

WRITERS = {0: 0, 2: 1}  # by rank, in both layouts
OPTIONS = "files=1 group=2"
# In the second one the data of ranks 1 and 3 come from another node than that of their writers.
LAYOUTS = {"one node per group": TWO_NODES, "groups between nodes": ["n0", "n1", "n0", "n1"]}


def changes_of(steps: Steps, folder: Path, placement: List[str]) -> Dict[int, List[str]]:
    """What each writer changes on disk for step 2, in order: "CALL PATH"."""
    steps.write(placement, OPTIONS, [1, 2], settings=steps.interference(2, TRACE=str(folder / "trace")))
    return {rank: (folder / f"trace.{rank}").read_text().splitlines() for rank in WRITERS}


def expect_whole(steps: Steps) -> int:
    """After a crash while step 2 was written: what all ranks of another run restore."""
    is_complete = 2 in steps.published() or steps.has_all_markers(2, len(WRITERS))
    restored = steps.restore(["n0", "n1"], OPTIONS)
    assert restored == (2 if is_complete else 1)
    assert [path.name for path in (steps.directory / ".rbio").glob("attempt.*")] == []
    return restored


@pytest.fixture
def every(request: pytest.FixtureRequest) -> Callable[[str, bool], int]:
    """How many changes there are between two that are tested, in a kind of run."""
    def stride(flavour: str, all_at_once: bool) -> int:
        return 1 if request.config.getoption("all_moments") else (6 if flavour == "mpich" else 30) * (1 + all_at_once)
    return stride


@pytest.mark.parametrize("all_at_once", [False, True], ids=["one rank", "all ranks"])
@pytest.mark.parametrize("rank", WRITERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_moment_leaves_a_whole_newest_step(steps: Steps, layout: str, rank: int, all_at_once: bool,
                                                every: Callable[[str, bool], int], tmp_path: Path) -> None:
    placement = LAYOUTS[layout]
    changes = changes_of(steps, tmp_path, placement)[rank]
    # What a writer does after its marker depends on whether it comes last.
    marker = next(at for at, line in enumerate(changes) if line.startswith("rename") and "/done." in line)
    restored = set()
    for change in range(0, len(changes), every(steps.flavour, all_at_once)):
        killed = steps.another(f"killed.{change}")
        is_killed = killed.is_killed(placement, OPTIONS, [1, 2], Death(rank, change, all_at_once))
        assert is_killed or change > marker
        restored.add(expect_whole(killed))
    assert 1 in restored


def test_a_complete_step_is_published_by_the_next_open(steps: Steps, tmp_path: Path) -> None:
    changes = changes_of(steps, tmp_path, TWO_NODES)
    last = f"rename {steps.directory}/step.2"
    [rank] = [rank for rank in WRITERS if last in changes[rank]]
    killed = steps.another("killed")
    # Unless the other writer comes last this time, and publishes it.
    if killed.is_killed(TWO_NODES, OPTIONS, [1, 2], Death(rank, changes[rank].index(last), False)):
        assert killed.has_all_markers(2, len(WRITERS)) or 2 in killed.published()
    assert expect_whole(killed) == 2
