"""Programs in Fortran and Python, with the input and output of their languages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from conftest import NODES, require

HERE = Path(__file__).resolve().parent


def kill_and_go_on(job, pattern, program):
    """The step from which the second run went on. The first one computes for long after step 4, and is killed there."""
    command = job.wrapped(pattern, [*program, "6", "4"])
    job.kill_when(NODES, command, "*.4.*")
    outcome = job.run(job.lose("n1", 1), job.wrapped(pattern, [*program, "6"]))
    assert "WRONG" not in outcome.output + outcome.log, outcome
    return int(re.findall(r"started from (\d+)", outcome.output)[0])


def test_fortran(any_job, tmp_path):
    compiler = require(f"mpifort.{any_job.flavour}")
    subprocess.run([compiler, "-o", tmp_path / "steps", HERE / "steps.f90"], check=True)
    assert kill_and_go_on(any_job, r"(text|bin)\.(?<step>\d+)\.\d+$", [str(tmp_path / "steps")]) == 4


def test_python(job):
    """Debian builds mpi4py for Open MPI only."""
    program = ["/usr/bin/python3", "-B", str(HERE / "steps.py")]
    assert kill_and_go_on(job, r"(field|mesh)\.(?<step>\d+)\.\d+\.(npy|h5)$", program) == 4
