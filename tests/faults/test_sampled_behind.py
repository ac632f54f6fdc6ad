"""A run with CAIRN_PROTECT=behind is killed at a moment that a seed draws, mostly while a checkpoint is written and not
protected; nodes are lost with it, as many as the scheme holds, or none. The next run restarts from the newest checkpoint
that the records on disk prove.

The seed is the test's parameter; --seeds FROM:TO runs others than the few of every day.
"""

import random
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import pytest

from checkpointing import FULL, IN_PIECES, LARGE, NEWEST, NODES, RESTS, SPARES, Job, ranks_on, with_spares
from test_sampled_kills import HELD

EVERY_DAY = range(5)
BEHIND = {"CAIRN_PROTECT": "behind"}
CHECKPOINTS = 3
LAST = NEWEST + CHECKPOINTS
# A checkpoint of this program is exposed for some milliseconds.
LONGEST_US = 20_000
# The record of a part that is written and not protected has this at its end (docs/format/rank-record.md).
BOOT = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()


class Proven(NamedTuple):
    """The newest steps of which some rank has the record: all ranks had prepared theirs then. What
    only a lost node knew, that all others had prepared theirs, proves nothing."""

    written: int
    protected: int


def proven(job: Job) -> Proven:
    """By the records on all nodes that are left, of a run that had not died in SCR_Init: that gives written parts their checksums."""
    steps: Dict[bool, List[int]] = {True: [], False: []}
    for record in job.cluster.root.glob("nodes/*/*/cairn.*/dataset.*/rank.*/record"):
        steps[BOOT in record.read_bytes()].append(int(record.parent.parent.name.split(".")[1]))
    return Proven(max(steps[True] + steps[False]), max(steps[False]))


def draw_moment(chance: random.Random, scheme: str) -> Dict[str, object]:
    """A time after the beginning of a call, or a change to a file in the call or behind it."""
    if chance.random() < 0.6:
        call, first = chance.choice([("complete", NEWEST + 1), ("complete", NEWEST + 1), ("start", NEWEST + 2), ("finalize", 0)])
        step = first + chance.randrange(CHECKPOINTS - 1) if first else 0
        return {"kill_at": call, "kill_step": step, "kill_after_us": int(LONGEST_US * chance.random() ** 2)}
    # Each rank writes and commits two records; then it removes that of the oldest checkpoint.
    operation, most = chance.choice([("rename:record", 2), ("pwrite:record.new", 2), ("unlink:record", 1),
                                     ("pwrite", 2 if scheme == "SINGLE" else 6)])
    return {"kill_at": "complete", "kill_step": NEWEST + 1 + chance.randrange(CHECKPOINTS - 1), "kill_operation": operation,
            "kill_nth": chance.randint(1, most)}


def draw_piece(seed: int, scheme: str) -> Dict[str, object]:
    """For a fifth of the seeds: the beginning of a piece of the work on large files. SINGLE has little work, and the first
    checkpoint of a run is protected without a pause."""
    chance = random.Random(f"piece {seed}")
    if scheme == "SINGLE" or seed % 5 != 2:
        return {}
    return {"kill_at": "complete", "kill_step": NEWEST + 2, "kill_operation": "piece", "kill_nth": chance.randint(2, 5),
            **LARGE, **RESTS}


def draw_victims(chance: random.Random, lost: Tuple[str, ...]) -> Tuple[int, str]:
    """The striker and all who die: the ranks of lost nodes among them."""
    dying = [rank for node in lost for rank in ranks_on(node)] or [chance.randrange(len(FULL))]
    return chance.choice(dying), chance.choice(["all", ",".join(map(str, dying))])


def test_killed_while_a_checkpoint_is_exposed(job: Job, scheme: str, seed: int, request: pytest.FixtureRequest) -> None:
    chance = random.Random(seed)
    lost = chance.choice(HELD[scheme]) if HELD[scheme] and chance.random() < 0.6 else ()
    striker, victims = draw_victims(chance, lost)
    moment = draw_moment(chance, scheme)
    settings = {**BEHIND, "SCR_CACHE_SIZE": chance.choice("12")}
    size: Dict[str, object] = {}
    if piece := draw_piece(seed, scheme):
        moment, size = piece, LARGE
        settings.update(IN_PIECES)
    print(f"{scheme} {settings} {striker} {victims} {moment} {lost}\nreplay: python3 -m pytest "
          f"tests/faults/test_sampled_behind.py --build {request.config.getoption('build')} --seeds {seed}:{seed + 1}")
    death = job.launch(FULL, settings, checkpoints=CHECKPOINTS, kill_striker=striker, kill_ranks=victims, **moment).killed()
    job.lose(*lost)
    on_disk = proven(job)
    where = with_spares(*lost)
    if chance.random() < 0.3:  # the next one dies while it protects what was written, or rebuilds
        job.launch(where, settings, kill_at="init", kill_striker=chance.randrange(len(FULL)), kill_ranks="all",
                   kill_after_us=int(3 * LONGEST_US * chance.random()), **size).killed()
    outcome = job.launch(where, settings, **size)
    restarted = outcome.restarted_from()
    floor = on_disk.protected if lost else on_disk.written
    assert floor <= restarted <= LAST, (death, on_disk, outcome)
    if HELD[scheme] and chance.random() < 0.3:  # what was offered is protected now
        node = chance.choice([each for each in NODES if each not in lost])
        job.lose(node)
        again = [SPARES[node] if each == node else each for each in where]
        assert job.launch(again, settings, **size).restarted_from() == restarted, (death, on_disk)
