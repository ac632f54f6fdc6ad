"""Colour on a terminal, and nowhere else."""

import os
import pty
import subprocess
from pathlib import Path
from typing import List, Mapping

import pytest

from cairn.colour import is_wanted


def on_terminal(cairn: Path, folder: Path, words: List[str], **environment: str) -> str:
    """What a terminal receives."""
    leader, follower = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    subprocess.run([cairn, *words], cwd=folder, env={**kept, "TERM": "xterm", **environment}, stdin=subprocess.DEVNULL,
                   stdout=follower, stderr=follower, timeout=30, check=False)
    os.close(follower)
    text = b""
    while True:
        try:
            added = os.read(leader, 65536)
        except OSError:  # the terminal has no other end any more
            break
        text += added
        if not added:
            break
    os.close(leader)
    return text.decode()


@pytest.mark.parametrize("words", [["nosuch"], ["explain", "-p", "gone"], ["status", "-p", "gone"], ["run"]], ids=" ".join)
def test_errors_are_red_on_a_terminal(cairn: Path, tmp_path: Path, words: List[str]) -> None:
    assert on_terminal(cairn, tmp_path, words).startswith("cairn: \x1b[31merror:\x1b[0m ")
    for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_terminal(cairn, tmp_path, words, **off).startswith("cairn: error: ")


def test_the_levels_of_doctor_have_colours(cairn: Path, tmp_path: Path) -> None:
    assert "\x1b[32mgood\x1b[0m  ClusterShell is installed" in on_terminal(cairn, tmp_path, ["doctor"])
    assert "\x1b" not in on_terminal(cairn, tmp_path, ["doctor"], NO_COLOR="1")


@pytest.mark.parametrize("is_terminal, environment, wanted", [
    (True, {"TERM": "xterm"}, True), (False, {"TERM": "xterm"}, False), (True, {}, False),
    (True, {"TERM": "xterm", "NO_COLOR": "0"}, False), (True, {"TERM": "xterm", "NO_COLOR": ""}, True)])
def test_the_environment_decides(is_terminal: bool, environment: Mapping[str, str], wanted: bool) -> None:
    assert is_wanted(is_terminal, environment) == wanted
