"""Resource managers against answers of their commands.

Those of RECORDED come from Slurm 22.05.8 of Debian 12, with five slurmd on one machine, on 2026-11-21: a job of
`sbatch --no-kill -N5 --time=5`, before and after node1 was set down. None of the others was recorded: they follow
the commands' own documentation (the manual pages of squeue, sinfo, flux-job, flux-resource, qstat, pbsnodes, bjobs,
bhosts), names changed.
"""

from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence

import pytest

from cairn.native import Trouble
from cairn.resources import ALL, manager_of
from cairn.resources.clock_words import seconds_of
from cairn.resources.flux import Flux
from cairn.resources.lsf import Lsf
from cairn.resources.pbs import Pbs
from cairn.resources.slurm import Slurm
from cairn.roles import Answer, Ask

FOUR = ["node0", "node1", "node2", "node3"]

SLURM = {"SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": "node[0-3]"}
SINFO = "sinfo -h -N -n node[0-3] -o %N %T"
SQUEUE = "squeue -h -j 42 -o %L"

RECORDED_LEFT = "4:59\n"
RECORDED_STATES = "node0 mixed\nnode1 mixed\nnode2 mixed\nnode3 mixed\nnode4 mixed\n"
RECORDED_STATES_LATER = "node0 mixed\nnode1 down\nnode2 mixed\nnode3 mixed\nnode4 mixed\n"
RECORDED_NODES_LATER = "node[0,2-4]\n"  # of squeue: shorter by the one that is down

FLUX = {"FLUX_URI": "local:///run/flux/local", "FLUX_JOB_ID": "f3NZ"}
FLUX_LEFT = "flux job timeleft"
FLUX_ALL = "flux resource list -n -s all -o {nodelist}"
FLUX_DOWN = "flux resource list -n -s down -o {nodelist}"

PBS = {"PBS_JOBID": "1234.server"}
QSTAT = """Job Id: 1234.server
    Job_Name = heat
    resources_used.cput = 00:40:12
    resources_used.walltime = 00:10:30
    job_state = R
    Resource_List.nodect = 4
    Resource_List.walltime = 01:00:00
    Variable_List = PBS_O_HOME=/home/ada,PBS_O_LANG=C
"""
PBSNODES = """node1                down
node2                offline
node7                down,offline
node3                free
"""

LSF = {"LSB_JOBID": "99", "LSB_MCPU_HOSTS": "batch 1 node0 4 node1 4 node2 4 node3 4"}
BJOBS = "bjobs -noheader -o time_left 99"
BHOSTS = """HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
node0              closed_Full     -      4      4      4      0      0      0
node1              unavail         -      4      4      4      0      0      0
node2              unreach         -      4      4      4      0      0      0
node3              ok              -      4      0      0      0      0      0
"""


def answers(table: Mapping[str, str]) -> Ask:
    """Commands that are not in the table fail."""
    def ask(command: Sequence[str]) -> Answer:
        line = " ".join(command)
        return Answer(0, table[line]) if line in table else Answer(1, f"{line}: no answer")
    return ask


@pytest.mark.parametrize("text, last, seconds", [
    ("1-02:03:04", "s", 93784), ("02:03:04", "s", 7384), ("59:01", "s", 3541), ("7", "s", 7),
    ("1-02", "s", 93600), ("1:30", "min", 5400), ("0:10", "min", 600), ("UNLIMITED", "s", None),
    ("INVALID", "s", None), ("-", "min", None), ("", "s", None),
])
def test_spans_of_time(text: str, last: str, seconds: Optional[int]) -> None:
    assert seconds_of(text, last) == seconds


@pytest.mark.parametrize("said, seconds", [("59:30\n", 3570), ("1-00:00:00\n", 86400), ("UNLIMITED\n", None)])
def test_slurm_time(said: str, seconds: Optional[int]) -> None:
    assert Slurm(SLURM, answers({SQUEUE: said})).seconds_left(0) == seconds


