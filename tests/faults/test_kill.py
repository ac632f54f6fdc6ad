"""Processes are killed in the middle of a call; the next run finds the newest committed checkpoint
and is never offered a partial one."""

import pytest

from checkpointing import FULL, NEWEST, Job, Outcome, ranks_on, with_spare

MIDDLE = ("start", "between", "before-complete")
NODE = "n1"
WHO = {"all": "all", "node": ",".join(map(str, ranks_on(NODE)))}
FRACTIONS = (0.1, 0.35, 0.6, 0.85)


def restart(job: Job, storage_lost: bool) -> Outcome:
    """Starts again, on the spare if the node's storage went with its processes."""
    if not storage_lost:
        return job.launch(FULL)
    job.cluster.lose_storage(NODE)
    return job.launch(with_spare(NODE))


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("point", MIDDLE)
def test_killed_before_commit(job: Job, point: str, who: str) -> None:
    killed = job.launch(FULL, checkpoints=1, kill_at=point, kill_step=NEWEST + 1,
                        kill_ranks=WHO[who])
    assert killed.code != 0
    outcome = restart(job, storage_lost=who == "node")
    assert outcome.restarted_from() == NEWEST
    assert outcome.report["offered"] == [NEWEST]


@pytest.mark.parametrize("fraction", FRACTIONS[1:3])
def test_killed_in_start(job: Job, fraction: float) -> None:
    """If Start is over by then, it happens during the writes; nothing is committed yet."""
    job.launch(FULL, checkpoints=1, kill_at="in-start", kill_step=NEWEST + 1,
               kill_after_us=int(job.calm["start_s"] * fraction * 1e6))
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.parametrize("keep", ["1", "2"])
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_killed_in_complete(job: Job, fraction: float, who: str, keep: str) -> None:
    """Somewhere between the first byte encoded and the last old dataset evicted; a store for one
    dataset must not give up the old one too early."""
    after_us = int(job.calm["complete_s"] * fraction * 1e6)
    settings = {"SCR_CACHE_SIZE": keep}
    job.launch(FULL, settings, checkpoints=1, kill_at="complete", kill_step=NEWEST + 1,
               kill_ranks=WHO[who], kill_after_us=after_us)
    outcome = restart(job, storage_lost=who == "node")
    assert outcome.restarted_from() in (NEWEST, NEWEST + 1)
    assert outcome.report["offered"] == [outcome.report["restart"]]


@pytest.mark.parametrize("who", ["all", "spare"])
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_killed_in_init_while_rebuilding(job: Job, calm_rebuild: dict, fraction: float,
                                         who: str) -> None:
    """A second failure during move and rebuild loses nothing."""
    job.cluster.lose_storage(NODE)
    job.launch(with_spare(NODE), kill_at="init", kill_ranks=WHO["all" if who == "all" else "node"],
               kill_after_us=int(calm_rebuild["init_s"] * fraction * 1e6))
    if who == "spare":
        job.cluster.lose_storage("n4")
    assert job.launch(with_spare(NODE, "n5" if who == "spare" else "n4")).restarted_from() == NEWEST


@pytest.mark.parametrize("fraction", FRACTIONS[1:3])
def test_killed_in_init_while_moving(job: Job, calm_rebuild: dict, fraction: float) -> None:
    """Every rank is on another node than before, so that everything moves."""
    job.launch(FULL[::-1], kill_at="init",
               kill_after_us=int(calm_rebuild["init_s"] * fraction * 1e6))
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.each_mpi
def test_killed_in_complete_then_again_in_init(job: Job) -> None:
    job.launch(FULL, checkpoints=1, kill_at="complete", kill_step=NEWEST + 1, kill_ranks="3",
               kill_after_us=int(job.calm["complete_s"] * 5e5))
    job.launch(FULL, kill_at="init", kill_ranks="5", kill_after_us=2000)
    assert job.launch(FULL).restarted_from() in (NEWEST, NEWEST + 1)
