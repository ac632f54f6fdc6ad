"""The known launchers."""

from __future__ import annotations

import os
from typing import Tuple, Type

from cairn.launchers.flux_run import FluxRun
from cairn.launchers.jsrun import Jsrun
from cairn.launchers.mpi import Hydra, OpenMpi, mpi_launcher
from cairn.launchers.srun import Srun
from cairn.native import WrongUsage
from cairn.roles import Ask, Launcher, ask_here

ALL: Tuple[Type[Launcher], ...] = (OpenMpi, Hydra, Srun, FluxRun, Jsrun)


def launcher_of(command: str, ask: Ask = ask_here) -> Launcher:
    """The launcher of a command, by the last part of its path."""
    name = os.path.basename(command)
    found = [kind for kind in ALL if name in kind.names]
    if OpenMpi in found or Hydra in found:
        return mpi_launcher(command, ask)
    if found:
        return found[0]()
    known = sorted({name for kind in ALL for name in kind.names})
    shown = "".join(command.partition("=")[:2])  # of an assignment to a variable only the name
    raise WrongUsage(f'"{shown}" is not a launcher that cairn run knows; it knows {", ".join(known)}')
