"""A run is killed at a moment that a seed draws, under every scheme, and what the scheme holds is
lost with it; the next run finds the newest committed checkpoint.

The seed is the test's parameter; --seeds FROM:TO runs others than the few of every day. The moment is
a change to a file counted by the striker, or, as much of a call is messages, a time. What the counts
and times are drawn from is measured on calm runs of the same kind.
"""

import random
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

from checkpointing import FULL, NEWEST, NODES, SPARES, Death, Job

EVERY_DAY = range(7)
CHECKPOINTS = 2
# What a dying run was about: it writes, or its Init rebuilds what is lost, or moves all ranks.
WRITE, REBUILD, MOVE = "write", "rebuild", "move"
CALLS = {WRITE: ["init", "restart", "start", "complete", "complete", "complete"],
         REBUILD: ["init"], MOVE: ["init"]}
# What each scheme holds, in the sets that the nodes were in.
HELD = {"SINGLE": [], "XOR": [(node,) for node in NODES],
        "PARTNER": [("n0", "n2"), ("n1", "n3"), ("n2",)],
        "RS": [("n0", "n1"), ("n0", "n3"), ("n1", "n2"), ("n1", "n3"), ("n3",)]}

Calm = Callable[..., Dict[str, Any]]


def replaced(where: List[str], lost: Tuple[str, ...]) -> List[str]:
    """A spare, or its spare, where a node was lost."""
    spares = {**SPARES, **{spare: "second." + spare for spare in SPARES.values()}}
    return [spares[node] if node in lost else node for node in where]


def backwards(where: List[str]) -> List[str]:
    """Nodes and ranks the other way round, and two ranks exchanged, so that sets become crowded."""
    moved = where[::-1]
    moved[0], moved[3] = moved[3], moved[0]
    return moved


@dataclass
class Plan:
    """What a seed says."""

    kind: str
    lost_before: Tuple[str, ...]
    where: List[str]
    striker: int
    victims: str
    lost_after: Tuple[str, ...]
    keep: str
    moment: Dict[str, object]

    def launch_options(self) -> Dict[str, object]:
        return {"checkpoints": CHECKPOINTS if self.kind == WRITE else 0,
                "kill_striker": self.striker, "kill_ranks": self.victims, **self.moment}


def draw_moment(chance: random.Random, kind: str, striker: int,
                effort: Dict[str, Any]) -> Dict[str, object]:
    """A change to a file, if the striker makes any in that call, else a time within it. Not one of
    the last tenth: which of two neighbours removes a folder is a race, so counts vary a little."""
    call = chance.choice(CALLS[kind])
    step = NEWEST + chance.randint(1, CHECKPOINTS) if call in ("start", "complete") else 0
    moment: Dict[str, object] = {"kill_at": call, "kill_step": step}
    changes = effort[call]["changes"][striker]
    if changes > 0 and chance.random() < 0.7:
        moment["kill_nth"] = chance.randint(1, max(1, changes * 9 // 10))
    else:
        moment["kill_after_us"] = int(chance.random() * effort[call]["seconds"] * 1e6)
    return moment


def draw(seed: int, scheme: str, flavour: str, calm: Calm) -> Plan:
    chance = random.Random(seed)
    # SINGLE has nothing to rebuild from.
    kind = chance.choice([WRITE, WRITE, MOVE] + ([REBUILD] if HELD[scheme] else []))
    lost = chance.choice(HELD[scheme]) if HELD[scheme] else ()
    if (kind, scheme) == (MOVE, "PARTNER"):
        lost = lost[:1]  # nodes that are not partners before the move may be after it
    lost_before = lost if kind == REBUILD else ()
    where = replaced(backwards(FULL) if kind == MOVE else FULL, lost_before)
    # In a rebuild, what is lost a second time is the spares.
    lost_after = tuple(SPARES[node] for node in lost) if kind == REBUILD else lost
    if chance.random() < 0.3:
        lost_after = ()
    dying = [rank for rank in range(8) if where[rank] in lost_after]
    striker = chance.choice(dying or range(8))
    everyone = not dying or chance.random() < 0.5
    return Plan(kind, lost_before, where, striker,
                "all" if everyone else ",".join(map(str, dying)), lost_after, chance.choice("12"),
                draw_moment(chance, kind, striker, calm(flavour, scheme, kind, lost_before)))


def acceptable(death: Death) -> Set[int]:
    """From what the next run may restart."""
    if death.call != "complete":
        return {death.step - 1 if death.step else NEWEST}
    before_commit = death.what == "pwrite"
    after_commit = death.where == "outside" or death.what in ("unlink", "rmdir")
    return ({death.step - 1, death.step} - ({death.step} if before_commit else set())
            - ({death.step - 1} if after_commit else set()))


@pytest.fixture(scope="session")
def calm(build, written) -> Calm:
    """calm(flavour, scheme, kind, lost_before): the effort of a run that is left alone."""
    known: Dict[Tuple, Dict[str, Any]] = {}

    def of(flavour: str, scheme: str, kind: str, lost: Tuple[str, ...]) -> Dict[str, Any]:
        key = (flavour, scheme, kind, lost)
        if key not in known:
            where = replaced(backwards(FULL) if kind == MOVE else FULL, lost)
            with Job(build, flavour, scheme) as job:
                job.copy(written(flavour, scheme)).lose(*lost)
                outcome = job.launch(where, checkpoints=CHECKPOINTS if kind == WRITE else 0)
                assert outcome.restarted_from() == NEWEST
                known[key] = outcome.report["effort"]
        return known[key]

    return of


def judge(job: Job, plan: Plan) -> None:
    job.lose(*plan.lost_before)
    death = job.launch(plan.where, {"SCR_CACHE_SIZE": plan.keep}, **plan.launch_options()).killed()
    job.lose(*plan.lost_after)
    outcome = job.launch(replaced(plan.where, plan.lost_after))
    assert outcome.restarted_from() in acceptable(death), (death, outcome)
    assert outcome.report["offered"] == [outcome.report["restart"]], (death, outcome)


def test_killed_at_sampled_moment(job: Job, scheme: str, flavour: str, seed: int, calm: Calm,
                                  request: pytest.FixtureRequest) -> None:
    plan = draw(seed, scheme, flavour, calm)
    print(f"{scheme} {plan}\nreplay: python3 -m pytest tests/faults/test_sampled_kills.py "
          f"--build {request.config.getoption('build')} --seeds {seed}:{seed + 1}")
    judge(job, plan)
