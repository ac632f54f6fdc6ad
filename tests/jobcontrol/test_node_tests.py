"""Which nodes are not fit for a run; commands of the site are stand-ins."""

import time
from pathlib import Path
from typing import List

import pytest

from cairn.node_tests import Kernel, Ping, unfit
from cairn.reach import Reach
from cairn.remote import Ssh
from stand_ins import put_on_path

NODES = [f"node{number}" for number in range(20)]


def pinged(folder: Path) -> List[str]:
    path = folder / "pinged"
    return sorted(path.read_text().split()) if path.exists() else []


def test_all_nodes_are_pinged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    (tmp_path / "dead").write_text("node1\nnode7\n")
    begin = time.monotonic()
    assert Ping().unfit(NODES) == dict.fromkeys(["node1", "node7"], "does not answer to ping")
    assert time.monotonic() - begin < 0.5 * len(NODES) / 2 and pinged(tmp_path) == sorted(NODES)


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 2\n", "#!/bin/sh\nexit 127\n", None])
def test_a_ping_that_cannot_be_used_condemns_nobody(script: "str | None", tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Its right to raw packets is missing, say, or it knows another name of the node."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    if script is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        (tmp_path / "stand-ins" / "ping").write_text(script)
    assert Ping().unfit(NODES) == {}


def test_where_no_other_node_answers_to_ping_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes no ping between nodes passes it from a node to itself."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    monkeypatch.setattr("socket.gethostname", lambda: "node0.site")
    printed: List[str] = []
    ping = Ping(printed.append)
    (tmp_path / "dead").write_text("node1\nnode2\n")
    assert ping.unfit(["node0", "node1", "node2"]) == {} == ping.unfit(["node1"]) and len(printed) == 1
    assert "ping" in printed[0]
    (tmp_path / "dead").write_text("node1\n")
    assert list(ping.unfit(["node0", "node1", "node2"])) == ["node1"]
    assert list(ping.unfit(["node1"])) == ["node1"] and len(printed) == 1, "another has answered before"


def test_this_node_is_known_by_any_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    (tmp_path / "dead").write_text("192.0.2.1\n192.0.2.2\n")
    for here in ("127.0.0.1", "localhost"):
        assert Ping().unfit([here, "192.0.2.1", "192.0.2.2"]) == {}, here


def test_a_node_of_which_the_kernel_is_silent_is_not_pinged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    monkeypatch.setattr(Reach, "silent", lambda self, nodes, patience_s=0.0: {"node1"} & set(nodes))
    assert unfit([Kernel(Ssh()), Ping()], ["node0", "node1"]) == {"node1": "its host no longer answers"}
    assert pinged(tmp_path) == ["node0"]
