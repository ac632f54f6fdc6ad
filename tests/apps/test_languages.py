"""Programs in Fortran and Python, with the input and output of their languages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import List

import pytest

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


def interpreter(job, links: Path) -> List[str]:
    """Debian builds mpi4py for Open MPI only. That of the Python index, for MPICH, asks for its library by another name
    than Debian gives it."""
    if job.flavour == "openmpi":
        return ["/usr/bin/python3", "-B"]
    packages = job.build / "python"
    if not (packages / "mpi4py").is_dir():
        pytest.fail(f"{packages} has no mpi4py: make test-apps installs it")
    (links / "libmpi.so.12").symlink_to(find_library("libmpich.so.12"))
    return ["env", f"PYTHONPATH={packages}", f"LD_LIBRARY_PATH={links}", "MPI4PY_MPIABI=mpich", "/usr/bin/python3", "-B"]


def find_library(name: str) -> str:
    known = subprocess.run(["/sbin/ldconfig", "-p"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.findall(rf"{re.escape(name)} .* => (\S+)", known)[0]


def test_python(any_job, tmp_path):
    program = [*interpreter(any_job, tmp_path), str(HERE / "steps.py")]
    assert kill_and_go_on(any_job, r"(field|mesh)\.(?<step>\d+)\.\d+\.(npy|h5)$", program) == 4
