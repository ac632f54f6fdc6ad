"""A program written for SCR 3 compiles as it is, as C and as C++, with scr.h and -lscr alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cluster import Cluster

HERE = Path(__file__).resolve().parent
HEADERS = [HERE.parents[1] / "include" / name for name in ("scr.h", "cairn_errors.h")]
STRICT = ["-Wall", "-Wextra", "-Werror"]
# Open MPI's own classes for C++ would not pass the warnings; the program does not use them.
C_INTERFACE = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
LANGUAGES = {"c": ("mpicc", ["-std=c99", "-D_POSIX_C_SOURCE=200809L"]),
             "c++": ("mpicxx", ["-x", "c++", "-std=c++11", *C_INTERFACE])}


def compiler(name: str, flavour: str) -> str:
    """Debian's name of an MPI's compiler (mpicc.openmpi), else the plain one."""
    found = shutil.which(f"{name}.{flavour}") or shutil.which(name)
    assert found, f"no {name} for {flavour}"
    return found


def compiled(language: str, flavour: str, library: Path, folder: Path) -> Path:
    """The program, made of a folder that holds scr.h, the error codes that it includes, and libscr.so only."""
    for header in HEADERS:
        (folder / header.name).symlink_to(header)
    (folder / "libscr.so").symlink_to(library)
    name, options = LANGUAGES[language]
    program = folder / "program"
    command = [compiler(name, flavour), *STRICT, *options, str(HERE / "scr3_program.c"),
               "-x", "none", f"-I{folder}", f"-L{folder}", "-lscr",
               f"-Wl,-rpath,{library.parent}", "-o", str(program)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout
    return program


@pytest.mark.parametrize("language", LANGUAGES)
def test_compiles_and_restarts(cluster: Cluster, build: Path, flavour: str, language: str,
                               tmp_path: Path) -> None:
    [library] = (build / "lib" / flavour).glob("libcairn*.so")
    program = str(compiled(language, flavour, library, tmp_path))
    code, output, log = cluster.run(["n0", "n1", "n2", "n3"], [program, "10"])
    assert (code, output) == (0, "SCR v3.1.0 began at step 0\nsum 54\n"), log
    cluster.lose_storage("n1")
    code, output, log = cluster.run(["n0", "spare", "n2", "n3"], [program, "20"])
    assert (code, output) == (0, "SCR v3.1.0 began at step 8\nsum 104\n"), log
