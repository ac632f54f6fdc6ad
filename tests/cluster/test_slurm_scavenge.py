"""More nodes of a job die than one, after which it cannot go on: what the others hold is enough for Reed-Solomon."""

import re
from pathlib import Path

from heat import Heat, Size, steps_of
from slurm import Slurm
from test_slurm import FIVE, ONCE, TWICE, slurm, started, submit  # noqa: F401: fixtures

REED_SOLOMON = {"SCR_COPY_TYPE": "RS", "SCR_SET_FAILURES": "2"}


def test_two_nodes_of_four_are_rebuilt_from_what_the_others_hold(
        slurm: Slurm, folder: Path, build: Path, size: Size, reference: Path) -> None:  # noqa: F811
    """There is no spare, SCR_FLUSH is 0, and the next allocation has another id: no cache is its own."""
    heat = Heat(folder, build, size)
    job = submit(slurm, heat, f"{TWICE} {' '.join(heat.program())}", ["--nodes=4", "--no-kill", "--time=5"],
                 **REED_SOLOMON)
    heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
    slurm.lose("node1", "node2")
    assert job.wait(90) == 4 and "too few nodes: 2" in job.printed(), job.said()
    saved = re.findall(r"scavenge +.*step\.(\d+) saved", job.printed())
    assert len(saved) == 1 and int(saved[0]) >= 2 * size.every, job.said()
    slurm.mend()
    job = submit(slurm, heat, f"{ONCE} {' '.join(heat.program())}", FIVE, **REED_SOLOMON)
    assert job.wait(90) == 0 and steps_of("start", job.output())[0] == int(saved[0]), job.said()
    assert heat.is_same_result(reference), "bit for bit"
