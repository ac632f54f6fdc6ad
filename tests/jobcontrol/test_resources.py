"""Resource managers against answers of their commands.

Those of RECORDED come from Slurm 22.05.8 of Debian 12, with five slurmd on one machine, on 2026-11-21: a job of
`sbatch --no-kill -N5 --time=5`, before and after node1 was set down. Those in the folder `recorded` were printed by Flux,
PBS and LSF on machines of others, or are quoted as that (its README says which). The rest follows the commands' own documentation (the
manual pages of squeue, sinfo, flux-job, flux-resource, qstat, pbsnodes, bjobs, bhosts), names changed.
"""

from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence

import pytest

from cairn.native import Trouble
from cairn.resources import ALL, KINDS, manager_of
from cairn.resources.clock_words import seconds_of
from cairn.resources.flux import Flux
from cairn.resources.lsf import Lsf
from cairn.resources.pbs import Pbs
from cairn.resources.slurm import Slurm
from cairn.roles import Answer, Ask

RECORDED = Path(__file__).resolve().parent / "recorded"
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
"""

LSF = {"LSB_JOBID": "99", "LSB_MCPU_HOSTS": "batch 1 node0 4 node1 4 node2 4 node3 4"}
BJOBS = "bjobs -noheader -o time_left 99"
BHOSTS = """HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
node0              closed_Full     -      4      4      4      0      0      0
node1              unavail         -      4      4      4      0      0      0
node2              unreach         -      4      4      4      0      0      0
node3              closed_Adm      -      4      4      4      0      0      0
"""


def recorded(name: str) -> str:
    """Without the line of the command."""
    return (RECORDED / name).read_text().partition("\n")[2]


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


def nodelist_of(table: str, state: str) -> str:
    """That column of what flux resource list has printed, as it prints it alone: a line for each row."""
    rows = [line.split() for line in table.splitlines()]
    return "".join(f"{row[-1]}\n" for row in rows if row[0] == state and not row[-1].isdigit())


@pytest.mark.parametrize("name, nodes, first, down", [
    ("flux-list-padded.txt", 1000, "flux000000", 998), ("flux-list-properties.txt", 2, "gffw-login-001", 0),
    ("flux-list-repeated.txt", 1, "gadi-cpu-clx-0645.gadi.nci.org.au", 0),
])
def test_flux_as_it_was_recorded(name: str, nodes: int, first: str, down: int) -> None:
    table = recorded(name)
    everywhere = "".join(nodelist_of(table, state) for state in ("free", "allocated", "down"))
    flux = Flux(FLUX, answers({FLUX_ALL: everywhere, FLUX_DOWN: nodelist_of(table, "down")}))
    assert (len(flux.nodes()), flux.nodes()[0]) == (nodes, first)
    assert len(flux.down(flux.nodes())) == down and first not in flux.down(flux.nodes())


@pytest.mark.parametrize("domain", ["", ".pool.example.org"])
def test_pbs_pro_as_it_was_recorded(domain: str) -> None:
    """A node file may have the long names."""
    nodes = [f"node{number}{domain}" for number in (1, 8, 14, 17, 25)]
    pbs = Pbs(PBS, answers({"pbsnodes -l": recorded("pbspro-pbsnodes-l.txt")}))
    assert pbs.down(nodes) == {nodes[1]: "down,offline", nodes[2]: "state-unknown,down", nodes[4]: "down,offline"}


def test_of_pbs_a_namesake_elsewhere_is_no_node_of_the_job() -> None:
    listed = "10.0.0.9 down\nnode1.b state-unknown,down\n"
    pbs = Pbs(PBS, answers({"pbsnodes -l": listed}))
    assert not pbs.down(["10.0.0.1", "node1.a"])
    assert pbs.down(["10.0.0.9", "node1"]) == {"10.0.0.9": "down", "node1": "state-unknown,down"}


def test_open_pbs_as_it_was_recorded() -> None:
    """Two nodes that get no new jobs, but go on."""
    said = recorded("openpbs-pbsnodes-l.txt")
    assert Pbs(PBS, answers({"pbsnodes -l": said})).down(["x3014c0s19b0n0", "x3014c0s25b0n0"]) == {}


def test_torque_as_it_was_recorded(tmp_path: Path) -> None:
    counted = [line.split() for line in recorded("torque-nodefile.txt").splitlines()]
    slots = tmp_path / "nodes"
    slots.write_text("".join(f"{node}\n" * int(count) for count, node in counted))
    first, second = (node for _, node in counted)
    all_nodes = recorded("torque-pbsnodes-l.txt")  # of `pbsnodes -l all`, which lists those that are well too
    some = Pbs(PBS, answers({"pbsnodes -l": all_nodes}))
    assert some.down([f"compute-0-{number}" for number in range(4)]) == {"compute-0-0": "down"}
    cut = f"{second[:20]} down\n"  # as its source prints it
    pbs = Pbs({**PBS, "PBS_NODEFILE": str(slots)},
              answers({"qstat -f 1234.server": recorded("torque-qstat-f.txt"), "pbsnodes -l": cut}))
    assert pbs.nodes() == [first, second] and pbs.down(pbs.nodes()) == {second: "down"}
    assert pbs.down([second, second + ".twin"]) == {}, "it may be either"
    assert pbs.seconds_left(0) == (71 * 60 + 59) * 60 - ((41 * 60 + 32) * 60 + 11)


def test_lsf_as_it_was_recorded(tmp_path: Path) -> None:
    listed = recorded("lsf-hosts.txt").partition("=")[2].split()
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host}\n" for host in listed))
    assert Lsf({**LSF, "LSB_DJOB_HOSTFILE": str(hosts)}, answers({})).nodes() == ["lassen26", "lassen23"]
    five = [f"compute1-exec-{number}" for number in range(1, 6)]
    lsf = Lsf(LSF, answers({"bhosts -w " + " ".join(five): recorded("lsf-bhosts-w.txt")}))
    assert lsf.down(five) == {"compute1-exec-3": "unavail"}
    for name, left_s in (("lsf-time-left.txt", 720), ("lsf-time-left-none.txt", None)):
        said = recorded(name).partition("\n")[2]  # the name of the column is not asked for
        assert Lsf(LSF, answers({BJOBS: said})).seconds_left(0) == left_s


def test_pbs(tmp_path: Path) -> None:
    slots = tmp_path / "nodes"
    slots.write_text("".join(f"{node}\n{node}\n" for node in FOUR))
    pbs = Pbs({**PBS, "PBS_NODEFILE": str(slots)},
              answers({"qstat -f 1234.server": QSTAT, "pbsnodes -l": PBSNODES}))
    assert pbs.nodes() == FOUR
    assert pbs.seconds_left(0) == 3600 - 630
    assert pbs.down(FOUR) == {"node1": "down"}


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
    """Else one would take the place of the other."""
    assert sorted(ALL) == sorted(kind.name for kind in KINDS)
