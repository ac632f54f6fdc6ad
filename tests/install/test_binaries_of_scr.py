"""Programs that were built with SCR run with libcairn in its place, without being linked again: a library that has only
SCR's names stands for SCR's."""

import os
import re
from pathlib import Path
from typing import List, Sequence

import pytest

from test_install import compiler, library, prefix, run, run_ranks  # noqa: F401

SCR = Path(__file__).resolve().parent / "scr"
FORTRAN = Path(__file__).resolve().parent / "fortran" / "fixed_form.f"


def calls_of_scr() -> List[str]:
    """Of C."""
    return re.findall(r"^[\w *]+\b(SCR_\w+)\(", (SCR / "calls_of_scr_3_1.h").read_text(), re.MULTILINE)


def library_of_names(folder: Path, name: str, symbols: Sequence[str]) -> Path:
    """As SCR installs it: its soname has no version. Each call ends the program."""
    folder.mkdir()
    source = folder / "names.c"
    source.write_text("#include <stdlib.h>\n" + "".join(f"void {symbol}(void) {{ abort(); }}\n" for symbol in symbols))
    run(["cc", "-shared", "-fPIC", source, "-o", folder / name, f"-Wl,-soname,{name}"])
    return folder


def test_the_header_declares_the_calls_of_scr(prefix, flavour, tmp_path):  # noqa: F811
    assert len(calls_of_scr()) == 18
    run([compiler("mpicc", flavour), "-Wall", "-Werror", "-c", SCR / "same_signatures.c", f"-I{prefix / 'include'}",
         "-o", tmp_path / "object.o"])


def test_a_c_program_built_with_scr_runs(prefix, launch, primary, flavour, tmp_path):  # noqa: F811
    names = library_of_names(tmp_path / "scr", "libscr.so", calls_of_scr())
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), SCR / "every_call.c", "-o", program, f"-L{names}", "-lscr", f"-Wl,-rpath,{names}"])
    assert "libscr.so]" in run(["readelf", "-d", program])
    libraries = {"LD_LIBRARY_PATH": os.pathsep.join([str(library(prefix, primary, flavour).parent),
                                                     os.environ.get("LD_LIBRARY_PATH", "")])}
    assert "began of v3" in run_ranks(launch[flavour], program, tmp_path, **libraries)
    assert "restarted of v3" in run_ranks(launch[flavour], program, tmp_path, **libraries)


def test_a_fortran_program_built_with_scr_runs(prefix, launch, primary, flavour, tmp_path):  # noqa: F811
    calls = re.findall(r"EXTERNAL (\w+)", (prefix / "include" / "scrf.h").read_text())
    names = library_of_names(tmp_path / "scr", "libscrf.so", [f"{call.lower()}_" for call in calls] + calls_of_scr())
    program = tmp_path / "program"
    run([compiler("mpifort", flavour), FORTRAN, "-o", program, f"-I{prefix / 'include'}", f"-L{names}", "-lscrf",
         f"-Wl,-rpath,{names}"])
    libraries = {"LD_LIBRARY_PATH": os.pathsep.join([str(library(prefix, primary, flavour).parent),
                                                     os.environ.get("LD_LIBRARY_PATH", "")])}
    assert "all calls made" in run_ranks(launch[flavour], program, tmp_path, **libraries)
