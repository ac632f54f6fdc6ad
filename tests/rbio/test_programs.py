"""Programs in each language that make the calls of rbio.h: in order, in disorder, and with another MPI."""

import os
import shutil
import subprocess
from itertools import permutations
from pathlib import Path
from typing import Tuple

import pytest

from cluster import Cluster, launcher_of
from steps import NEWEST, Steps

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
BAD_SETTING = 4


def compiler(language: str, flavour: str) -> str:
    """Debian's name of an MPI's compiler (mpicc.openmpi), else the plain one."""
    found = shutil.which(f"{language}.{flavour}") or shutil.which(language)
    if found is None:
        pytest.skip(f"no {language} for {flavour}")
    return found


def build_program(source: Path, language: str, flavour: str, library: Path, program: Path, *options: str) -> None:
    done = subprocess.run([compiler(language, flavour), *options, str(source), str(library),
                           f"-Wl,-rpath,{library.parent}", "-o", str(program)], cwd=program.parent, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def library_of(build: Path, flavour: str) -> Path:
    return next((build / "lib" / flavour).glob("libcairn*.so"))


@pytest.mark.parametrize("placement", [["n0", "n0"], ["n0", "n1", "n0"]])
def test_each_call_does_what_the_header_says(steps: Steps, placement: "list[str]") -> None:
    steps.run(placement, "calls", steps.directory)


def test_each_misuse_returns_a_code_and_one_line(steps: Steps) -> None:
    steps.run(["n0", "n1"], "misuse", steps.directory)
    lines = [line for line in steps.log.splitlines() if line.startswith("cairn: ")]
    assert len(lines) > 60
    assert all(line.startswith("cairn: error: ") and
               ("rbio_" in line or "different calls" in line) for line in lines), steps.log
    # Rank 0 prints that of a collective call, and each rank that of its own.
    assert sum("step -1 is negative" in line for line in lines) == 1
    assert sum("rank 1: rbio_test: ticket 99" in line for line in lines) == 1


def test_cxx_with_two_series_on_parts_of_the_world(steps: Steps) -> None:
    output = steps.run(["n0", "n0", "n1", "n1"], "program_cpp", steps.directory)
    assert output.count(": restored\n") == 4


def test_fortran(cluster: Cluster, build: Path, flavour: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    for source in (INCLUDE / "rbio.f90", HERE / "program.f90"):
        options = ["-c"] if source.name == "rbio.f90" else []
        build_program(source, "mpifort", flavour, library_of(build, flavour), program, "-Wall", "-Werror", *options)
    code, output, log = cluster.run(["n0", "n1"], [str(program), str(cluster.root / "series")])
    assert code == 0 and "all calls made" in output, f"{output}\n{log}"


def test_two_runs_cannot_write_one_series(steps: Steps) -> None:
    """The second one fails with a message while the first lives."""
    lock = steps.directory / ".rbio" / "lock"
    steps.write(["n0"], "", [1])
    holder = subprocess.Popen(["flock", str(lock), "sleep", "60"], start_new_session=True)
    try:
        while subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode == 0:
            pass
        with pytest.raises(AssertionError, match="has this series open"):
            steps.restore(["n0"], NEWEST)
    finally:
        os.killpg(holder.pid, 15)
        holder.wait()
    assert steps.restore(["n0"], NEWEST) == [1]


@pytest.fixture(params=list(permutations(NAMES)), ids=lambda pair: " and ".join(pair))
def pair(request: pytest.FixtureRequest, build: Path) -> Tuple[str, str]:
    if not all((build / "tests" / "rbio" / name / "program").exists() and launcher_of(name) for name in NAMES):
        pytest.skip("needs both MPIs")
    return request.param


def test_a_library_for_another_mpi_fails_to_open(pair: Tuple[str, str], build: Path, tmp_path: Path) -> None:
    mine, other = pair
    source, program = tmp_path / "other.c", tmp_path / "other"
    source.write_text("""#include <rbio.h>
        #include <stdio.h>
        int main(int argc, char** argv) {
          rbio_series* series = NULL;
          MPI_Init(&argc, &argv);
          printf("open: %d\\n", rbio_open(MPI_COMM_WORLD, "series", NULL, &series));
          MPI_Finalize();
          return series != NULL;
        }""")
    build_program(source, "mpicc", mine, library_of(build, other), program, f"-I{INCLUDE}")
    with Cluster(mine, "cairn-rbio") as cluster:
        code, output, log = cluster.run(["n0", "n0"], [str(program)])
    assert code == 0 and output == f"open: {BAD_SETTING}\n" * 2, log
    assert log.count("cairn: error: rbio_open") == 1 and all(name in log for name in NAMES.values()), log


def test_a_launcher_of_another_mpi_fails_to_open(pair: Tuple[str, str], build: Path) -> None:
    launcher, other = pair
    with Cluster(launcher, "cairn-rbio") as cluster:
        program = build / "tests" / "rbio" / other / "program"
        code, _, log = cluster.run(["n0", "n0"], [str(program), "write", str(cluster.root / "series"), "", "1"])
        assert not (cluster.root / "series").exists()
    assert code != 0 and log.count("cairn: error: rbio_open") == 1, log
    assert all(name in log for name in NAMES.values()), log
