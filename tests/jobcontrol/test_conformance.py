"""What every resource manager, launcher and remote execution must do: see cairn/roles.py."""

import os
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import pytest
from ClusterShell.Task import Task

from cairn import labelled
from cairn.heartbeats import Heartbeats
from cairn.launchers import ALL as LAUNCHERS
from cairn.launchers import launcher_of
from cairn.launchers.mpi import Hydra
from cairn.long_work import LongWork
from cairn.native import Trouble
from cairn.node_tests import capacity, echo
from cairn.pdsh import Pdsh
from cairn.processes import Group
from cairn.reach import PATIENCE_S, Reach
from cairn.remote import TICK_S, Ssh
from cairn.resources import ALL as MANAGERS
from cairn.resources import manager_of
from cairn.resources.flux import Flux
from cairn.resources.local import Here, SimulatedNodes
from cairn.resources.lsf import Lsf
from cairn.resources.pbs import Pbs
from cairn.resources.slurm import Slurm
from cairn.roles import GONE, UNKNOWN, Answer, Launcher, RemoteExecution, ResourceManager, ask_here
from stand_ins import NO_SH, put_on_path
from test_resources import (BHOSTS, BJOBS, FLUX, FLUX_ALL, FLUX_DOWN, FLUX_LEFT, FOUR, LSF, PBS, PBSNODES, QSTAT,
                            SINFO, SLURM, SQUEUE, answers)

# Each manager where it works: with an allocation of FOUR, node1 being down.
WORKING: Dict[str, Tuple[type, Dict[str, str], Dict[str, str]]] = {
    "slurm": (Slurm, SLURM, {SQUEUE: "10:00\n", SINFO: "node0 allocated\nnode1 down*\n"}),
    "flux": (Flux, FLUX, {FLUX_LEFT: "600\n", FLUX_ALL: "node[0-3]\n", FLUX_DOWN: "node1\n"}),
    "pbs": (Pbs, PBS, {"qstat -f 1234.server": QSTAT, "pbsnodes -l": PBSNODES}),
    "lsf": (Lsf, LSF, {BJOBS: "0:10 L\n", "bhosts -w " + " ".join(FOUR): BHOSTS}),
}


def test_every_manager_is_tested_where_it_works() -> None:
    assert set(WORKING) == set(MANAGERS) - {"local"}, "a new one needs its environment and answers above"


def working(name: str, folder: Path) -> ResourceManager:
    kind, environment, table = WORKING[name]
    slots = folder / "nodefile"
    slots.write_text("".join(f"{node}\n" for node in FOUR))
    return kind({**environment, "PBS_NODEFILE": str(slots)}, answers(table))


@pytest.fixture(params=sorted(MANAGERS))
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> ResourceManager:
    name = request.param
    return working(name, tmp_path) if name in WORKING else MANAGERS[name]({})


@pytest.fixture(params=["there is no such command", "it fails", "it talks nonsense"])
def broken(request: pytest.FixtureRequest) -> Callable[..., Answer]:
    said = {"there is no such command": Answer(127, "not found"), "it fails": Answer(1, "error: down"),
            "it talks nonsense": Answer(0, "\x1b[1m?? node1 :: \n\n-- 7\n")}
    return lambda command: said[request.param]


def test_nodes_are_named_once_and_in_order(manager: ResourceManager) -> None:
    nodes = manager.nodes()
    assert nodes and len(nodes) == len(set(nodes)) and all(node == node.strip() for node in nodes)
    assert nodes == manager.nodes()
    if manager.name != "local":
        assert nodes == FOUR


def test_what_is_down_is_of_the_nodes_asked_for(manager: ResourceManager) -> None:
    down = manager.down(manager.nodes())
    assert set(down) <= set(manager.nodes()) and all(down.values())
    assert manager.name == "local" or "node1" in down


def test_time_left_is_known_and_not_negative(manager: ResourceManager) -> None:
    left = manager.seconds_left(time.time())
    assert left is None if manager.name == "local" else left is not None and left >= 0


def test_the_job_has_an_id_where_it_has_a_manager(manager: ResourceManager) -> None:
    assert (manager.job_id() is None) == (manager.name == "local")


