"""Processes that are killed while datasets are copied behind the program's back (SCR_FLUSH_ASYNC=1): what is
published is whole, what is committed is not lost, and nothing is left over.

--seeds FROM:TO runs others than the few of every day.
"""

import random
from pathlib import Path
from typing import Dict, List

import pytest

from checkpointing import FULL, NEWEST, NODES, Job
from commands import Commands

EVERY_DAY = range(2, 5)  # the last one under the next MPI
ASYNC = {"SCR_FLUSH": "1", "SCR_FETCH": "1", "SCR_FLUSH_ASYNC": "1"}
CHECKPOINTS = 3
# By how long the copies take: at full speed, long enough for what is begun in the call to end; else amid all of it.
LONGEST_US = {"0": 30_000, "200000": 200_000, "60000": 1_000_000}  # by SCR_FLUSH_ASYNC_BW


def is_published(job: Job, step: int) -> bool:
    return any(job.cluster.prefix.glob(f".cairn/datasets/dataset.{step}.*"))


def has_all_parts(job: Job, step: int) -> bool:
    return len(list(job.cluster.prefix.glob(f".cairn/epoch.*/dataset.{step}.*/done/0.*"))) == len(FULL)


def expect_nothing_left_over(job: Job) -> None:
    assert not list(job.cluster.prefix.glob(".cairn/closed.*"))
    assert not list(job.cluster.prefix.glob("step.*/*/.cairn.*"))


@pytest.mark.each_mpi
def test_all_that_was_written_is_there_at_the_end(job: Job) -> None:
    last = NEWEST + CHECKPOINTS
    assert job.launch(FULL, ASYNC, checkpoints=CHECKPOINTS).report["written"] == list(range(NEWEST + 1, last + 1))
    assert is_published(job, last)
    expect_nothing_left_over(job)
    job.lose(*NODES)
    assert job.launch(FULL, ASYNC).restarted_from() == last


def test_killed_at_any_time(job: Job, seed: int) -> None:
    """Some or all ranks, at a time after a Complete was called; then all nodes go, or none does."""
    chance = random.Random(seed)
    step = NEWEST + chance.randint(1, CHECKPOINTS - 1)
    speed = chance.choice(list(LONGEST_US))
    settings: Dict[str, str] = {**ASYNC, "SCR_CACHE_SIZE": chance.choice("12"), "SCR_FLUSH_ASYNC_BW": speed}
    outcome = job.launch(FULL, settings, checkpoints=CHECKPOINTS, kill_at="complete", kill_step=step,
                         kill_striker=chance.randrange(len(FULL)),
                         kill_ranks=chance.choice(["all", "0", "0,1", "6,7", "2,3,4,5"]),
                         kill_after_us=chance.randrange(LONGEST_US[speed]))
    steps = range(NEWEST + CHECKPOINTS, NEWEST - 1, -1)
    safe = [one for one in steps if is_published(job, one) or has_all_parts(job, one)]
    committed = [one for one in steps if len(list(
        job.cluster.root.glob(f"nodes/*/*/cairn.*/dataset.{one}.*/rank.*/record"))) == len(FULL)]
    lost = chance.random() < 0.5 and bool(safe)
    if lost:
        job.lose(*NODES)
    restarted = job.launch(FULL, ASYNC).restarted_from()
    assert restarted >= max(safe[:1] if lost else safe[:1] + committed[:1]), (seed, outcome.death, safe, committed)
    expect_nothing_left_over(job)


def planned(job: Job) -> List[int]:
    """The steps that a dead run had planned to copy, and nobody has published."""
    plans = job.cluster.prefix.glob(".cairn/epoch.*/dataset.*/dataset")
    return sorted(int(plan.parent.name.split(".")[1]) for plan in plans)


def test_a_drain_finishes_what_the_dead_program_had_planned(job: Job, build: Path, seed: int) -> None:
    """All ranks die amid a slow copy; then drains are killed and started again, some at the same time. All nodes are lost at
    the end."""
    chance = random.Random(seed)
    step = NEWEST + 1
    job.launch(FULL, ASYNC)  # so that the slow launch has nothing older to copy at its beginning
    job.launch(FULL, {**ASYNC, "SCR_FLUSH_ASYNC_BW": "20000"}, checkpoints=1, kill_at="complete", kill_step=step,
               kill_striker=chance.randrange(len(FULL)), kill_ranks="all", kill_after_us=chance.randrange(500_000, 900_000))
    assert planned(job) == [step], seed
    commands = Commands(build, job)
    for node in chance.sample(NODES, len(NODES)):
        while chance.random() < 0.5:
            commands.killed(node, chance.uniform(0, 0.05), "drain-node", "--run-ended")
    if chance.random() < 0.5:
        commands.run_at_once(NODES, "drain-node", "--run-ended")
    else:
        for node in chance.sample(NODES, len(NODES)):
            commands.run(node, "drain-node", "--run-ended")
    assert planned(job) == [] and is_published(job, step), seed
    job.lose(*NODES)
    assert job.launch(FULL, ASYNC).restarted_from() == step
    expect_nothing_left_over(job)
