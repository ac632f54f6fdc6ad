"""Fortran programs as users compile them, with what is installed: scrf.h, the module scr, libcairn."""

from pathlib import Path
from typing import List

import pytest

from test_install import ROOT, compiler, library, prefix, run, run_ranks  # noqa: F401

SOURCES = Path(__file__).resolve().parent / "fortran"
HEAT = ROOT / "examples" / "2_heat.f90"


@pytest.fixture
def build(prefix, primary, flavour, tmp_path):
    def of(source: Path) -> Path:
        libdir = library(prefix, primary, flavour).parent
        program = tmp_path / source.name.replace(".", "_")
        language = "mpicc" if source.suffix == ".c" else "mpifort"
        run([compiler(language, flavour), "-Wall", "-Werror", source, "-o", program,
             f"-I{prefix / 'include'}", f"-L{libdir}", "-lcairn", f"-Wl,-rpath,{libdir}"], cwd=tmp_path)
        return program
    return of


def heat(launch: List[str], program: Path, folder: Path, steps: int) -> str:
    folder.mkdir(exist_ok=True)
    return run_ranks(launch, program, folder,
                     arguments=["40", "60", steps, "10", folder / "result"])


def test_scrf_h_in_fixed_form(build, launch, flavour, tmp_path):
    assert "all calls made" in run_ranks(launch[flavour], build(SOURCES / "fixed_form.f"), tmp_path)


def test_with_the_module_mpi(build, launch, flavour, tmp_path):
    program = build(SOURCES / "with_mpi_module.f90")
    assert "restarted from" not in run_ranks(launch[flavour], program, tmp_path)
    assert run_ranks(launch[flavour], program, tmp_path).count("restarted from first one\n") == 2


def test_without_checkpoints(build, launch, flavour, tmp_path):
    output = run_ranks(launch[flavour], build(SOURCES / "disabled.f90"), tmp_path, SCR_ENABLE="0")
    assert output.count("went on without\n") == 2


def test_by_find_package_and_scrf(prefix, launch, primary, tmp_path):
    run(["cmake", "-S", SOURCES, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DMPI_Fortran_COMPILER={compiler('mpifort', primary)}"])
    run(["cmake", "--build", tmp_path / "build"])
    assert "restarted from" not in run_ranks(launch[primary], tmp_path / "build/program", tmp_path)


def steps_in(output: str) -> List[str]:
    """What the program printed; the MPI may print warnings between."""
    return [line for line in output.splitlines() if "step " in line]


def test_shared_files_of_fortran_are_those_of_c(build, launch, flavour, tmp_path):
    program = build(ROOT / "examples" / "4_shared_file.f90")
    first = steps_in(run_ranks(launch[flavour], program, tmp_path))
    assert len(first) == 1 and first[0].startswith("step 60: ")
    assert steps_in(run_ranks(launch[flavour], program, tmp_path)) == ["restored step 60", *first]
    in_c = build(ROOT / "examples" / "4_shared_file.c")
    assert steps_in(run_ranks(launch[flavour], in_c, tmp_path)) == ["restored step 60", *first]
