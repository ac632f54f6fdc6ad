"""The known resource managers, and the choice for this process."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Tuple, Type

from cairn.native import WrongUsage
from cairn.remote import WAY
from cairn.resources.flux import Flux
from cairn.resources.listed import ListedHosts
from cairn.resources.local import ThisMachine
from cairn.resources.lsf import Lsf
from cairn.resources.pbs import Pbs
from cairn.resources.slurm import Slurm
from cairn.roles import ResourceManager

# Flux comes first, as it may run inside the others.
KINDS: Tuple[Type[ResourceManager], ...] = (Flux, Slurm, Pbs, Lsf, ThisMachine)
ALL: Dict[str, Type[ResourceManager]] = {one.name: one for one in KINDS}


def manager_of(environment: Mapping[str, str], name: Optional[str] = None,
               listed: Optional[str] = None, way: str = "auto") -> ResourceManager:
    """The manager of that name, else the one of this process; without one, the hosts that the user has listed, if any.
    `way`: the value of CAIRN_REMOTE, for managers without remote commands of their own."""
    if name is not None and name not in ALL:
        raise WrongUsage(f'--manager: "{name}" is not one of {", ".join(ALL)}')
    chosen = ALL[name] if name else next(one for one in ALL.values() if one.is_here(environment))
    environment = {**environment, WAY: way}
    return ListedHosts(environment, listed) if chosen is ThisMachine and listed else chosen(environment)
