"""Nodes that are only simulated die as real ones do; and who watches them sees it."""

import os
import subprocess
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from cairn.commands import run
from cairn.heartbeats import Heartbeats
from cairn.loop import Machine
from cairn.native import Trouble
from cairn.node_tests import tests_of as make_tests
from cairn.node_tests import folders_of, unfit
from cairn.on_node import started_at
from cairn.processes import Exit, Group, kill_recorded
from cairn.resources.local import SimulatedNodes
from jobs import Job, shell_job


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SimulatedNodes]:
    with SimulatedNodes(dict(os.environ), 2, 1, tmp_path / "nodes") as made:
        yield made


JOB = {"SCR_USER_NAME": "ada", "SCR_JOB_ID": "7"}


def settings_of(nodes: SimulatedNodes) -> "dict[str, str]":
    return {**nodes.settings(), **JOB}


def suspects_within(beats: Heartbeats, seconds: float) -> List[str]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = beats.suspects()
        if found:
            return found
        time.sleep(0.01)
    return []


def test_the_loss_of_a_node_is_seen_at_once(nodes: SimulatedNodes) -> None:
    with Heartbeats(nodes.remote(), ["n0", "n1"], period_s=0.05) as beats:
        assert suspects_within(beats, 0.3) == []
        begin = time.monotonic()
        nodes.lose("n1")
        assert suspects_within(beats, 5) == ["n1"]
        assert time.monotonic() - begin < 1


