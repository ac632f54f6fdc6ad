"""Finds the MPI for which a program is built from its dynamic libraries, and compares it with the MPI of the launcher.

With the launcher of another MPI, every process is a program of one rank, and they overwrite each other's checkpoints. The
libraries of scripts, interpreters and static programs show no MPI; SCR_Init checks those."""

from __future__ import annotations

import os
import re
import shutil
from typing import List, NamedTuple, Optional, Sequence

from cairn.roles import Ask, ask_here

OPEN_MPI, MPICH = "Open MPI", "MPICH"
LAUNCHERS = {OPEN_MPI: "mpirun", MPICH: "mpiexec"}
PACKAGES = {OPEN_MPI: "cairn-openmpi", MPICH: "cairn-mpich"}
# What a launcher prints for --version. Intel MPI, MVAPICH and Cray MPICH belong to the family of MPICH.
LAUNCHER_SAYS = {OPEN_MPI: re.compile(r"Open MPI|OpenRTE|PRRTE"), MPICH: re.compile(r"hydra|MPICH|Intel\(R\) MPI", re.I)}
# Up to release 1.10 the library of Open MPI had the number that the family of MPICH has now.
MPICH_LIBRARY = re.compile(r"libmpich|libmpi\.so\.12|libmpi_(cray|gnu|intel)")
OPEN_MPI_LIBRARY = re.compile(r"libmpi\.so\.(20|40|80)|libmpi_ibm\.so")

OUR_LIBRARIES = ("libcairn", "libscr")


class Linked(NamedTuple):
    """An MPI library that the loader finds for a program."""

    mpi: str
    library: str


def family_of_launcher(version: str) -> Optional[str]:
    """The MPI in the output of --version; None if it does not show that."""
    return next((mpi for mpi, words in LAUNCHER_SAYS.items() if words.search(version)), None)


def libraries_of(program: str, ask: Ask = ask_here) -> List[str]:
    """The dynamic libraries of a program, in the order of the loader; empty if it is not a dynamic program."""
    path = shutil.which(program) or os.path.abspath(program)
    answer = ask(["ldd", path]) if os.path.isfile(path) else None
    return re.findall(r"^\s+(\S+) =>", answer.text, re.MULTILINE) if answer and answer.code == 0 else []


class Mismatch(NamedTuple):
    """The problem, and the remedy."""

    what: str
    remedy: str


def cannot_start(program: str, ask: Ask = ask_here) -> Optional[Mismatch]:
    """Why a program cannot start on this node; None if there is no sign of that."""
    path = shutil.which(program) or os.path.abspath(program)
    if not os.path.isfile(path):
        return Mismatch(f"the program {program} does not exist", "correct its path")
    answer = ask(["ldd", path])
    absent = re.findall(r"^\s+(\S+) => not found", answer.text, re.MULTILINE) if answer and answer.code == 0 else []
    if not absent:
        return None
    return Mismatch(f"{program} cannot start: the loader does not find {', '.join(absent)}",
                    "link it by pkg-config, which sets the run path, or set LD_LIBRARY_PATH")


def linked_mpis(libraries: Sequence[str]) -> List[Linked]:
    """The MPIs among a program's libraries, each once. The calls of the program go to the first one."""
    found: List[Linked] = []
    has_open_pal = any(name.startswith("libopen-pal") for name in libraries)
    for name in libraries:
        mpi = OPEN_MPI if OPEN_MPI_LIBRARY.match(name) else MPICH if MPICH_LIBRARY.match(name) else None
        if mpi == MPICH and has_open_pal and name == "libmpi.so.12":
            mpi = OPEN_MPI
        if mpi and mpi not in [one.mpi for one in found]:
            found.append(Linked(mpi, name))
    return found


def mismatch(program: str, launcher: str, launcher_mpi: Optional[str], libraries: Sequence[str]) -> Optional[Mismatch]:
    """None if the MPIs agree, or if their difference is not certain."""
    linked = linked_mpis(libraries)
    if not linked:
        return None
    mpi, library = linked[0]
    if len(linked) > 1 and any(name.startswith(OUR_LIBRARIES) for name in libraries):
        return Mismatch(f"{program} loads two MPIs, {mpi} ({library}) and {linked[1].mpi} ({linked[1].library}), so SCR_Init "
                        f"would fail", f"link {program} with the libcairn for {mpi}: pkg-config {PACKAGES[mpi]}")
    # Open MPI's mpirun can start programs of an MPICH built with PMIx, whose processes find each other by PMIx.
    speaks_pmix = launcher_mpi == OPEN_MPI and any(name.startswith("libpmix") for name in libraries)
    if launcher_mpi in (None, mpi) or speaks_pmix:
        return None
    return Mismatch(f"{launcher} is {launcher_mpi}'s, but {program} is built for {mpi} ({library}): each of its processes "
                    "would be a program of one rank, and they would overwrite each other's checkpoints",
                    f"start {program} with the {LAUNCHERS[mpi]} of {mpi}, or build it for {launcher_mpi}")
