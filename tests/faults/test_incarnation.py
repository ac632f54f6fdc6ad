"""A dataset is known by its UUID: a node that comes back with an older one is never mixed in."""

import shutil
from pathlib import Path

from checkpointing import FULL, NODES, Job, with_spares


def put_aside(job: Job, node: str) -> Path:
    """Takes a node out with all that it holds; where its storage is kept."""
    kept = job.cluster.root / f"aside.{node}"
    shutil.move(str(job.storage(node)), str(kept))
    return kept


def test_node_returns_with_same_number_of_another_job(empty: Job) -> None:
    """Dataset 5 is written twice, with other bytes; the node kept the first."""
    empty.launch(FULL, checkpoints=5, seed=1)
    kept = put_aside(empty, "n1")
    empty.lose(*NODES)
    empty.launch(with_spares("n1"), checkpoints=5, seed=2)
    empty.lose("m1")
    shutil.move(str(kept), str(empty.storage("n1")))
    assert empty.launch(FULL, seed=2).restarted_from() == 5


def test_node_returns_with_older_datasets(empty: Job) -> None:
    """The run went on without the node, which comes back where its replacement was lost."""
    empty.launch(FULL, checkpoints=3)
    kept = put_aside(empty, "n1")
    outcome = empty.launch(with_spares("n1"), checkpoints=2)
    assert outcome.restarted_from() == 3
    empty.lose("m1")
    shutil.move(str(kept), str(empty.storage("n1")))
    assert empty.launch(FULL).restarted_from() == 5


def test_node_returns_beside_its_replacement(empty: Job) -> None:
    """Both nodes run ranks; only the replacement's data are of the newest checkpoint."""
    empty.launch(FULL, checkpoints=3)
    kept = put_aside(empty, "n1")
    empty.launch(with_spares("n1"), checkpoints=2)
    shutil.move(str(kept), str(empty.storage("n1")))
    both = ["n0", "n0", "n1", "m1", "n2", "n2", "n3", "n3"]
    assert empty.launch(both).restarted_from() == 5
