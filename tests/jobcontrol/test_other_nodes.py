"""What Open MPI's mpirun is given, so that the ranks on other nodes are wrapped too."""

from __future__ import annotations

from typing import Dict, List

import pytest

from cairn.other_nodes import passed_on
from cairn.roles import Answer

LIBRARY = "/lib/libcairn-interpose.so"
ENVIRONMENT = {"LD_PRELOAD": LIBRARY, "CAIRN_WRAP_PREFIX": "/run\n/other", "SCR_PREFIX": "/run", "SCR_NODE_NAME": "n1", "HOME": "/root"}
NAMES = ["LD_PRELOAD", "CAIRN_WRAP_PREFIX", "SCR_PREFIX"]
GIVEN = [word for name in NAMES for word in ("-x", name)]
LIST = "OMPI_MCA_mca_base_env_list"


def passed(command: List[str], says: str = "mpirun (Open MPI) 4.1.4", **more: str) -> "tuple[List[str], Dict[str, str]]":
    return passed_on(command, {**ENVIRONMENT, **more}, LIBRARY, lambda words: Answer(0, says))


def test_mpirun_is_given_the_names_of_the_variables_and_no_values() -> None:
    words, environment = passed(["mpirun", "-n", "4", "./program", "-x"])
    assert words == ["mpirun", *GIVEN, "-n", "4", "./program", "-x"] and environment == ENVIRONMENT


def test_each_program_of_a_job_of_several_is_given_them() -> None:
    words, _ = passed(["mpirun", "-n", "1", "./a", ":", "-x", "SCR_PREFIX", "./b"])
    assert words == ["mpirun", *GIVEN, "-n", "1", "./a", ":", *GIVEN[:4], "-x", "SCR_PREFIX", "./b"]


def test_a_list_of_the_user_is_made_longer_because_mpirun_takes_no_x_with_it() -> None:
    command = ["mpirun", "-n", "4", "./program"]
    words, environment = passed(command, **{LIST: "HOME;SCR_PREFIX=/x"})
    assert words == command and environment[LIST] == "HOME;SCR_PREFIX=/x;LD_PRELOAD;CAIRN_WRAP_PREFIX"
    _, environment = passed(command, **{LIST: "HOME", LIST + "_delimiter": "!"})
    assert environment[LIST] == "HOME!LD_PRELOAD!CAIRN_WRAP_PREFIX!SCR_PREFIX"
    words, environment = passed(["mpirun", "--mca", "mca_base_env_list", "HOME", "./program"])
    assert words == ["mpirun", "--mca", "mca_base_env_list", ";".join(["HOME", *NAMES]), "./program"] and LIST not in environment


@pytest.mark.parametrize("given, expected", [
    ("LD_PRELOAD=/a.so", f"LD_PRELOAD=/a.so:{LIBRARY}"), ("LD_PRELOAD=", f"LD_PRELOAD={LIBRARY}"), ("LD_PRELOAD", "LD_PRELOAD"),
    (f"LD_PRELOAD={LIBRARY}", f"LD_PRELOAD={LIBRARY}")])
def test_another_library_that_the_user_preloads_into_the_ranks_stays(given: str, expected: str) -> None:
    words, _ = passed(["mpirun", "-x", given, "./program"])
    assert words == ["mpirun", *GIVEN[2:], "-x", expected, "./program"]
    _, environment = passed(["mpirun", "./program"], **{LIST: given})
    assert environment[LIST] == ";".join([expected, *NAMES[1:]])


@pytest.mark.parametrize("command, says", [
    (["mpiexec", "-n", "4", "./program"], "HYDRA build details"), (["srun", "./program"], ""), (["./program", "-x", "LD_PRELOAD=/a"], "")])
def test_other_commands_stay_as_they_are(command: List[str], says: str) -> None:
    assert passed(command, says) == (command, ENVIRONMENT)
