"""Several stores: a burst buffer that all nodes see, and checkpoints that go to another store each
n-th time."""

from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from checkpointing import FULL, NODES, Job, with_spares
from damage import flip_byte


def burst_buffer(job: Job) -> Path:
    """What all nodes see, and none loses."""
    return job.cluster.root / "burst"


def describe(job: Job, *lines: str) -> Dict[str, str]:
    """Settings that take stores and levels from these lines of a configuration file."""
    path = job.cluster.root / "levels.conf"
    path.write_text("\n".join(lines) + "\n")
    return {"SCR_COPY_TYPE": "FILE", "SCR_CONF_FILE": str(path)}


def global_store(job: Job) -> Dict[str, str]:
    """Every checkpoint goes to the burst buffer."""
    store = burst_buffer(job)
    return describe(job, f"STORE={store} GROUP=WORLD VIEW=GLOBAL COUNT=2",
                    f"CKPT=0 INTERVAL=1 STORE={store} GROUP=WORLD TYPE=SINGLE")


def two_levels(job: Job) -> Dict[str, str]:
    """Sets of four for each checkpoint, of two for each second one, in a store of its own."""
    fast, large = job.storage("%n") / "fast", job.storage("%n") / "large"
    return describe(job, f"STORE={fast} COUNT=1", f"STORE={large} COUNT=1",
                    f"CKPT=0 INTERVAL=1 STORE={fast} TYPE=XOR SET_SIZE=4",
                    f"CKPT=1 INTERVAL=2 STORE={large} TYPE=XOR SET_SIZE=2")


def burst_buffer_behind(job: Job) -> Dict[str, str]:
    """Sets of four in the nodes for each checkpoint, the burst buffer for each second one."""
    fast, store = job.storage("%n") / "fast", burst_buffer(job)
    return describe(job, f"STORE={fast} COUNT=1",
                    f"STORE={store} GROUP=WORLD VIEW=GLOBAL COUNT=1",
                    f"CKPT=0 INTERVAL=1 STORE={fast} TYPE=XOR SET_SIZE=4",
                    f"CKPT=1 INTERVAL=2 STORE={store} GROUP=WORLD TYPE=SINGLE")


def steps_in(folder: Path) -> List[int]:
    """The checkpoints in a store."""
    return sorted(int(path.name.split(".")[1]) for path in folder.glob("*/cairn.*/dataset.*"))


@pytest.mark.each_mpi
def test_burst_buffer_outlives_nodes(empty: Job) -> None:
    settings = global_store(empty)
    assert empty.launch(FULL, settings, checkpoints=3).report["written"] == [1, 2, 3]
    assert steps_in(burst_buffer(empty)) == [2, 3]
    empty.lose(*NODES)
    outcome = empty.launch(with_spares(*NODES), settings, checkpoints=1)
    assert outcome.restarted_from() == 3
    assert outcome.report["written"] == [4]
    assert steps_in(burst_buffer(empty)) == [3, 4]


def test_byte_flipped_in_burst_buffer(empty: Job) -> None:
    """SINGLE cannot repair it; the checkpoint before is used."""
    settings = global_store(empty)
    empty.launch(FULL, settings, checkpoints=2)
    [file] = burst_buffer(empty).glob("*/cairn.*/dataset.2.*/rank.5/files/step.2/left/rank.5")
    flip_byte(file)
    outcome = empty.launch(FULL, settings)
    assert outcome.restarted_from() == 1
    assert outcome.report["offered"] == [1]


def test_killed_in_commit_to_burst_buffer(empty: Job) -> None:
    """With storage for which no node's loss matters, nor does that of the rank that dies."""
    settings = global_store(empty)
    assert empty.launch(FULL, settings, checkpoints=3, kill_at="complete", kill_step=3,
                        kill_striker=5, kill_ranks="all", kill_nth=1,
                        kill_operation="pwrite:record.new").killed().step == 3
    empty.lose(*NODES)
    outcome = empty.launch(with_spares(*NODES), settings)
    assert outcome.restarted_from() == 2
    assert outcome.report["offered"] == [2]


@pytest.mark.parametrize("lost, step", [(("n1",), 5), (("n0", "n2"), 4), (("n0", "n1"), -1)])
def test_levels_by_interval(empty: Job, lost: Tuple[str, ...], step: int) -> None:
    """Checkpoint 5 is in sets of four, which hold one node; 4 in sets of two: n0, n1 and n2, n3."""
    settings = two_levels(empty)
    assert empty.launch(FULL, settings, checkpoints=5).report["written"] == [1, 2, 3, 4, 5]
    assert steps_in(empty.storage("n3") / "fast") == [5]
    assert steps_in(empty.storage("n3") / "large") == [4]
    empty.lose(*lost)
    outcome = empty.launch(with_spares(*lost), settings, checkpoints=1)
    assert outcome.restarted_from() == step
    assert outcome.report["written"] == [max(step, 0) + 1]


@pytest.mark.parametrize("lost, step", [(("n2",), 5), (("n1", "n2"), 4), (tuple(NODES), 4)])
def test_burst_buffer_behind_the_nodes(empty: Job, lost: Tuple[str, ...], step: int) -> None:
    settings = burst_buffer_behind(empty)
    empty.launch(FULL, settings, checkpoints=5)
    assert steps_in(burst_buffer(empty)) == [4]
    empty.lose(*lost)
    assert empty.launch(with_spares(*lost), settings).restarted_from() == step
