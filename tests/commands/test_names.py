"""The names of SCR that cairn answers to, and exit codes as a shell sees them."""

import subprocess
from pathlib import Path
from typing import List, Tuple

import pytest


def run(command: Path, *arguments: object, folder: Path) -> Tuple[int, str, str]:
    done = subprocess.run([str(command), *map(str, arguments)], stdout=subprocess.PIPE, cwd=folder,
                          stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def test_scr_halt_is_cairn_halt_and_takes_prefix_directories(cairn: Path, tmp_path: Path) -> None:
    scr_halt = cairn.parent / "scr_halt"
    assert scr_halt.resolve() == cairn
    assert run(scr_halt, "-c", 2, tmp_path, folder=tmp_path)[0] == 0
    by_either = [run(cairn, "halt", "--list", "-p", tmp_path, folder=tmp_path),
                 run(scr_halt, "--list", tmp_path, folder=tmp_path)]
    assert by_either[0] == by_either[1] == run(scr_halt, "--list", folder=tmp_path)
    assert "after 2 more checkpoints" in by_either[0][1]


@pytest.mark.parametrize("by_scr, by_cairn", [
    (["--list"], ["list"]), ([], ["list"]), (["--add", "x"], ["add", "x"]),
    (["-b", "7"], ["build"]), (["-c", "x"], ["current", "x"]), (["-d", "x"], ["drop", "x"]),
    (["--drop-after", "x"], ["drop", "--after", "x"]),
])
def test_scr_index_is_cairn_index(cairn: Path, tmp_path: Path, by_scr: List[str],
                                  by_cairn: List[str]) -> None:
    """What they do to datasets is tested in tools_test."""
    scr_index = cairn.parent / "scr_index"
    assert scr_index.resolve() == cairn
    (tmp_path / ".cairn" / "datasets").mkdir(parents=True)
    scr = run(scr_index, "-p", tmp_path, *by_scr, folder=tmp_path)
    native = run(cairn, "index", *by_cairn, "-p", tmp_path, folder=tmp_path)
    if by_scr == ["-b", "7"]:
        assert (scr[0], native[0]) == (1, 0)
        assert "no dataset of number 7" in scr[2]
    else:
        assert scr == native


@pytest.mark.parametrize("name, launcher", [("scr_jsrun", "jsrun"), ("scr_fluxrun", "flux"), ("scr_lrun", "lrun")])
def test_scrs_names_of_launchers_run_that_launcher(cairn: Path, tmp_path: Path, name: str, launcher: str) -> None:
    """None of them is installed here."""
    code, _, printed = run(cairn.parent / name, "-n2", "./program", folder=tmp_path)
    assert code != 0 and launcher in printed


@pytest.mark.parametrize("name", ["scr_index", "scr_postrun", "scr_prerun", "scr_list_down_nodes", "scr_should_exit",
                                  "scr_env", "scr_ckpt_interval"])
@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_scrs_commands_accept_verbose(cairn: Path, tmp_path: Path, name: str, option: str) -> None:
    _, _, printed = run(cairn.parent / name, option, "-p", tmp_path, folder=tmp_path)
    assert "--help" not in printed, "wrong usage"


@pytest.mark.parametrize("name", ["scr_index", "scr_postrun", "scr_list_down_nodes"])
@pytest.mark.parametrize("option", ["-j", "--joblauncher"])
def test_scrs_commands_accept_the_launcher(cairn: Path, tmp_path: Path, name: str, option: str) -> None:
    _, _, printed = run(cairn.parent / name, option, "srun", "-p", tmp_path, folder=tmp_path)
    assert "--help" not in printed, "wrong usage"


@pytest.mark.parametrize("arguments", [
    ["no-such-action"], ["drop"], ["list", "name"], ["build", "--check"], ["show", "x", "--force"],
])
def test_what_index_does_not_know_is_wrong_usage(cairn: Path, tmp_path: Path,
                                                 arguments: List[str]) -> None:
    assert run(cairn, "index", *arguments, folder=tmp_path)[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["--json"], ["-p", "."], ["--dropped"]])
