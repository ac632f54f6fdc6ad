"""Jobs of `cairn run` under the launchers of Open MPI and MPICH, on nodes that are listed and reached as by ssh."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest

from heat import Heat, Size, is_gone_on, recovery_text
from nodes import SSH, Cluster

LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
OPTIONS: Dict[str, List[str]] = {"openmpi": [], "mpich": ["-genv", "LD_PRELOAD", "{build}/tests/cluster/mpich_ends.so"]}


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    for number in range(6):
        if f"node{number}" not in cluster.nodes:
            cluster.add(number)


class Job:
    """A `cairn run` here, from where every node can be entered. A context manager: leaving it ends it."""

    def __init__(self, heat: Heat, build: Path, flavour: str) -> None:
        self._path = heat.folder / "output"
        settings = heat.environment(SCR_NODELIST="node[0-4]", SCR_JOB_ID=flavour, OMPI_MCA_plm_rsh_no_tree_spawn="1",
                                    OMPI_MCA_oob_tcp_if_include="eth0")
        settings["PATH"] = f"{SSH}:{settings['PATH']}"
        with self._path.open("w") as output:
            self.process = subprocess.Popen(
                ["cairn", "run", "--nodes", "4", "--runs", "2", LAUNCHERS[flavour], "-n", "4",
                 *(word.format(build=build) for word in OPTIONS[flavour]), *heat.program(flavour=flavour)],
                env=settings, cwd=heat.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def said(self) -> str:
        return self._path.read_text()

    def failure(self) -> Optional[str]:
        return None if self.process.poll() is None else self.said()


def test_a_node_dies_and_the_job_goes_on_with_the_spare(
        nodes: Cluster, folder: Path, build: Path, size: Size, reference: Path, report: List[str], flavour: str) -> None:
    heat = Heat(folder, build, size)
    with Job(heat, build, flavour) as job:
        heat.until_logged("CHECKPOINT_END", 2, job.failure, job.said)
        dead_s = time.time()
        nodes.kill("node2")
        assert job.process.wait(40) == 0, job.said()
    said = job.said()
    assert is_gone_on(heat, said), said
    assert " on 4 nodes: node0,node1,node4,node3" in said and "rebuilt rank" in said, said
    assert heat.is_same_result(reference), "bit for bit"
    report.append(recovery_text(LAUNCHERS[flavour], dead_s, heat.runs()))
