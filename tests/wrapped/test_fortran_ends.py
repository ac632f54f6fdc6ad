"""MPI_Init, MPI_Init_thread, MPI_Finalize and MPI_Abort of a Fortran program reach the library, and then the MPI."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Set

import pytest

SOURCE = Path(__file__).resolve().parent / "ends.f90"
PATTERN = r"data\.(?<step>\d+)\.\d+$"
CODE = 7
# The module, the end of the names of its calls, and whether the program leaves out the arguments for errors.
FORMS = {"mpi": ("mpi", "_", False), "mpi_f08": ("mpi_f08", "_f08_", False), "mpi_f08 without errors": ("mpi_f08", "_f08_", True)}


def compiled(flavour: str, module: str, without_errors: bool, folder: Path) -> str:
    compiler = shutil.which(f"mpifort.{flavour}")
    if compiler is None:
        pytest.skip("there is no Fortran compiler for this MPI")
    text = SOURCE.read_text().replace("use mpi\n", f"use {module}\n")
    if without_errors:
        text = text.replace(", error)", ")").replace("(error)", "()")
    (folder / "ends.f90").write_text(text)
    built = subprocess.run([compiler, "-o", folder / "ends", folder / "ends.f90"], stderr=subprocess.PIPE, text=True, check=False)
    if module == "mpi_f08" and "Cannot open module file" in built.stderr:
        pytest.skip("this MPI has no module mpi_f08 for this compiler")
    assert built.returncode == 0, built.stderr
    return str(folder / "ends")


def bound_calls(folder: Path) -> Set[str]:
    """What the loader has bound from the program to the library, as LD_DEBUG logs it."""
    found: Set[str] = set()
    for log in folder.glob("bindings.*"):
        found.update(re.findall(r"binding file \S*/ends \[0\] to \S*libcairn-interpose\.so \[0\]: normal symbol `(\w+)'", log.read_text()))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_fortran_program_that_aborts_goes_on_from_a_whole_step(job, tmp_path, form):
    module, end, without_errors = FORMS[form]
    program = compiled(job.flavour, module, without_errors, tmp_path)
    watched = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / "bindings")}
    first = job.run_other([program, "5", "3", "thread"], PATTERN, **watched)
    assert (first.code, first.started_from) == (CODE, 0), first
    assert all(job.has_unfinished_job(node) for node in ("n0", "n1", "n2", "n3"))
    assert {f"mpi_init_thread{end}", f"mpi_abort{end}"} <= bound_calls(tmp_path)
    nodes = job.lose("n2")
    second = job.run_other([program, "5", "0", "init"], PATTERN, nodes, **watched)
    assert second.code == 0 and second.started_from in (1, 2), second
    assert not job.has_unfinished_job("n0") and (job.cluster.prefix / "data.5.2").exists(), "MPI_Finalize has ended the job"
    assert {f"mpi_init{end}", f"mpi_finalize{end}"} <= bound_calls(tmp_path)