@pytest.mark.parametrize("state, is_down", [
    ("idle", False), ("allocated", False), ("mixed", False), ("draining", False), ("allocated*", True),
    ("down", True), ("down*", True), ("drained", True), ("failing", True), ("completing", False),
])
def test_slurm_states(state: str, is_down: bool) -> None:
    said = f"node0 allocated\nnode1 {state}\n"
    assert Slurm(SLURM, answers({SINFO: said})).down(FOUR) == ({"node1": state} if is_down else {})


def test_slurm_as_it_was_recorded() -> None:
    nodes = [f"node{i}" for i in range(5)]
    sinfo = "sinfo -h -N -n node[0-4] -o %N %T"
    asked = {SQUEUE: RECORDED_LEFT, sinfo: RECORDED_STATES}
    assert Slurm(SLURM, answers(asked)).seconds_left(0) == 299
    assert Slurm(SLURM, answers(asked)).down(nodes) == {}
    later = {sinfo: RECORDED_STATES_LATER, "squeue -h -j 42 -o %N": RECORDED_NODES_LATER}
    assert Slurm(SLURM, answers(later)).down(nodes) == {"node1": "down"}
    assert Slurm({"SLURM_JOB_ID": "42"}, answers(later)).nodes() == ["node0", "node2", "node3", "node4"]


def test_slurm_nodes_are_those_at_the_beginning() -> None:
    """The list that squeue gives gets shorter with each node that dies."""
    assert Slurm(SLURM, answers({})).nodes() == FOUR
    asked = {"squeue -h -j 42 -o %N": "node[0-1],login\n"}
    assert Slurm({"SLURM_JOB_ID": "42"}, answers(asked)).nodes() == ["node0", "node1", "login"]


@pytest.mark.parametrize("said, seconds", [("1800\n", 1800), ("0\n", 0), ("4294967295\n", None)])
def test_flux_time(said: str, seconds: Optional[int]) -> None:
    assert Flux(FLUX, answers({FLUX_LEFT: said})).seconds_left(0) == seconds


def test_flux_nodes() -> None:
    flux = Flux(FLUX, answers({FLUX_ALL: "node[0-3]\n", FLUX_DOWN: "node[1-2],node9\n"}))
    assert flux.nodes() == FOUR
    assert flux.down(FOUR) == {"node1": "down", "node2": "down"}


def test_pbs(tmp_path: Path) -> None:
    slots = tmp_path / "nodes"
    slots.write_text("".join(f"{node}\n{node}\n" for node in FOUR))
    pbs = Pbs({**PBS, "PBS_NODEFILE": str(slots)},
              answers({"qstat -f 1234.server": QSTAT, "pbsnodes -l": PBSNODES}))
    assert pbs.nodes() == FOUR
    assert pbs.seconds_left(0) == 3600 - 630
    assert pbs.down(FOUR) == {"node1": "down", "node2": "offline"}


def test_lsf(tmp_path: Path) -> None:
    lsf = Lsf(LSF, answers({BJOBS: "0:45 L\n", "bhosts -w " + " ".join(FOUR): BHOSTS}))
    assert lsf.nodes() == FOUR, "the batch host is none of them"
    assert lsf.seconds_left(0) == 2700
    assert lsf.down(FOUR) == {"node1": "unavail", "node2": "unreach"}
    hosts = tmp_path / "hosts"
    hosts.write_text("node0\nnode0\nnode1\nnode1\n")
    assert Lsf({**LSF, "LSB_DJOB_HOSTFILE": str(hosts)}, answers({})).nodes() == ["node0", "node1"]


@pytest.mark.parametrize("environment, name", [
    (SLURM, "slurm"), (FLUX, "flux"), ({**SLURM, **FLUX}, "flux"), (PBS, "pbs"), (LSF, "lsf"), ({}, "local"),
])
def test_the_manager_is_found(environment: Dict[str, str], name: str) -> None:
    assert manager_of(environment).name == name


def test_an_unknown_manager_is_named() -> None:
    with pytest.raises(Trouble, match="cobalt.*slurm"):
        manager_of({}, "cobalt")


def test_every_manager_has_another_name() -> None:
    assert len(ALL) == 5
