"""Jobs of `cairn run` under the launchers of Open MPI and MPICH, on nodes that are listed and reached as by ssh."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest

from heat import Heat, Size, is_gone_on, recovery_text
from nodes import FOLDER, SSH, Cluster

SHELL = Path(__file__).resolve().parent / "node_shell.py"
LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
OPTIONS: Dict[str, List[str]] = {"openmpi": [], "mpich": ["-genv", "LD_PRELOAD", "{build}/tests/cluster/mpich_ends.so"]}


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    if "node2" in cluster.nodes:
        cluster.kill("node2")  # it may be cut off
    for number in range(6):
        if f"node{number}" not in cluster.nodes:
            cluster.add(number)


class Job:
    """A `cairn run` here, from where every node can be entered. A context manager: leaving it ends it."""

    def __init__(self, heat: Heat, build: Path, flavour: str, ssh: Path = SSH) -> None:
        self._path = heat.folder / "output"
        settings = heat.environment(SCR_NODELIST="node[0-4]", SCR_JOB_ID=heat.folder.name, OMPI_MCA_plm_rsh_no_tree_spawn="1",
                                    OMPI_MCA_oob_tcp_if_include="eth0")
        settings["PATH"] = f"{ssh}:{settings['PATH']}"
        with self._path.open("w") as output:
            self.process = subprocess.Popen(
                ["cairn", "run", "--nodes", "4", "--runs", "2", LAUNCHERS[flavour], "-n", "4",
                 *(word.format(build=build) for word in OPTIONS[flavour]), *heat.program(flavour=flavour)],
                env=settings, cwd=heat.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGHUP)
        self.process.wait(20)

    def said(self) -> str:
        return self._path.read_text()

    def failure(self) -> Optional[str]:
        return None if self.process.poll() is None else self.said()


def test_a_node_dies_and_the_job_goes_on_with_the_spare(
        nodes: Cluster, folder: Path, build: Path, size: Size, reference: Path, report: List[str], flavour: str) -> None:
    heat = Heat(folder, build, size)
    with Job(heat, build, flavour) as job:
        heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
        dead_s = time.time()
        nodes.kill("node2")
        assert job.process.wait(40) == 0, job.said()
    said = job.said()
    assert is_gone_on(heat, said), said
    assert " on 4 nodes: node0,node1,node4,node3" in said and "rebuilt rank" in said, said
    assert heat.is_same_result(reference), "bit for bit"
    report.append(recovery_text(LAUNCHERS[flavour], dead_s, heat.runs()))


@pytest.fixture
def shell_over_network(nodes: Cluster) -> Path:
    """A folder with an `ssh` that needs the network."""
    folder = FOLDER / "network"
    if not folder.exists():
        folder.mkdir()
        (folder / "ssh").symlink_to(SHELL)
    for name in nodes.nodes:
        shell = nodes.start(name, [sys.executable, "-B", str(SHELL), "--serve"])
        assert shell.stdout is not None
        said = shell.stdout.readline()
        assert said == "up\n" or "in use" in said + shell.stdout.read(), said
    return folder


def test_a_link_is_cut_and_the_job_goes_on_with_the_spare(
        nodes: Cluster, shell_over_network: Path, folder: Path, build: Path, size: Size, reference: Path,
        report: List[str], flavour: str) -> None:
    """The node and its processes live on, and no connection is closed: neither launcher would ever notice."""
    heat = Heat(folder, build, size)
    with Job(heat, build, flavour, shell_over_network) as job:
        heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
        cut_s = time.time()
        nodes.nodes["node2"].cut()
        assert job.process.wait(40) == 0, job.said()
    said = job.said()
    assert nodes.nodes["node2"].is_on() and is_gone_on(heat, said), said
    assert " on 4 nodes: node0,node1,node4,node3" in said and "rebuilt rank" in said, said
    assert heat.is_same_result(reference), "bit for bit"
    report.append(recovery_text(f"{LAUNCHERS[flavour]}, the link is cut", cut_s, heat.runs()))