def test_index_alone_lists(cairn: Path, tmp_path: Path, arguments: List[str]) -> None:
    (tmp_path / ".cairn" / "datasets").mkdir(parents=True)
    by_default = run(cairn, "index", *arguments, folder=tmp_path)
    assert by_default == run(cairn, "index", "list", *arguments, folder=tmp_path)
    assert by_default[0] == 0


def test_a_name_of_scr_may_follow_cairn(cairn: Path, tmp_path: Path) -> None:
    assert run(cairn, "scr_index", "--list", folder=tmp_path) == run(cairn, "index", folder=tmp_path)


@pytest.mark.parametrize("arguments, words", [
    (["prern"], ['did you mean "cairn prerun"?']),
    (["indx"], ['there is no command "cairn indx"; did you mean "cairn index"?']),
    (["scavange", "--list"], ['did you mean "cairn scavenge"?']),
    (["idx"], ['"cairn idx"; "cairn --help" lists all']),
    (["index", "lst"], ['"cairn index lst"; did you mean "cairn index list"?']),
    (["index", "frobnicate"], ['"cairn index frobnicate"; "cairn index --help" lists all']),
])
def test_a_word_that_is_no_command_is_named(cairn: Path, tmp_path: Path, arguments: List[str],
                                            words: List[str]) -> None:
    returned, output, printed = run(cairn, *arguments, folder=tmp_path)
    assert (returned, output) == (2, "")
    assert printed.startswith("cairn: error: ") and all(word in printed for word in words), printed


def test_halt_takes_the_prefix_as_the_others_do(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "other").mkdir()
    for arguments in (["-p", "run"], ["--prefix", tmp_path / "run"], ["-p", "other", "-p", "run"]):
        assert run(cairn, "halt", *arguments, folder=tmp_path)[0] == 0
        assert (tmp_path / "run" / ".cairn" / "halt").exists()
        assert run(cairn, "halt", "--remove", *arguments, folder=tmp_path)[0] == 0
    returned, output, printed = run(cairn, "halt", "run", folder=tmp_path)
    assert (returned, output) == (2, "") and "--prefix" in printed
    assert not (tmp_path / "run" / ".cairn" / "halt").exists()


def test_scr_index_does_one_thing_at_a_time(cairn: Path, tmp_path: Path) -> None:
    scr_index = cairn.parent / "scr_index"
    assert run(scr_index, "-d", "a", "-c", "b", folder=tmp_path)[0] == 2
    assert run(scr_index, "-b", "x", folder=tmp_path)[0] == 2


def test_scr_print_is_cairn_print(cairn: Path, tmp_path: Path) -> None:
    scr_print = cairn.parent / "scr_print"
    assert scr_print.resolve() == cairn
    run(cairn, "halt", "-c", 2, folder=tmp_path)
    by_either = [run(scr_print, ".cairn/halt", folder=tmp_path),
                 run(cairn, "print", ".cairn/halt", folder=tmp_path)]
    assert by_either[0] == by_either[1]
    assert by_either[0][0] == 0 and "checkpoints_left: 2" in by_either[0][1]
    assert run(scr_print, folder=tmp_path)[0] == 2
    assert run(scr_print, "gone", folder=tmp_path)[0] == 1


def test_any_other_name_is_cairn(cairn: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(cairn)
    assert run(tmp_path / "other", "--version", folder=tmp_path)[1].startswith("cairn ")


@pytest.mark.parametrize("arguments, code, words", [
    (["-b", "soon"], 2, ["--before", '"soon"', "YYYY-MM-DDTHH:MM:SS"]),
    (["-c", "-1"], 2, ["--checkpoints", "-1"]),
    (["-c"], 2, ["--checkpoints"]),
    (["--list", "--remove"], 2, ["--list", "--remove"]),
    (["--no-such-option"], 2, ["--no-such-option"]),
    (["-p", "/no/such/folder"], 1, ["/no/such/folder", "SCR_PREFIX"]),
])
def test_what_is_wrong_is_named(cairn: Path, tmp_path: Path, arguments: List[str], code: int,
                                words: List[str]) -> None:
    returned, output, printed = run(cairn, "halt", *arguments, folder=tmp_path)
    assert (returned, output) == (code, "")
    assert all(word in printed for word in words), printed
    assert list(tmp_path.iterdir()) == []
