"""Jobs of `cairn run` under the launchers of Open MPI and MPICH, on nodes that are listed and reached as by ssh."""

import subprocess
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from heat import Heat, Size, is_gone_on, recovery_text
from nodes import SSH, Cluster

LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    for number in range(6):
        if f"node{number}" not in cluster.nodes:
            cluster.add(number)


def test_a_node_dies_and_the_job_goes_on_with_the_spare(
        nodes: Cluster, folder: Path, build: Path, size: Size, reference: Path, report: List[str], flavour: str) -> None:
    heat = Heat(folder, build, size)
    settings = heat.environment(SCR_NODELIST="node[0-4]", SCR_JOB_ID=flavour, OMPI_MCA_plm_rsh_no_tree_spawn="1",
                                OMPI_MCA_oob_tcp_if_include="eth0")
    settings["PATH"] = f"{SSH}:{settings['PATH']}"
    command = ["cairn", "run", "--nodes", "4", "--runs", "2", LAUNCHERS[flavour], "-n", "4",
               *heat.program(flavour=flavour)]
    job = subprocess.Popen(command, env=settings, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    heat.until_logged("CHECKPOINT_END", 2, lambda: job.communicate()[0] if job.poll() is not None else None)
    dead_s = time.time()
    nodes.kill("node2")
    said, _ = job.communicate(timeout=60)
    assert job.returncode == 0 and is_gone_on(heat, said), said
    assert "run 2 on 4 nodes: node0,node1,node4,node3" in said and "rebuilt rank" in said, said
    assert heat.is_same_result(reference), "bit for bit"
    report.append(recovery_text(LAUNCHERS[flavour], dead_s, heat.runs()))
