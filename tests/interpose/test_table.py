"""A program sees the same with the library as without it: results, errno, and all listings."""

import difflib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Place


@pytest.fixture(scope="module")
def table(build: Path) -> Path:
    return build / "tests/interpose/interpose_table"


def output(place: Place, table: Path, is_wrapped: bool) -> str:
    shutil.rmtree(place.prefix)
    place.prefix.mkdir()
    done = place.run(table, place.prefix, is_wrapped=is_wrapped)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_every_call_gives_what_it_gives_without_the_library(place: Place, table: Path) -> None:
    expected = output(place, table, is_wrapped=False)
    got = output(place, table, is_wrapped=True)
    assert expected.count("\n") > 40_000
    differences = [line for line in difflib.unified_diff(expected.splitlines(), got.splitlines(), "plain", "wrapped", "", "", 0, "")
                   if line[0] in "+-"]
    assert differences == [], "\n".join(differences[:40])
    # The library did something: what the program's last files left in the cache is there.
    assert (place.cache / "lock").exists() and (place.cache / "files").is_dir()


def test_the_program_is_linked_to_nothing_of_cairn(table: Path) -> None:
    needed = subprocess.run(["readelf", "-d", table], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "libc.so" in needed and "cairn" not in needed


def test_every_wrapped_call_is_in_the_table(library: Path, table: Path) -> None:
    """By name, or by the name of a call that it differs from in its types only."""
    names = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    wrapped = set(re.findall(r" T (\w+)", names))
    source = Path(__file__).with_name("table.c").read_text(encoding="utf-8")
    called = set(re.findall(r"\b(\w+)\(", source)) | set(re.findall(r'"(\w+)"', source))
    elsewhere = {"__readlink_chk", "__readlinkat_chk", "__realpath_chk", "statfs", "statfs64", "statvfs64", "scandir64", "glob64",
                 "readdir64_r", "__xstat64", "__lxstat", "__fxstatat64", "getxattr", "lgetxattr", "setxattr", "lsetxattr",
                 "listxattr", "llistxattr", "removexattr", "lremovexattr"}
    assert len(wrapped) > 90
    of_mpi = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "mpi_init_", "mpi_init_thread_", "mpi_finalize_",
              "mpi_init_f08_", "mpi_init_thread_f08_", "mpi_finalize_f08_", "MPI_Abort", "mpi_abort_", "mpi_abort_f08_"}  # tests/wrapped
    assert wrapped - called == elsewhere | of_mpi


def test_the_library_needs_only_libc(library: Path) -> None:
    """A program may bring another version of any other library, and would not start."""
    dynamic = subprocess.run(["readelf", "-d", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libm.so.6"}, needed
    assert "libc.so.6" in needed
