"""A program that knows nothing of Cairn under a real Slurm: `cairn run` starts it again after a node has died."""

import re
import shutil
import time
from pathlib import Path
from typing import Callable

import pytest

from heat import Heat
from slurm import BatchJob, Slurm
from test_slurm import FIVE, TWICE, slurm, started, submit  # noqa: F401: fixtures

PATTERN = r"out/state\.(?<step>\d+)\.\d+$"
STEPS = 12
MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
"""
COMMON = """
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
thermo_modify flush yes
restart 100 rest.*.%
"""


def until(is_there: Callable[[], bool], job: BatchJob, timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while not is_there():
        failure = job.failure() or ("" if time.monotonic() < end else f"it has not come so far\n{job.said()}")
        assert not failure, failure
        time.sleep(0.05)


def test_a_wrapped_program_goes_on_with_the_spare(slurm: Slurm, heat: Heat, build: Path) -> None:  # noqa: F811
    program = f"{build}/tests/wrapped/openmpi/program {STEPS} says pause=300"
    job = submit(slurm, heat, f"{TWICE} cairn wrap --checkpoint '{PATTERN}' -- {program}", FIVE, SCR_FLUSH="100")
    until(lambda: "written 5" in job.output(), job)
    slurm.lose("node2")
    assert job.wait(90) == 0, job.said()
    starts = [int(step) for step in re.findall(r"started from (\d+)", job.output())]
    assert len(starts) == 2 and starts[0] == 0 and 3 <= starts[1] < STEPS, job.said()
    assert "rebuilt rank 2" in job.printed() and "WRONG" not in job.output(), job.said()
    # MPI_Finalize copies the newest step.
    assert sorted(path.name for path in (heat.folder / "out").iterdir()) == [f"state.{STEPS}.{rank}" for rank in range(4)]


@pytest.mark.skipif(shutil.which("lmp") is None, reason="LAMMPS is not installed")
def test_lammps_goes_on_with_the_spare(slurm: Slurm, heat: Heat) -> None:  # noqa: F811
    """With the script for a restart, as its users write it."""
    (heat.folder / "in.start").write_text(MELT + COMMON + "run 3000\n")
    (heat.folder / "in.again").write_text("read_restart rest.*.%\n" + COMMON + "run 3000 upto\n")
    (heat.folder / "step").write_text("""#!/bin/sh
input=in.start
ls rest.*.base > /dev/null 2>&1 && input=in.again
exec lmp -in $input -log none
""")
    (heat.folder / "step").chmod(0o755)
    job = submit(slurm, heat, f"{TWICE} cairn wrap --checkpoint 'rest\\.(?<step>\\d+)\\.(\\d+|base)$' -- ./step", FIVE)
    until(lambda: re.search(r"^ +800 ", job.output(), re.MULTILINE) is not None, job)
    slurm.lose("node2")
    assert job.wait(120) == 0, job.said()
    found = re.search(r"the program finds step\.(\d+) as its newest", job.printed())
    assert found and 500 <= int(found[1]) <= 2900, job.said()
    assert re.search(r"^ +3000 ", job.output(), re.MULTILINE), job.said()
