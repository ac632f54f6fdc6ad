"""`cairn wrap -- mpirun PROGRAM` on several nodes: Open MPI's mpirun starts the ranks of other nodes as by ssh, which passes nothing of
the environment on."""

import re
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import pytest

from heat import Heat
from nodes import LOCAL, SSH, Cluster

PATTERN = r"out/state\.(?<step>\d+)\.\d+$"
FOUR = ["node0", "node1", "node2", "node3"]


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    if "node2" not in cluster.nodes:
        cluster.add(2)


def run(heat: Heat, build: Path, hosts: Sequence[str], options: Sequence[str], steps: Sequence[str],
        **settings: str) -> "subprocess.CompletedProcess[str]":
    """From a login node, where no rank runs."""
    environment = heat.environment(SCR_CACHE_BASE=cache_of(heat), SCR_CNTL_BASE=cache_of(heat), SCR_JOB_ID=heat.folder.name,
                                   CAIRN_WRAP_FREE_PERCENT="0", OMPI_MCA_plm_rsh_no_tree_spawn="1",
                                   OMPI_MCA_oob_tcp_if_include="eth0", **settings)
    environment["PATH"] = f"{SSH}:{environment['PATH']}"
    program = build / "tests" / "wrapped" / "openmpi" / "program"
    command = ["cairn", "wrap", "--checkpoint", PATTERN, "--", "mpirun.openmpi", "--host", ",".join(hosts), "-np", "4", *options,
               "sh", "-c", f"echo mine=$OTHER_PRINTS; exec {program} $*", "sh", *steps]
    return subprocess.run(command, env=environment, cwd=heat.folder, stdin=subprocess.DEVNULL, text=True, capture_output=True,
                          timeout=60, check=False)


def cache_of(heat: Heat) -> str:
    return f"{LOCAL}/{heat.folder.name}"


def cached(nodes: Cluster, heat: Heat, name: str) -> List[str]:
    return nodes.run(name, "sh", "-c", f"find {cache_of(heat)} -path '*/cairn-wrap.*/files/out/*' -printf '%f\\n' | sort").split()


def test_the_ranks_of_all_nodes_are_wrapped_and_go_on_with_a_spare(nodes: Cluster, heat: Heat, build: Path) -> None:
    first = run(heat, build, FOUR, [], ["5", "die_all=5", "pause=200"])
    assert first.returncode != 0 and "started from 0" in first.stdout, first
    for rank, name in enumerate(FOUR):
        assert f"state.4.{rank}" in cached(nodes, heat, name), first
    assert not list((heat.folder / "out").iterdir()), first
    nodes.kill("node2")
    second = run(heat, build, ["node0", "node1", "node4", "node3"], [], ["6", "pause=200"])
    found = re.search(r"started from (\d)", second.stdout)
    assert second.returncode == 0 and found and found[1] in "34" and "WRONG" not in second.stdout, second
    assert "rebuilt rank 2" in second.stderr, second
    assert cached(nodes, heat, "node4") == ["state.5.2", "state.6.2"], second


@pytest.mark.parametrize("options, settings", [
    (["-x", "OTHER_PRINTS"], {}), ([], {"OMPI_MCA_mca_base_env_list": "OTHER_PRINTS"}), (["--mca", "mca_base_env_list", "OTHER_PRINTS"], {}),
    (["-x", "OTHER_PRINTS", "-x", "LD_PRELOAD={other}"], {}), ([], {"OMPI_MCA_mca_base_env_list": "OTHER_PRINTS;LD_PRELOAD={other}"})],
    ids=["x", "list", "list_as_option", "x_with_a_library", "list_with_a_library"])
def test_variables_that_the_user_passes_on_are_passed_on_too(nodes: Cluster, heat: Heat, build: Path, options: List[str],
                                                             settings: Dict[str, str]) -> None:
    other = str(build / "tests" / "interpose" / "other_library.so")
    done = run(heat, build, FOUR, [word.format(other=other) for word in options], ["2", "pause=100"], OTHER_PRINTS="1",
               SCR_LOG_ENABLE="0", **{name: value.format(other=other) for name, value in settings.items()})
    assert done.returncode == 0 and "started from 0" in done.stdout and done.stdout.count("mine=1") == 4, done
    assert cached(nodes, heat, "node1") == ["state.1.1", "state.2.1"], done
    is_preloaded = "LD_PRELOAD" in str([options, settings])
    assert len(re.findall(r"^other: .*[1-9]", done.stderr, re.MULTILINE)) >= (4 if is_preloaded else 0), done
