"""The environment of a wrapped program on other nodes. Most launchers pass their own environment on. Open MPI's mpirun passes only
what -x or the parameter mca_base_env_list names, and fails if it gets both."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Sequence, Tuple

from cairn.launchers.mpi import ENV_LIST, OpenMpi, mpi_launcher
from cairn.native import OF_THIS_NODE
from cairn.roles import Ask, ask_here

OURS = ("SCR_", "CAIRN_")
PRELOAD = "LD_PRELOAD"
IN_ENVIRONMENT = f"OMPI_MCA_{ENV_LIST}"
DELIMITER = f"{IN_ENVIRONMENT}_delimiter"


def with_library(assignment: str, library: str) -> str:
    """Of a user who gives LD_PRELOAD a value for the ranks: that library too, after the user's."""
    name, equals, value = assignment.partition("=")
    if name != PRELOAD or not equals or library in value.split(":"):
        return assignment
    return f"{PRELOAD}={':'.join(filter(None, [value, library]))}"


def longer_list(given: str, delimiter: str, variables: Sequence[str], library: str) -> str:
    """A value of mca_base_env_list, with these variables too."""
    words = [with_library(word, library) for word in given.split(delimiter) if word]
    named = {word.partition("=")[0] for word in words}
    return delimiter.join([*words, *(name for name in variables if name not in named)])


def with_options(launcher: OpenMpi, command: Sequence[str], variables: Sequence[str], library: str) -> List[str]:
    """The command with -x for these variables, in each part of a job of several programs."""
    words = [with_library(word, library) if before in ("-x", "--x") else word for before, word in zip(["", *command], command)]
    made: List[str] = []
    begin = 0
    while begin < len(words):
        end = words.index(":", begin) if ":" in words[begin:] else len(words)
        part = words[begin:end]
        options = launcher.passing(variables, part, {})
        at = 1 if begin == 0 else 0  # after the name of the launcher
        made += [*part[:at], *options, *part[at:], *words[end:end + 1]]
        begin = end + 1
    return made


def passed_on(command: Sequence[str], environment: Mapping[str, str], library: str, ask: Ask = ask_here) -> Tuple[List[str], Dict[str, str]]:
    """The command and the environment with which also the ranks on other nodes get the variables of Cairn and the library.
    Both as they are, where the command is not Open MPI's launcher."""
    words, made = list(command), dict(environment)
    launcher = mpi_launcher(command[0], ask) if os.path.basename(command[0]) in OpenMpi.names else None
    if not isinstance(launcher, OpenMpi):
        return words, made
    variables = [PRELOAD, *sorted(name for name in environment if name.startswith(OURS) and name not in OF_THIS_NODE)]
    delimiter = environment.get(DELIMITER) or ";"
    if ENV_LIST in words[:-1]:
        at = words.index(ENV_LIST) + 1
        words[at] = longer_list(words[at], delimiter, variables, library)
    elif IN_ENVIRONMENT in made:
        made[IN_ENVIRONMENT] = longer_list(made[IN_ENVIRONMENT], delimiter, variables, library)
    else:
        words = with_options(launcher, words, variables, library)
    return words, made
