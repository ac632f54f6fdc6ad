"""Programs that overwrite the same names in each step: each time counts as a step."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.any_mpi
PAUSE = "pause=400"  # some rounds of the agreement, and the time to protect a step
ONE = r"out/state\.\d+(\.part)?$"
TURN = r"out/state\.(?<step>[ab])\.\d+(\.part)?$"
PAIRS = r"out/state\.[ab]\.\d+$"
CANNOT = "cannot become a checkpoint"
# The options of the program, the pattern, the steps that are no checkpoints, and those that are there after a death in step 6.
WAYS = {
    "one name": (["one"], ONE, ["step.1"], (4, 5)),
    "one name, by rename": (["one", "rename"], ONE, ["step.1"], (4, 5)),
    "two names in turn": (["turn"], TURN, [], (4, 5)),
    "two names in turn, by rename": (["turn", "rename"], TURN, [], (4, 5)),
    "two names in turn, which are one step": (["turn"], PAIRS, ["step.1"], (4,)),
}


def run(job, steps: int, pattern: str, *options: str, **more):
    return job.run_other([str(job.program), str(steps), *options], pattern, **more)


def restored(outcome) -> int:
    """The number in the name of the checkpoint from which the program has started."""
    found = re.search(r"the program finds step\.(\d+) as its newest", outcome.log)
    assert found, outcome
    return int(found[1])


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_program_goes_on_from_its_last_whole_step_on_a_spare(job, way):
    options, pattern, lost, found = WAYS[way]
    first = run(job, 7, pattern, "die=6", PAUSE, *options)
    assert first.code != 0 and first.started_from == 0, first
    assert set(re.findall(rf"(step\.\d+) {CANNOT}", first.log)) <= set(lost), first
    nodes = job.lose("n1")
    second = run(job, 7, pattern, PAUSE, *options, nodes=nodes)
    assert second.code == 0 and second.started_from in found, second
    third = run(job, 8, pattern, PAUSE, *options, nodes=nodes)
    assert third.code == 0 and third.started_from in (6, 7), third
    assert restored(third) > restored(second)


def test_of_a_program_that_writes_too_fast_the_last_step_is_a_checkpoint(job):
    first = run(job, 60, ONE, "one")
    assert first.code == 0 and f"step.1 {CANNOT}" in first.log, first
    assert first.log.count(CANNOT) < 30, first  # no line for each step
    outcome = run(job, 61, ONE, "one", nodes=job.lose("n3"))
    assert (outcome.code, outcome.started_from) == (0, 60), outcome
