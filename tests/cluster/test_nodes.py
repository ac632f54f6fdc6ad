"""The cluster itself: nodes are apart from each other, die whole, and nothing of them outlives the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

import pytest

from alone import SKIPPED, remedy
from nodes import AGENT, LOCAL, Cluster

ALONE = Path(__file__).resolve().parent / "alone.py"


def test_a_node_has_its_own_of_everything_but_files(cluster: Cluster, folder: Path) -> None:
    assert cluster.run("node1", "hostname") == "node1\n"
    cluster.run("node1", "sh", "-c", f"echo 1 > /dev/shm/mine; echo 1 > {LOCAL}/mine; echo 1 > {folder}/ours")
    assert cluster.run("node2", "ls", "/dev/shm", str(LOCAL), str(folder)).split() == [
        "/dev/shm:", f"{LOCAL}:", f"{folder}:", "ours"]
    assert 2 <= len(cluster.run("node2", "sh", "-c", "ls -d /proc/[0-9]*").split()) < 8
    assert "10.77.0.3/24" in cluster.run("node2", "ip", "-brief", "addr")


def test_a_node_that_is_killed_is_gone_at_once_and_comes_back_empty(cluster: Cluster) -> None:
    process = cluster.start("node3", ["sh", "-c", f"echo 1 > {LOCAL}/mine; echo there; sleep 600"])
    assert process.stdout and process.stdout.readline() == "there\n"
    others = cluster.list()
    cluster.kill("node3")
    assert process.wait(5) != 0
    assert cluster.list() == [name for name in others if name != "node3"]
    refused = subprocess.run([AGENT, "node3", "true"], stderr=subprocess.PIPE, text=True, check=False, timeout=10)
    assert (refused.returncode, refused.stderr) == (255, "node3 is off\n")
    cluster.add(3)
    assert cluster.run("node3", "ls", str(LOCAL)) == ""


def test_a_cut_link_kills_nobody(cluster: Cluster) -> None:
    listener = "import socket; s = socket.create_server(('', 5000)); print('up', flush=True); s.accept(); s.accept()"
    server = cluster.start("node4", [sys.executable, "-c", listener])
    assert server.stdout and server.stdout.readline() == "up\n"
    connect = [sys.executable, "-c", "import socket; socket.create_connection(('node4', 5000), 0.3)"]
    assert cluster.start("node5", connect).wait(10) == 0
    cluster.nodes["node4"].cut()
    assert cluster.start("node5", connect).wait(10) != 0
    assert server.poll() is None
    cluster.kill("node4")
    cluster.add(4)


OUTLIVER = """
import sys
sys.path.insert(0, {folder!r})
from nodes import Cluster
with Cluster(1) as cluster:
    cluster.start("node0", ["sleep", "{seconds}"])
    print("up", flush=True)
    sys.stdin.read()
"""


def processes_of(word: str) -> List[str]:
    """Those that have the word on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word in (entry / "cmdline").read_bytes().decode().split("\0"):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_nothing_outlives_tests_that_are_killed() -> None:
    """Here the whole machine is a namespace in ours, so that we see all of it."""
    seconds = str(100000 + os.getpid())
    script = OUTLIVER.format(folder=str(ALONE.parent), seconds=seconds)
    process = subprocess.Popen([sys.executable, "-B", ALONE, "--", sys.executable, "-B", "-c", script],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "up\n"
    end = time.monotonic() + 10
    while not processes_of(seconds):
        assert time.monotonic() < end
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 10
    while processes_of(seconds):
        assert time.monotonic() < end, "processes of the cluster live on"
        time.sleep(0.02)
    mounts = Path("/proc/self/mounts").read_text()
    assert mounts.count(" /etc/hosts ") <= 1, "only our own"


@pytest.mark.parametrize("options, said", [
    (["--needs", "sh", "no-such-program"], "not installed: no-such-program"),
])
def test_what_is_missing_is_named_and_skipped(options: List[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-B", ALONE, *options, "--", "true"], stdout=subprocess.PIPE, text=True,
                          check=False, timeout=30)
    assert (done.returncode, done.stdout) == (SKIPPED, f"SKIPPED: {said}\n")


@pytest.mark.parametrize("said, user, words", [
    ("unshare: unshare failed: Operation not permitted", 0, "docker run --privileged"),
    ("unshare: unshare failed: Operation not permitted", 1000, "run this as root, or have root allow them to users"),
    ("unshare: cannot change root filesystem propagation: Invalid argument", 1000, "have root bind-mount the chroot's folder"),
    ("unshare: unshare failed: Operation not permitted", 1000, "in a container, where root is refused too"),
])
def test_where_namespaces_are_refused_it_is_said_what_helps(said: str, user: int, words: str) -> None:
    assert words in remedy(said, user)


NOT_RUN = "***Skipped"
LOG = """
1/6 Test #7: cluster_nodes .............   Passed    1.00 sec
2/6 Test #8: cluster_slurm .............   {slurm}
3/6 Test #9: cluster_slurm_scavenge ....   Passed    1.00 sec
4/6 Test #10: report ...................   {report}
5/6 Test #11: cluster_slurm_wrapped ....   {wrapped}
6/6 Test #12: cluster_mpirun_wrapped ...   {mpirun}
"""


@pytest.mark.parametrize("others, namespaces, user, code, said", [
    ({}, True, 0, 0, ""),
    ({"slurm": NOT_RUN}, True, 0, 1, "not passed: cluster_slurm; namespaces can be had"),
    ({"wrapped": NOT_RUN}, True, 0, 1, "not passed: cluster_slurm_wrapped; namespaces can be had"),
    ({"mpirun": NOT_RUN}, True, 0, 1, "not passed: cluster_mpirun_wrapped; namespaces can be had"),
    ({"slurm": "***Failed"}, True, 0, 1, "cluster_slurm"), ({"slurm": NOT_RUN}, False, 0, 0, "NOT TESTED"),
    ({"slurm": NOT_RUN}, True, 1000, 1, "not passed: cluster_slurm; those of Slurm need root: sudo make test-cluster"),
    ({"report": NOT_RUN}, True, 0, 1, "not passed: report"),
    ({"slurm": NOT_RUN, "report": NOT_RUN}, False, 0, 1, "not passed: report"),
])
def test_tests_that_were_skipped_are_reported(tmp_path: Path, others: Dict[str, str], namespaces: bool, user: int, code: int,
                                          said: str) -> None:
    """Continuous integration ends with this: it must not be green because nothing was run."""
    verdicts = {**dict.fromkeys(["slurm", "report", "wrapped", "mpirun"], "Passed"), **others}
    (tmp_path / "log").write_text(LOG.format(**verdicts))
    commands = {"id": f"echo {user}"}
    if not namespaces:
        commands["unshare"] = "echo Operation not permitted; exit 1"
    for name, script in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([ALONE.parent / "have_run", tmp_path / "log"], stderr=subprocess.PIPE, text=True, check=False,
                          timeout=30, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == code and said in done.stderr, done
