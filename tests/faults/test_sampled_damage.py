"""Bytes anywhere in the files of a node are inverted, and whole nodes lost beside, as a seed draws it,
under every scheme: repaired where the scheme's strength allows, else refused and the checkpoint before
offered, and never a wrong byte.

The seed is the test's parameter; --seeds FROM:TO runs others than the few of every day.
"""

import random
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Set, Tuple

import pytest

from checkpointing import FULL, NEWEST, NODES, Job, ranks_on, with_spares
from damage import flip_byte

EVERY_DAY = range(5)
PAIRS = [("n0", "n1"), ("n0", "n2"), ("n0", "n3"), ("n1", "n2"), ("n1", "n3"), ("n2", "n3")]
# Which nodes may fail together beyond one at a time. PARTNER keeps the copies on the next node.
PAIRS_HELD: Dict[str, List[Tuple[str, ...]]] = {
    "SINGLE": [], "XOR": [], "PARTNER": [("n0", "n2"), ("n1", "n3")], "RS": list(PAIRS)}


@dataclass
class Plan:
    """What a seed says."""

    flips: List[Tuple[int, str, float]]
    lost: Tuple[str, ...]

    def failed(self) -> FrozenSet[str]:
        """The nodes that are lost or have a damaged file."""
        return frozenset(self.lost) | {FULL[rank] for rank, _, _ in self.flips}


def held_by(scheme: str) -> List[Tuple[str, ...]]:
    """The nodes that may fail together."""
    alone = [(node,) for node in NODES] if scheme != "SINGLE" else []
    return [(), *alone, *PAIRS_HELD[scheme]]


def draw(seed: int, scheme: str) -> Plan:
    """One byte as a rule, sometimes several; of one node. Never more nodes lost than are held, so that
    the older checkpoint, which nobody damages, can be restored."""
    chance = random.Random(seed)
    ranks = ranks_on(chance.choice(NODES))
    kinds = ["left", "right", "record"] + (["parity.1"] if scheme != "SINGLE" else [])
    flips = [(chance.choice(ranks), chance.choice(kinds), chance.random())
             for _ in range(chance.choice([1, 1, 3]))]
    return Plan(flips, chance.choice(held_by(scheme)))


def acceptable(plan: Plan, scheme: str) -> Set[int]:
    """From what the run may restart. What is damaged beyond the promise may be whole all the same,
    where the blocks lie in different stripes, or another node has a copy of the record."""
    if plan.failed() in map(frozenset, held_by(scheme)):
        return {NEWEST}
    return {NEWEST - 1} if scheme == "SINGLE" else {NEWEST - 1, NEWEST}


def test_bytes_flipped_at_sampled_places(job: Job, scheme: str, flavour: str, seed: int,
                                         request: pytest.FixtureRequest) -> None:
    plan = draw(seed, scheme)
    print(f"{scheme}, {flavour}, {plan}\nreplay: python3 -m pytest tests/faults/test_sampled_damage.py "
          f"--build {request.config.getoption('build')} --seeds {seed}:{seed + 1}")
    for rank, kind, position in plan.flips:
        flip_byte(job.file(kind, rank), position)
    job.lose(*plan.lost)
    outcome = job.launch(with_spares(*plan.lost), checkpoints=1)
    assert outcome.restarted_from() in acceptable(plan, scheme), outcome
    assert outcome.report["offered"][-1] == outcome.report["restart"], outcome
    assert outcome.report["written"] == [outcome.report["restart"] + 1]