@pytest.mark.parametrize("name", sorted(MANAGERS))
def test_a_manager_that_does_not_answer_condemns_nobody(name: str, broken: Callable[..., Answer]) -> None:
    """A controller that is down for a while must not cost the job its nodes."""
    environment = WORKING[name][1] if name in WORKING else {}
    manager = MANAGERS[name](environment, broken)
    assert manager.down(FOUR) == {}
    assert manager.seconds_left(0) is None
    try:
        assert all(isinstance(node, str) for node in manager.nodes())
    except Trouble as trouble:
        assert "SCR_NODELIST" in str(trouble), "it says what to do"


@pytest.mark.parametrize("name", sorted(MANAGERS))
def test_a_manager_keeps_no_secrets_in_what_it_says(name: str) -> None:
    """Its errors name variables, never the environment's contents."""
    environment = {**(WORKING[name][1] if name in WORKING else {}), "PASSWORD": "sesame", "PBS_NODEFILE": "/gone"}
    manager = MANAGERS[name](environment, answers({}))
    try:
        said = str(manager.nodes())
    except Trouble as trouble:
        said = str(trouble)
    assert "sesame" not in said + repr(manager) + str(manager.settings())


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_launcher_keeps_the_rules(kind: type) -> None:
    launcher: Launcher = kind()
    assert launcher.names
    version = Answer(0, "HYDRA build details:\n" if kind is Hydra else "mpirun (Open MPI) 4.1.4\n")
    for name in launcher.names:
        assert isinstance(launcher_of(f"/opt/{name}", lambda _: version), kind)
    head = ["run"] * launcher.subcommand
    words = [*head, launcher.ranks_options[0], "8", "./program", "-n", "3", "--", "x"]
    parts = launcher.split(words, {"-rc": 1})
    assert parts.program == ("./program", "-n", "3", "--", "x")
    assert launcher.ranks(parts.options) == 8
    assert launcher.split([*head, "-rc", "./a b", "./c"], {"-rc": 1}).program == ("./c",)
    options = launcher.on_nodes(["n0", "n1"], ["n2"], 8)
    assert options and not any("n2" in word and "n0" in word for word in options)
    # What it adds it can read again.
    assert launcher.split([*head, *options, "./program"], {}).program == ("./program",)


WAYS: Dict[str, Callable[[], RemoteExecution]] = {
    "ssh": Ssh, "pdsh": lambda: Pdsh(os.environ), "steps": lambda: Slurm({**os.environ, **SLURM}).remote()}


LOGIN_SHELLS = ["ssh, where the login shell is no sh", "pdsh, where the login shell is no sh"]


@pytest.fixture(params=["here", "simulated", *WAYS, *LOGIN_SHELLS])
def remote(request: pytest.FixtureRequest, tmp_path: Path,
           monkeypatch: pytest.MonkeyPatch) -> Iterator[Tuple[RemoteExecution, List[str]]]:
    if request.param in LOGIN_SHELLS:
        monkeypatch.setenv("PATH", put_on_path(tmp_path, NO_SH))
        yield WAYS[request.param.partition(",")[0]](), ["node0", "node1"]
        return
    if request.param in WAYS:
        monkeypatch.setenv("PATH", put_on_path(tmp_path))
        yield WAYS[request.param](), ["node0", "node1"]
        return
    if request.param == "here":
        yield Here(os.environ), ["a"]
        return
    with SimulatedNodes(dict(os.environ), 2, 1, tmp_path / "nodes") as nodes:
        yield nodes.remote(), nodes.nodes()


def test_commands_run_on_their_nodes(remote: Tuple[RemoteExecution, List[str]]) -> None:
    execution, nodes = remote
    answered = execution.run({node: f"echo I am {node}; exit 3" for node in nodes}, 10)
    assert {node: (answer.code, answer.text.strip()) for node, answer in answered.items()} == {
        node: (3, f"I am {node}") for node in nodes}


def test_a_command_that_hangs_is_ended(remote: Tuple[RemoteExecution, List[str]]) -> None:
    execution, nodes = remote
    begin = time.monotonic()
    answer = execution.run({nodes[0]: "sleep 60"}, 0.2)[nodes[0]]
    assert answer.code != 0 and "0.2 s" in answer.text and time.monotonic() - begin < 10


