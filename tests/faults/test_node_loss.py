"""Nodes are lost between two runs."""

from typing import Callable, List, Tuple

import pytest

from checkpointing import FULL, NEWEST, NODES, Job, Outcome, in_turn, ranks_on, with_spares
from damage import delete_folder

# Some of the losses that each scheme holds and does not; src/session/session_faults_test.cpp has all of them. PARTNER
# keeps the copy of a node's data on the next one, that of the last on the first.
SURVIVED = [("PARTNER", ("n0", "n2")), ("PARTNER", ("n1", "n3")), ("RS", ("n0", "n1")), ("RS", ("n1", "n3"))]
TOO_MANY = [("XOR", ("n0", "n1")), ("XOR", ("n1", "n3")), ("PARTNER", ("n1", "n2")), ("PARTNER", ("n0", "n3")),
            ("RS", ("n0", "n1", "n2")), ("SINGLE", ("n2",))]


def said_what_is_missing(outcome: Outcome, job: Job, lost: Tuple[str, ...]) -> bool:
    """The nodes that are gone, or, of SINGLE, which has no other trace of it, a rank."""
    if job.scheme == "SINGLE":
        return outcome.said(f"rank {ranks_on(lost[0])[0]}")
    return outcome.said(*lost)


def on_survivors(*lost: str) -> List[str]:
    """Eight ranks on the nodes left, none where it was by habit: backwards and dealt out in turn."""
    survivors = [node for node in NODES if node not in lost]
    return [survivors[(7 - rank) % len(survivors)] for rank in range(8)]


def shuffled(*lost: str) -> List[str]:
    """Spares in the lost nodes' places, then every rank three places further round."""
    where = with_spares(*lost)
    return where[3:] + where[:3]


@pytest.mark.each_mpi
def test_whole_cluster_restarts_from_newest(job: Job) -> None:
    outcome = job.launch(FULL, checkpoints=1)
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["written"] == [NEWEST + 1]


@pytest.mark.parametrize("scheme, lost", in_turn(NODES))
def test_one_node_lost_restart_on_spare(job: Job, lost: str) -> None:
    job.lose(lost)
    outcome = job.launch(with_spares(lost), checkpoints=1)
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["written"] == [NEWEST + 1]


@pytest.mark.parametrize("scheme, lost", SURVIVED)
def test_two_nodes_lost_and_survived(job: Job, lost: Tuple[str, ...]) -> None:
    job.lose(*lost)
    assert job.launch(with_spares(*lost)).restarted_from() == NEWEST


@pytest.mark.parametrize("where", [on_survivors, shuffled])
@pytest.mark.parametrize("scheme, lost", [("XOR", ("n1",)), ("PARTNER", ("n1", "n3")), ("RS", ("n0", "n1"))])
def test_nodes_lost_ranks_permuted(job: Job, lost: Tuple[str, ...], where: Callable) -> None:
    job.lose(*lost)
    assert job.launch(where(*lost)).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme", ["SINGLE", "PARTNER", "XOR", "RS"])
def test_ranks_permuted_nothing_lost(job: Job) -> None:
    assert job.launch(FULL[::-1]).restarted_from() == NEWEST
    assert job.launch(FULL).restarted_from() == NEWEST


def test_rebuilt_dataset_is_protected_again(job: Job) -> None:
    """One node after the other, without a checkpoint in between."""
    job.lose("n1")
    assert job.launch(with_spares("n1")).restarted_from() == NEWEST
    job.lose("n2")
    assert job.launch(with_spares("n1", "n2")).restarted_from() == NEWEST


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme, lost", [("PARTNER", ("n0", "n2")), ("RS", ("n1", "n2"))])
def test_rebuilt_dataset_is_protected_again_other_schemes(job: Job, lost: Tuple[str, ...]) -> None:
    """As many as the scheme holds, and then the others."""
    job.lose(*lost)
    assert job.launch(with_spares(*lost)).restarted_from() == NEWEST
    job.lose(*(node for node in NODES if node not in lost))
    assert job.launch(with_spares(*NODES)).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, lost", TOO_MANY)
def test_too_many_nodes_lost(job: Job, lost: Tuple[str, ...]) -> None:
    """Both checkpoints are lost with them; the run says which nodes are missing and starts over."""
    job.lose(*lost)
    outcome = job.launch(with_spares(*lost), checkpoints=1)
    assert outcome.restarted_from() == -1
    assert outcome.report["have"] == 0
    assert outcome.report["offered"] == []
    assert said_what_is_missing(outcome, job, lost), outcome.log
    assert outcome.log.count("THE RUN STARTS FROM SCRATCH") == 1, outcome.log
    assert outcome.report["written"] == [1]


def test_a_run_that_started_over_can_be_restarted(job: Job) -> None:
    job.lose("n1", "n2")
    assert job.launch(with_spares("n1", "n2"), checkpoints=1).report["written"] == [1]
    assert job.launch(with_spares("n1", "n2")).restarted_from() == 1


@pytest.mark.parametrize("scheme, lost", [("XOR", ("n1", "n2")), ("PARTNER", ("n1", "n2")),
                                          ("RS", ("n0", "n1", "n2")), ("SINGLE", ("n1",))])
def test_newest_lost_previous_is_used(job: Job, lost: Tuple[str, ...]) -> None:
    """One checkpoint is gone from more nodes than the scheme holds, the one before is not."""
    for node in lost:
        delete_folder(job.rank_folder(ranks_on(node)[0], NEWEST).parent)
    outcome = job.launch(FULL)
    assert outcome.restarted_from() == NEWEST - 1
    assert outcome.report["offered"] == [NEWEST - 1]
    assert said_what_is_missing(outcome, job, lost), outcome.log
