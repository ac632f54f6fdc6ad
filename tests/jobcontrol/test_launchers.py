"""Command lines of launchers."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import pytest

from cairn.launchers import launcher_of
from cairn.launchers.flux_run import FluxRun
from cairn.launchers.jsrun import Jsrun
from cairn.launchers.mpi import Hydra, OpenMpi
from cairn.launchers.srun import Srun
from cairn.native import Trouble, WrongUsage
from cairn.roles import Answer, Launcher
from jobs import ROOT

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
    (Srun(), "--reservation maint --signal USR1@60 --ntasks-per-core 1 -l -n 4 ./job", "./job", 4, None),
    (OpenMpi(), "--rankfile ranks --with-ft ulfm -tag-output -n 4 ./job", "./job", 4, None),
    (FluxRun(), "run -l -S queue=x -n 4 ./job", "./job", 4, None),
    (Srun(), "--as-yet-unknown=maint -n 4 ./job", "./job", 4, None),
    (Srun(), "--as-yet-unknown -n 4 ./job", "./job", 4, None),
    (Srun(), "-n 4 --as-yet-unknown -- ./job", "./job", 4, None),
    (FluxRun(), "run -n 4 ./job a : b", "./job a : b", 4, None),
])
def test_a_command_is_cut_where_the_program_begins(launcher: Launcher, words: str, program: str,
                                                   ranks: Optional[int], nodes: Optional[int]) -> None:
    parts = launcher.split(words.split(), {})
    assert list(parts.program) == program.split()
    assert (launcher.ranks(parts.options), launcher.nodes(parts.options)) == (ranks, nodes)


@pytest.mark.parametrize("launcher, words, said", [
    (Srun(), "--as-yet-unknown maint -n 4 ./job", "--as-yet-unknown=VALUE"),
    (Srun(), "-n 4 --as-yet-unknown ./job", "write -- before it"),
    (OpenMpi(), "-as-yet-unknown x -n 4 ./job", "-as-yet-unknown=VALUE"),
    (Hydra(), "-as-yet-unknown x -n 4 ./job", "-as-yet-unknown=VALUE"),
    (FluxRun(), "submit -n 4 ./job", "only flux run can be watched"), (FluxRun(), "", "only flux run can be watched"),
    (OpenMpi(), "-n 4 ./a : -n 4 ./b", "several programs"), (Srun(), "-n 4 ./a : -n 4 ./b", "several programs"),
])
def test_a_command_that_cannot_be_cut_is_refused(launcher: Launcher, words: str, said: str) -> None:
    """Else a part of it would be taken for the program, or run where no node is tested."""
    with pytest.raises(WrongUsage, match=re.escape(said)):
        launcher.split(words.split(), {})


SLURM_CONF = "ClusterName=t\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=p Nodes=ALL\n"
NOT_TOLD = -1


def options_printed(launcher: Launcher, printed: str) -> Iterator[Tuple[str, int]]:
    """Each option of --help, and how many words it takes."""
    if isinstance(launcher, OpenMpi):  # -wd|--wd <arg0>
        for names, values in re.findall(r"^ *(-[-\w|]+) ((?:<arg\d> ?)*)", printed, re.MULTILINE):
            yield from ((name, values.count("<")) for name in names.split("|"))
    elif isinstance(launcher, Hydra):  # -genv {name} {value}; of its own options it does not tell whether they take one
        for names, values in re.findall(r"^ +(-[-\w/]+) +((?:\{[^}]+\} ?)*)", printed, re.MULTILINE):
            yield from (("-" + name.lstrip("-"), values.count("{") or NOT_TOLD) for name in names.split("/"))
    else:  # -I, --immediate[=secs]; -B  --extra-node-info=S
        for short, name, sign in re.findall(r"^ {2,6}(?:(-\w),? +)?(--[-\w]+)(\[?=)?", printed, re.MULTILINE):
            yield name, int(sign == "=")
            if short:
                yield short, int(sign == "=")


@pytest.mark.parametrize("launcher, command, not_as_printed", [
    (OpenMpi(), "mpirun.openmpi --help all", {"-h": 0, "--help": 0}), (Hydra(), "mpiexec.mpich --help", {}),
    (Srun(), "srun --help", {"--container": 1}),
])
def test_the_options_of_installed_launchers_are_known(launcher: Launcher, command: str, not_as_printed: Dict[str, int],
                                                      tmp_path: Path) -> None:
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}")
    (tmp_path / "slurm.conf").write_text(SLURM_CONF)
    printed = subprocess.run(words, env={**os.environ, **ROOT, "SLURM_CONF": str(tmp_path / "slurm.conf")}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False).stdout
    options = {**dict(options_printed(launcher, printed)), **not_as_printed}
    known = {**dict.fromkeys(launcher.flags, 0), **launcher.takes}
    assert len(options) > 40, printed
    assert not {name: count for name, count in options.items()
                if (name not in known if count == NOT_TOLD else known.get(name, 0 if len(name) == 2 else -1) != count)}


@pytest.mark.parametrize("launcher, options", [
    (OpenMpi(), ["--host", "n1:2,n3:2"]),
    (Hydra(), ["-hosts", "n1:2,n3:2"]),
    (Srun(), ["--nodes=2", "--nodelist=n[1,3]", "--kill-on-bad-exit=1", "--overlap"]),
    (FluxRun(), ["--nodes=2", "--requires=hosts:n[1,3]"]),
    (Jsrun(), ["--exclude_hosts=n2"]),
])
def test_a_run_is_kept_on_its_nodes(launcher: Launcher, options: List[str]) -> None:
    assert launcher.on_nodes(["n1", "n3"], ["n2"], 4) == options


def test_variables_are_passed_by_name_and_not_against_the_users_word() -> None:
    for name in ("-x", "--x"):
        assert OpenMpi().passing(["SCR_A", "SCR_B"], ["-n", "4", name, "SCR_A=1"], {}) == ["-x", "SCR_B"]
    assert OpenMpi().passing(["SCR_A"], [], {"OMPI_MCA_mca_base_env_list": "HOME"}) == []
    assert OpenMpi().passing(["SCR_A"], ["--mca", "mca_base_env_list", "HOME"], {}) == []
    assert Srun().passing(["SCR_A"], [], {}) == []


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
def test_an_option_without_its_value_is_reported(words: List[str]) -> None:
    with pytest.raises(Trouble, match=f"^{words[0]} has too few words: something must follow"):
        OpenMpi().split(words, {})


def test_real_launchers_tell_who_they_are(flavour: str) -> None:
    known: Dict[str, Tuple[str, type]] = {"openmpi": ("mpirun.openmpi", OpenMpi),
                                            "mpich": ("mpiexec.mpich", Hydra)}
    if flavour not in known or shutil.which(known[flavour][0]) is None:
        pytest.skip("it has another name here")
    assert isinstance(launcher_of(known[flavour][0]), known[flavour][1])
