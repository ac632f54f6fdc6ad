"""MPI programs under cairn wrap, with the command before the launcher and behind it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Place

MPIS = {"openmpi": ("mpicc.openmpi", ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]),
        "mpich": ("mpicc.mpich", ["mpiexec.mpich"])}
PATTERN = r"restart\.(?<step>\d+)\.\d+(\.tmp)?$"
NEWEST = [f"restart.3.{rank}" for rank in range(3)]


@pytest.fixture(params=MPIS)
def mpi(request: pytest.FixtureRequest, tmp_path: Path) -> "tuple[list[str], Path]":
    """A launcher, and the program that is built for it."""
    compiler, launcher = MPIS[request.param]
    if not shutil.which(compiler) or not shutil.which(launcher[0]):
        pytest.skip(f"{request.param} is missing")
    program = tmp_path / "mpi_steps"
    subprocess.run([compiler, Path(__file__).with_name("mpi_steps.c"), "-o", program], check=True)
    return [*launcher, "-np", "3"], program


@pytest.mark.parametrize("is_before", [True, False])
def test_each_rank_finds_its_newest_file(place: Place, build: Path, mpi: "tuple[list[str], Path]", is_before: bool) -> None:
    launcher, program = mpi
    wrap = [build / "src/tools/cairn", "wrap", "--checkpoint", PATTERN, "--cache", place.cache, "--"]
    words = [*wrap, *launcher, program] if is_before else [*launcher, *wrap, program]
    environment = {**os.environ, "CAIRN_WRAP_FREE_PERCENT": "0", "SCR_CNTL_BASE": str(place.cache), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    done = subprocess.run([str(word) for word in words], cwd=place.prefix, env=environment, text=True, capture_output=True,
                          timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "0 ranks wrong\n") and "libcairn-interpose:" not in done.stderr, done
    assert [name for name in place.plain() if not name.startswith(".cairn/")] == NEWEST


def test_the_files_are_in_the_cache_while_the_program_runs(place: Place, build: Path, mpi: "tuple[list[str], Path]") -> None:
    launcher, program = mpi
    place.patterns = [PATTERN]
    place.more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with place.hold():
        done = place.run(*launcher, program)
        assert (done.returncode, done.stdout) == (0, "0 ranks wrong\n")
        assert place.cached()[-3:] == NEWEST
