"""Nodes are lost between two runs."""

import pytest

from checkpointing import FULL, NEWEST, NODES, Job, with_spare
from damage import delete_folder


def on_survivors(lost: str) -> list:
    """Eight ranks on three nodes, none where it was by habit: backwards and dealt out in turn."""
    survivors = [node for node in NODES if node != lost]
    return [survivors[(7 - rank) % 3] for rank in range(8)]


def shuffled(lost: str) -> list:
    """The spare in the lost node's place, then every rank three places further round."""
    where = with_spare(lost)
    return where[3:] + where[:3]


@pytest.mark.each_mpi
def test_whole_cluster_restarts_from_newest(job: Job) -> None:
    outcome = job.launch(FULL, checkpoints=1)
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["written"] == [NEWEST + 1]


@pytest.mark.each_mpi
@pytest.mark.parametrize("lost", NODES)
def test_one_node_lost_restart_on_spare(job: Job, lost: str) -> None:
    job.cluster.lose_storage(lost)
    outcome = job.launch(with_spare(lost), checkpoints=1)
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["written"] == [NEWEST + 1]


@pytest.mark.parametrize("lost", NODES)
@pytest.mark.parametrize("where", [on_survivors, shuffled])
def test_one_node_lost_ranks_permuted(job: Job, lost: str, where) -> None:
    job.cluster.lose_storage(lost)
    assert job.launch(where(lost)).restarted_from() == NEWEST


def test_ranks_permuted_nothing_lost(job: Job) -> None:
    assert job.launch(FULL[::-1]).restarted_from() == NEWEST
    assert job.launch(FULL).restarted_from() == NEWEST


def test_rebuilt_dataset_is_protected_again(job: Job) -> None:
    """One node after the other, without a checkpoint in between."""
    job.cluster.lose_storage("n1")
    assert job.launch(with_spare("n1")).restarted_from() == NEWEST
    job.cluster.lose_storage("n2")
    twice = ["n5" if node == "n2" else node for node in with_spare("n1")]
    assert job.launch(twice).restarted_from() == NEWEST


@pytest.mark.parametrize("lost", [("n1", "n2"), ("n0", "n3")])
def test_two_nodes_of_a_set_lost(job: Job, lost: tuple) -> None:
    for node in lost:
        job.cluster.lose_storage(node)
    spares = dict(zip(lost, ("n4", "n5")))
    where = [spares.get(node, node) for node in FULL]
    outcome = job.launch(where, checkpoints=1)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == 0
    assert outcome.said(*lost), f"does not say which nodes are missing:\n{outcome.log}"
    assert len(outcome.report["written"]) == 1
    assert job.launch(where).restarted_from() == outcome.report["written"][0]


def test_newest_lost_on_two_nodes_previous_is_used(job: Job) -> None:
    for rank in (2, 4):
        delete_folder(job.rank_folder(rank, NEWEST).parent)
    assert job.launch(FULL).restarted_from() == NEWEST - 1
