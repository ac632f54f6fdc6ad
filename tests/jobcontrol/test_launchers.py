"""Command lines of launchers."""

from typing import List, Optional, Tuple

import pytest

from cairn.launchers import launcher_of
from cairn.launchers.flux_run import FluxRun
from cairn.launchers.jsrun import Jsrun
from cairn.launchers.mpi import Hydra, OpenMpi
from cairn.launchers.srun import Srun
from cairn.native import Trouble
from cairn.roles import Answer, Launcher

# The first lines of `mpirun.openmpi --version` and `mpiexec.mpich --version` on Debian 12.
OPENMPI_SAYS = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"
MPICH_SAYS = "HYDRA build details:\n    Version:                                 4.0.2\n"


@pytest.mark.parametrize("launcher, words, program, ranks, nodes", [
    (OpenMpi(), "-np 8 ./job -n 3", "./job -n 3", 8, None),
    (OpenMpi(), "--mca btl tcp,self --oversubscribe -n 4 -x PATH ./job", "./job", 4, None),
    (OpenMpi(), "--map-by ppr:2:node ./job", "./job", None, None),
    (Hydra(), "-n 4 -genv A b -ppn 2 ./job x", "./job x", 4, None),
    (Hydra(), "--np 4 ./job", "./job", 4, None),
    (Srun(), "-n512 -N64 ./my_job", "./my_job", 512, 64),
    (Srun(), "--ntasks=8 --nodes 4 --mpi=pmix -- ./my_job -n 1", "./my_job -n 1", 8, 4),
    (FluxRun(), "run -N 4 -n 16 ./job", "./job", 16, 4),
    (Jsrun(), "-n 4 -a 2 -c 1 --smpiargs -gpu ./job", "./job", None, None),
    (Jsrun(), "-p 8 ./job", "./job", 8, None),
])
def test_a_command_is_cut_where_the_program_begins(launcher: Launcher, words: str, program: str,
                                                   ranks: Optional[int], nodes: Optional[int]) -> None:
    parts = launcher.split(words.split(), {})
    assert list(parts.program) == program.split()
    assert (launcher.ranks(parts.options), launcher.nodes(parts.options)) == (ranks, nodes)


@pytest.mark.parametrize("launcher, options", [
    (OpenMpi(), ["--host", "n1:2,n3:2"]),
    (Hydra(), ["-hosts", "n1:2,n3:2"]),
    (Srun(), ["--nodes=2", "--nodelist=n[1,3]", "--kill-on-bad-exit=1", "--overlap"]),
    (FluxRun(), ["--nodes=2", "--requires=hosts:n[1,3]"]),
    (Jsrun(), ["--exclude_hosts=n2"]),
])
def test_a_run_is_kept_on_its_nodes(launcher: Launcher, options: List[str]) -> None:
    assert launcher.on_nodes(["n1", "n3"], ["n2"], 4) == options


def test_ranks_that_do_not_divide_find_a_place() -> None:
    assert OpenMpi().on_nodes(["a", "b", "c"], [], 8) == ["--host", "a:3,b:3,c:3"]


@pytest.mark.parametrize("command, said, expected", [
    ("/usr/bin/mpirun", OPENMPI_SAYS, OpenMpi), ("mpiexec", OPENMPI_SAYS, OpenMpi),
    ("mpiexec", MPICH_SAYS, Hydra), ("mpirun", MPICH_SAYS, Hydra), ("srun", "", Srun),
    ("/opt/bin/flux", "", FluxRun), ("jsrun", "", Jsrun),
])
def test_a_launcher_is_known_by_name_and_version(command: str, said: str, expected: type) -> None:
    assert isinstance(launcher_of(command, lambda words: Answer(0, said)), expected)


def test_an_unknown_launcher_is_named() -> None:
    with pytest.raises(Trouble, match="aprun.*srun"):
        launcher_of("aprun")


@pytest.mark.parametrize("words", [["-np"], ["--mca", "btl"]])
def test_an_option_without_its_value_is_told(words: List[str]) -> None:
    with pytest.raises(Trouble, match="something must follow"):
        OpenMpi().split(words, {})


def test_real_launchers_tell_who_they_are(flavour: str) -> None:
    import shutil
    known: "dict[str, Tuple[str, type]]" = {"openmpi": ("mpirun.openmpi", OpenMpi),
                                            "mpich": ("mpiexec.mpich", Hydra)}
    if flavour not in known or shutil.which(known[flavour][0]) is None:
        pytest.skip("it has another name here")
    assert isinstance(launcher_of(known[flavour][0]), known[flavour][1])
