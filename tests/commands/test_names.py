"""The names of SCR that cairn answers to, and exit codes as a shell sees them."""

import subprocess
from pathlib import Path
from typing import List, Tuple

import pytest


def run(command: Path, *arguments: object, folder: Path) -> Tuple[int, str, str]:
    done = subprocess.run([str(command), *map(str, arguments)], stdout=subprocess.PIPE, cwd=folder,
                          stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def test_scr_halt_is_cairn_halt(cairn: Path, tmp_path: Path) -> None:
    scr_halt = cairn.parent / "scr_halt"
    assert scr_halt.resolve() == cairn
    assert run(scr_halt, "-c", 2, tmp_path, folder=tmp_path)[0] == 0
    by_either = [run(cairn, "halt", "--list", folder=tmp_path),
                 run(scr_halt, "--list", folder=tmp_path)]
    assert by_either[0] == by_either[1]
    assert "after 2 more checkpoints" in by_either[0][1]


def test_any_other_name_is_cairn(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(cairn)
    assert run(tmp_path / "other", "--version", folder=tmp_path)[1].startswith("cairn ")


@pytest.mark.parametrize("arguments, code, words", [
    (["-b", "soon"], 2, ["--before", '"soon"', "YYYY-MM-DDTHH:MM:SS"]),
    (["-c", "-1"], 2, ["--checkpoints", "-1"]),
    (["-c"], 2, ["--checkpoints"]),
    (["--list", "--remove"], 2, ["--list", "--remove"]),
    (["--no-such-option"], 2, ["--no-such-option"]),
    (["/no/such/folder"], 1, ["/no/such/folder", "SCR_PREFIX"]),
])
def test_what_is_wrong_is_named(cairn: Path, tmp_path: Path, arguments: List[str], code: int,
                                words: List[str]) -> None:
    returned, output, told = run(cairn, "halt", *arguments, folder=tmp_path)
    assert (returned, output) == (code, "")
    assert all(word in told for word in words), told
    assert list(tmp_path.iterdir()) == []
