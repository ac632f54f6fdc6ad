"""The launchers there are."""

from __future__ import annotations

import os
from typing import Dict

from cairn.launchers.flux_run import FluxRun
from cairn.launchers.jsrun import Jsrun
from cairn.launchers.mpi import Hydra, OpenMpi, mpi_launcher
from cairn.launchers.srun import Srun
from cairn.native import WrongUsage
from cairn.roles import Ask, Launcher, ask_here

ALL = (OpenMpi, Hydra, Srun, FluxRun, Jsrun)
_ONLY_ONE: Dict[str, type] = {name: one for one in (FluxRun, Srun, Jsrun) for name in one.names}
_OF_MPI = frozenset(OpenMpi.names + Hydra.names)


def launcher_of(command: str, ask: Ask = ask_here) -> Launcher:
    """The one whose command that is, by the last part of its path."""
    name = os.path.basename(command)
    if name in _ONLY_ONE:
        launcher: Launcher = _ONLY_ONE[name]()
        return launcher
    if name in _OF_MPI:
        return mpi_launcher(command, ask)
    known = sorted(_OF_MPI | set(_ONLY_ONE))
    raise WrongUsage(f'"{command}" is no launcher that cairn run knows; it knows {", ".join(known)}')
