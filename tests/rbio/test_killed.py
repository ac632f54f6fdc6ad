"""SIGKILL at each change that a run makes on disk for a step: the next run restores the newest published step."""

from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

import pytest

from steps import NEWEST, TWO_NODES, Death, Steps

WRITERS = 2


class Layout(NamedTuple):
    placement: List[str]
    options: str
    ranks: Tuple[int, ...]  # those that are killed


LAYOUTS = {
    "one node per group": Layout(TWO_NODES, "files=1 group=2", (0, 2)),
    # The data of ranks 1 and 3 come from another node than that of their writers.
    "groups between nodes": Layout(["n0", "n1", "n0", "n1"], "files=1 group=2", (0, 2)),
    # Rank 1 writes too, and leaves no marker.
    "collective": Layout(TWO_NODES, "mode=collective files=1 group=2", (0, 1, 2)),
    "split, and a file per group": Layout(TWO_NODES, "mode=split group=2", (0, 2)),
}

Changes = Callable[[str, int], List[str]]


@pytest.fixture(scope="module")
def known_changes() -> Dict[Tuple[str, str, int], List[str]]:
    return {}


@pytest.fixture
def changes_of(steps: Steps, tmp_path: Path, known_changes: Dict[Tuple[str, str, int], List[str]]) -> Changes:
    """What a rank changes on disk for step 2, in order: "CALL PATH"."""
    def find(name: str, rank: int) -> List[str]:
        key = (steps.flavour, name, rank)
        if key not in known_changes:
            layout, traced = LAYOUTS[name], steps.another("traced")
            traced.write(layout.placement, layout.options, [1, 2],
                         traced.interference(2, TRACE=str(tmp_path / "trace")))
            for other in layout.ranks:
                known_changes[steps.flavour, name, other] = (tmp_path / f"trace.{other}").read_text().splitlines()
        return known_changes[key]
    return find


def expect_whole(steps: Steps, options: str) -> int:
    """After a crash while step 2 was written: what all ranks of another run restore."""
    is_complete = 2 in steps.published() or steps.has_all_markers(2, WRITERS)
    [restored] = steps.restore(["n0", "n1"], NEWEST, options=options)
    assert restored == (2 if is_complete else 1)
    assert [path.name for path in (steps.directory / ".rbio").glob("attempt.*")] == []
    return restored


@pytest.fixture
def moments(steps: Steps, request: pytest.FixtureRequest) -> Callable[[int], List[Tuple[int, bool]]]:
    """Of so many changes those that are tested, and whether all ranks are killed there."""
    def choose(changes: int) -> List[Tuple[int, bool]]:
        if request.config.getoption("all_moments"):
            return [(change, of_all) for change in range(changes) for of_all in (False, True)]
        # rbio_crash_test kills at each change, and the simulation at each call.
        stride = 40 if steps.flavour == "mpich" else 64
        return [(change, change // stride % 2 == 1) for change in range(0, changes, stride)]
    return choose


@pytest.mark.parametrize("name, rank", [(name, rank) for name, layout in LAYOUTS.items() for rank in layout.ranks])
def test_each_moment_leaves_a_whole_newest_step(steps: Steps, name: str, rank: int, changes_of: Changes,
                                                moments: Callable[[int], List[Tuple[int, bool]]]) -> None:
    layout, changes = LAYOUTS[name], changes_of(name, rank)
    # What a writer does after its marker depends on whether it comes last.
    marker = next((at for at, line in enumerate(changes) if line.startswith("rename") and "/done." in line),
                  len(changes))
    restored = set()
    for change, of_all in moments(len(changes)):
        killed = steps.another(f"killed.{change}.{of_all}")
        is_killed = killed.is_killed(layout.placement, layout.options, [1, 2], Death(rank, change, of_all))
        assert is_killed or change > marker
        restored.add(expect_whole(killed, layout.options))
    assert 1 in restored


def test_a_death_that_the_launcher_does_not_notice_ends_the_others(steps: Steps) -> None:
    layout = LAYOUTS["groups between nodes"]
    assert steps.is_killed(layout.placement, layout.options, [1, 2], Death(2, 0, False), launcher_notices=False)
    assert "rank 2 (process" in steps.log and "has ended" in steps.log, steps.log
    assert expect_whole(steps, layout.options) == 1


def test_a_death_before_the_next_open_ends_the_others(steps: Steps) -> None:
    code, _, log = steps.cluster.run(TWO_NODES, steps.command("again", "", [2], launcher_notices=False))
    assert code != 0
    # Once the job has ended under MPICH without this line; why is not known. An error of MPICH itself ends it as well.
    is_seen_by_mpi = steps.flavour == "mpich" and "Fatal error in" in log
    assert is_seen_by_mpi or ("rank 2 (process" in log and "has ended" in log), repr(log)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_complete_step_is_published_by_the_next_open(steps: Steps, name: str, changes_of: Changes) -> None:
    layout = LAYOUTS[name]
    by_rank = {rank: changes_of(name, rank) for rank in layout.ranks}
    [(rank, change)] = [(rank, at) for rank, changes in by_rank.items() for at, line in enumerate(changes)
                        if line.startswith("rename ") and line.endswith("/step.2")]
    killed = steps.another("killed")
    # Unless the other writer comes last this time, and publishes it.
    if killed.is_killed(layout.placement, layout.options, [1, 2], Death(rank, change, False)):
        assert killed.has_all_markers(2, WRITERS) or 2 in killed.published()
    assert expect_whole(killed, layout.options) == 2