def test_one_that_takes_longer_is_given_its_time_where_commands_are_not_alike(
        remote: Tuple[RemoteExecution, List[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "LATE_S", 0.2)
    monkeypatch.setattr(labelled, "LATE_TIMES", 0)
    execution, nodes = remote
    commands = {nodes[0]: "echo quick", nodes[-1]: "sleep 1.5; echo slow"}
    assert execution.run(commands, 10, alike=False)[nodes[-1]].text.strip() == "slow"


@pytest.mark.parametrize("kind", ["ssh", "pdsh"])
def test_a_node_that_cannot_be_reached_says_so(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    (tmp_path / "dead").write_text("node1\n")
    answers_there = WAYS[kind]().run({node: "echo here" for node in ("node0", "node1")}, 10)
    assert answers_there["node0"].code == 0
    assert answers_there["node1"].code == 255 and "No route" in answers_there["node1"].text


@pytest.mark.parametrize("chosen, there, expected", [
    ("auto", ["ssh", "pdsh"], "ssh"), ("auto", ["pdsh"], "pdsh"), ("auto", ["ssh"], "ssh"), ("auto", [], "ssh"),
    ("pdsh", ["ssh", "pdsh"], "pdsh"), ("ssh", ["pdsh"], "ssh"),
])
def test_the_way_is_the_one_chosen_or_the_one_there_is(chosen: str, there: List[str], expected: str, tmp_path: Path) -> None:
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    manager = manager_of({**PBS, "PATH": str(tmp_path)}, way=chosen)
    assert manager.name == "pbs" and manager.remote().name == expected
    assert manager_of({"PATH": str(tmp_path)}, None, "node[0-1]", chosen).remote().name == expected


def test_by_pdsh_a_command_comes_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has percent signs of its own, and names without their domain."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    nodes = ["a.site", "b.site"]
    assert Pdsh(os.environ).run({node: "echo '%n %% %h' \"$((1 + 1))\"" for node in nodes}, 10) == {
        node: Answer(0, "%n %% %h 2") for node in nodes}


def test_a_node_where_slurm_starts_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    (tmp_path / "dead").write_text("node1\n")
    steps = Slurm(dict(os.environ, **SLURM)).remote()
    answered = steps.run({node: "echo here" for node in ("node0", "node1")}, 10)
    assert answered["node0"] == Answer(0, "here")
    assert answered["node1"].code == 255 and "no step" in answered["node1"].text


@pytest.mark.parametrize("kind", ["ssh", "pdsh", "steps"])
def test_nodes_without_a_kernel_that_answers_are_not_waited_for(
        kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one of them asked in place of a node that is well, where this process is on none of the job's nodes."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    monkeypatch.setenv("SLURMD_NODENAME", "")
    way = WAYS[kind]()
    assert way.run({node: "echo here" for node in FOUR}, 10)["node3"] == Answer(0, "here")
    (tmp_path / "mute").write_text("node1\nnode2\n")
    monkeypatch.setattr(Reach, "silent", lambda self, nodes, patience_s=0.0: {"node1", "node2"} & set(nodes))
    begin = time.monotonic()
    assert way.run({node: "echo here" for node in ("node1", "node2")}, 10) == {"node1": GONE, "node2": GONE}
    assert way.run({node: "echo here" for node in FOUR}, 10) == {
        "node0": Answer(0, "here"), "node1": GONE, "node2": GONE, "node3": Answer(0, "here")}
    assert time.monotonic() - begin < 8
    assert way.gone(FOUR) == {"node1", "node2"}


@pytest.mark.parametrize("kind", ["pdsh", "steps"])
def test_of_nodes_that_cannot_be_asked_nothing_is_known(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can be started here: that is not the fault of the nodes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURMD_NODENAME", "")
    answers = WAYS[kind]().run({node: "echo here" for node in FOUR}, 2)
    assert {answer.code for answer in answers.values()} == {UNKNOWN}, answers


def test_by_ssh_a_kernel_that_was_asked_before_gets_the_rest_of_its_patience(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    (tmp_path / "mute").write_text("node1\n")
    waits: List[float] = []
    timer = Task.timer
    monkeypatch.setattr(Task, "timer", lambda self, fire, **rest: (waits.append(fire), timer(self, fire, **rest))[1])
    monkeypatch.setattr(Reach, "silent", lambda self, nodes, patience_s=0.0: set(nodes))
    for asked_for_s in (0.0, 1.0, 60.0):
        monkeypatch.setattr(Reach, "asked_for_s", lambda self, nodes, asked_for_s=asked_for_s: asked_for_s)
        assert Ssh().run({"node1": "echo here"}, 10) == {"node1": GONE}
    assert waits == [pytest.approx(wait) for wait in (PATIENCE_S, PATIENCE_S - 1, TICK_S)]


def test_from_a_login_node_a_node_that_hangs_is_compared_with_another(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose kernel answers, or is behind a filter: with nothing to compare it gets all the time there is."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    steps = Slurm({**os.environ, **SLURM, "SLURMD_NODENAME": ""}).remote()
    steps.run({node: "echo here" for node in FOUR}, 10)
    (tmp_path / "mute").write_text("node1\n")
    (tmp_path / "srun.steps").unlink()
    begin = time.monotonic()
    assert steps.run({"node1": "echo here"}, 60)["node1"].code == 124
    assert time.monotonic() - begin < 20
    assert sorted((tmp_path / "srun.steps").read_text().split()) == ["node0", "node1"]


@pytest.mark.parametrize("here", ["", "node0"])
def test_where_slurm_starts_no_steps_nothing_is_known_of_the_nodes(
        here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that is down for a while must not cost the job its nodes."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    for name in ("srun",) if here else ("srun", "scontrol"):
        (tmp_path / "stand-ins" / name).write_text("#!/bin/sh\nexit 1\n")
    slurm = Slurm(dict(os.environ, SLURMD_NODENAME=here, **SLURM))
    assert [answer.code for answer in slurm.remote().run({"node1": "echo", "node2": "echo"}, 10).values()] == [
        UNKNOWN, UNKNOWN]
    assert echo(slurm.remote()).unfit(FOUR) == {}


@pytest.mark.parametrize("mode", [0o644, None], ids=["may not be started", "is not there"])
def test_a_command_that_cannot_be_started_is_an_answer(mode: "int | None", tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    if mode is not None:
        (tmp_path / "sinfo").write_text("#!/bin/sh\n")
        (tmp_path / "sinfo").chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = ask_here(["sinfo"])
    assert answer.code == 127 and "no command sinfo" in answer.text


def test_all_nodes_tell_that_they_are_alive(remote: Tuple[RemoteExecution, List[str]]) -> None:
    execution, nodes = remote
    with Heartbeats(execution, nodes, period_s=0.05, patience_s=1.0) as beats:
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            assert beats.suspects() == []
            time.sleep(0.05)


def test_what_was_started_ends_when_nobody_listens(remote: Tuple[RemoteExecution, List[str]]) -> None:
    execution, nodes = remote
    process = execution.start(nodes[0], "while echo; do sleep 0.05; done")
    assert process.stdout is not None and process.stdout.readline() == b"\n"
    group = Group(process)
    process.stdout.close()
    assert group.wait(10) is not None
    group.close()


def test_the_tests_of_nodes_pass_where_the_nodes_are_well(remote: Tuple[RemoteExecution, List[str]], tmp_path: Path) -> None:
    way, nodes = remote
    folder = str(tmp_path / "it's" / "new" / "%n")
    assert echo(way).unfit(nodes) == {} == capacity(way, folder, "ann/cairn.1.", 1).unfit(nodes)
    printed = capacity(way, folder, "ann/cairn.1.", 1 << 70).unfit(nodes)
    assert list(printed) == nodes and all("bytes free" in why for why in printed.values()), printed


def test_long_commands_run_on_every_node(remote: Tuple[RemoteExecution, List[str]]) -> None:
    """With whatever a shell makes of words on the way."""
    way, nodes = remote
    answers = LongWork(way).run({node: "echo \"it's $((1 + 1))\"; echo '$HOME' >&2; exit 3" for node in nodes})
    assert answers == {node: Answer(3, "it's 2\n$HOME") for node in nodes}