def test_who_looks_at_nodes_of_another_leaves_what_runs_on_them(nodes: SimulatedNodes, tmp_path: Path) -> None:
    """Two scavenges at a time, or one beside a job."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as rank:
        record = tmp_path / "nodes" / "processes" / "n0.0"
        record.write_text(f"{rank.pid} {started_at(rank.pid)}")
        with SimulatedNodes.left_in({}, tmp_path / "nodes"), SimulatedNodes.left_in({}, tmp_path / "nodes") as second:
            assert second.nodes() == nodes.nodes()
        alive = rank.poll() is None
        rank.kill()
    assert alive and record.exists()


def test_a_silent_node_is_suspected(nodes: SimulatedNodes) -> None:
    with Heartbeats(nodes.remote(), ["n0"], period_s=30, patience_s=0.3) as beats:
        assert suspects_within(beats, 5) == ["n0"]
        beats.watch(["n0"])
        assert beats.suspects() == []


def test_how_long_a_node_may_be_silent_is_the_users_to_say(nodes: SimulatedNodes) -> None:
    """A sign comes each 0.5 s."""
    with Machine().heartbeats(nodes.remote(), ["n0"], 0.2) as beats:
        assert suspects_within(beats, 5) == ["n0"]
    with Machine().heartbeats(nodes.remote(), ["n0"], 60) as beats:
        assert suspects_within(beats, 1) == []


def test_a_wrong_suspicion_is_not_followed_by_the_next(nodes: SimulatedNodes) -> None:
    """Where no connection lives, as without ssh."""
    nodes.lose("n1")
    with Heartbeats(nodes.remote(), ["n1"], rest_s=0.5) as beats:
        assert suspects_within(beats, 5) == ["n1"]
        beats.rest("n1")
        assert suspects_within(beats, 0.3) == []
        assert suspects_within(beats, 5) == ["n1"], "it is watched again later"


def test_a_wrong_suspicion_blinds_nobody_whose_connection_lives(nodes: SimulatedNodes) -> None:
    with Heartbeats(nodes.remote(), ["n0"], period_s=30, patience_s=0.3) as beats:
        assert suspects_within(beats, 5) == ["n0"]
        beats.rest("n0")
        assert beats.suspects() == []
        assert suspects_within(beats, 5) == ["n0"]


def test_nothing_of_a_lost_node_is_left(nodes: SimulatedNodes) -> None:
    (nodes.storage("n1") / "checkpoint").write_text("x")
    process = nodes.remote().start("n1", "sleep 60 & sleep 60")
    nodes.lose("n1")
    assert Group(process).wait(5) == Exit(9, True)
    process.wait()
    assert not nodes.is_on("n1") and list(nodes.storage("n1").parent.glob("n1*")) == []
    assert nodes.is_on("n0")


def test_a_lost_node_fails_the_tests(nodes: SimulatedNodes) -> None:
    tests = make_tests(["ping", "echo", "dir_capacity"], nodes, ["n2"], settings_of(nodes))
    assert unfit(tests, nodes.nodes()) == {"n2": "is excluded by the user"}
    nodes.lose("n0")
    assert "n0" in unfit(tests, nodes.nodes())


def test_a_folder_without_room_or_rights_is_reported(nodes: SimulatedNodes) -> None:
    room = {**settings_of(nodes), f"CACHEDIR={nodes.storage('%n')} BYTES": str(1 << 60)}
    small = unfit(make_tests(["dir_capacity"], nodes, [], room), ["n0"])["n0"]
    assert "bytes free" in small and str(1 << 60) in small and str(nodes.storage("%n")) in small
    gone = make_tests(["dir_capacity"], nodes, [], {"SCR_CACHE_BASE": "/proc/%n/x", "SCR_CNTL_BASE": "/dev/null", **JOB})
    assert "cannot be written" in unfit(gone, ["n0"])["n0"]


def test_what_the_job_has_in_a_folder_is_room_for_it(tmp_path: Path) -> None:
    """Else no node would be fit for a second run."""
    (tmp_path / "df").write_text("#!/bin/sh\necho Filesystem Blocks\necho disk 1000 900 100 90% /\n")
    (tmp_path / "df").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with SimulatedNodes(environment, 2, 0, tmp_path / "nodes") as nodes:
        mine = nodes.storage("n0") / "ada" / "cairn.7.0123456789abcdef"
        mine.mkdir(parents=True)
        (mine / "data").write_bytes(b"x" * (64 << 10))
        for needed, unfit_ones in ((100 << 10, []), (160 << 10, ["n1"]), (1 << 30, ["n0", "n1"])):
            room = {**settings_of(nodes), f"CACHEDIR={nodes.storage('%n')} BYTES": str(needed)}
            assert sorted(unfit(make_tests(["dir_capacity"], nodes, [], room), ["n0", "n1"])) == unfit_ones


@pytest.mark.parametrize("lines, folders", [
    ({}, {"/a": 0, "/b": 0}), ({"CACHEDIR=/a BYTES": "5"}, {"/a": 5, "/b": 0}),
    ({"CACHEDIR=/a BYTES": "5", "CNTLDIR=/a BYTES": "2"}, {"/a": 7, "/b": 0}),
    ({"CACHEDIR=/c d/e BYTES": "5", "STORE=/x y ENABLED": "1", "STORE=/z ENABLED": "0"},
     {"/a": 0, "/b": 0, "/c d/e": 5, "/x y": 0}),
])
def test_what_folders_must_have(lines: "dict[str, str]", folders: "dict[str, int]") -> None:
    assert folders_of({"SCR_CACHE_BASE": "/a", "SCR_CNTL_BASE": "/b", **lines}) == folders


def test_an_unknown_test_is_named(nodes: SimulatedNodes) -> None:
    with pytest.raises(Trouble, match="SCR_NODE_TESTS.*pong"):
        make_tests(["pong"], nodes, [], settings_of(nodes))


def test_another_process_of_the_same_id_is_never_killed() -> None:
    assert not kill_recorded(os.getpid(), "1")
    assert not kill_recorded(os.getpid(), "")
    assert started_at(os.getpid()).isdigit()


def test_it_says_that_simulated_nodes_ignore_the_place_of_the_caches(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    printed = shell_job(cairn, tmp_path, mpirun, "true", settings={"SCR_CACHE_BASE": "/of/no/use"}).printed
    assert "SCR_CACHE_BASE=/of/no/use is ignored" in printed, printed
    assert "is ignored" not in shell_job(cairn, tmp_path, mpirun, "true").printed


def test_what_is_not_saved_of_nodes_that_are_deleted_is_called_lost(nodes: SimulatedNodes) -> None:
    assert run.unsaved(nodes, "failed", "later") == "failed; later", "their storage stays"
    with SimulatedNodes(dict(os.environ), 1, 0) as deleted:
        assert "--storage" in run.unsaved(deleted, "failed", "later") and "later" not in run.unsaved(deleted, "failed", "later")
        assert "--storage" in run.unsaved(deleted, "failed")


def test_a_launcher_that_notices_a_loss_by_itself_is_not_interrupted(cairn: Path, tmp_path: Path) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text("""#!/bin/sh
[ "$1" = --version ] && exit
shift 2
trap 'echo interrupted' TERM
"$@" &
wait $!
sleep 0.2
""")
    launcher.chmod(0o755)
    outcome = shell_job(cairn, tmp_path, str(launcher), "sleep 60", "--kill-node", "n0@0.5")
    assert "n0 dies" in outcome.printed and "interrupted" not in outcome.output, outcome


def test_a_program_that_does_not_exist_is_not_started_again(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    outcome = Job(cairn, tmp_path, ["--nodes", "2", "--runs", "3"], [mpirun, "-n", "2", "./nosuch"]).wait()
    assert "could not be started" in outcome.printed and "run 2" not in outcome.printed, outcome
