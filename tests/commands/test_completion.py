"""Completion in shells: the committed files are those that the tables give, and bash completes by them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Set

import pytest

COMPLETION = Path(__file__).resolve().parents[2] / "packaging" / "completion"
sys.path.insert(0, str(COMPLETION))

import generate_completions  # noqa: E402  pylint: disable=wrong-import-position

COMPLETE = """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_cairn
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(folder: Path, *words: str) -> Set[str]:
    """What bash offers for the last of the words."""
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", str(COMPLETION / "cairn"), *words], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, check=False)
    assert done.stderr == "", done
    return set(done.stdout.split())


def test_the_committed_completions_follow_from_the_tables(cairn: Path) -> None:
    made = generate_completions.completions(cairn)
    assert len(made) == 3
    for name, text in made.items():
        assert (COMPLETION / name).read_text() == text, f"run packaging/completion/generate_completions.py: {name} differs"


@pytest.mark.parametrize("words, expected", [
    (["cairn", "st"], {"status"}), (["cairn", "sc"], {"scavenge"}), (["cairn", "--v"], {"--version"}),
    (["cairn", "help", "exi"], {"exit-codes"}), (["cairn", "help", "ru"], {"run"}),
    (["cairn", "index", "d"], {"drop", "delete"}), (["cairn", "rbio", ""], {"list", "show", "verify", "extract"}),
    (["cairn", "index", "drop", "--a"], {"--after"}), (["cairn", "rbio", "list", "--st"], set()),
    (["cairn", "index", "-p", "/x", "sh"], set()), (["cairn", "rbio", "-V", "sh"], {"show"}),
    (["cairn", "layout", "--placement", ""], {"block", "cyclic"}), (["cairn", "layout", "--placement", "c"], {"cyclic"}),
    (["cairn", "layout", "--placement", "block", "--no"], {"--nodes"}),
    (["scr-ckpt-interval", "--mo"], set()), (["scr_ckpt_interval", "--model", "d"], {"daly"}),
    (["/usr/bin/scr_halt", "--im"], {"--immediate"}), (["scr_index", "--drop-"], {"--drop-after"}),
    (["cairn", "run", "--min"], {"--min-nodes"}), (["cairn", "run", "--min-nodes", "3", "bas"], {"bash", "basename", "bashbug"}),
    (["cairn", "run", "mpirun", "-n", "4", "--min"], set()), (["scr_srun", "--min"], {"--min-nodes"}),
])
def test_bash_completes_words(tmp_path: Path, words: List[str], expected: Set[str]) -> None:
    found = completed(tmp_path, *words)
    assert found == expected or ("bash" in expected and "bash" in found and all(one.startswith("bas") for one in found))


def test_bash_offers_the_commands_that_help_lists_and_no_other(cairn: Path, tmp_path: Path) -> None:
    help_text = subprocess.run([cairn, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=30).stdout
    offered = completed(tmp_path, "cairn", "")
    assert "halt" in offered and "down-nodes" not in offered
    assert all(f"\n  {name} " in help_text for name in offered - {"help"})


def test_bash_completes_directories_and_leaves_files_to_readline(tmp_path: Path) -> None:
    (tmp_path / "run1").mkdir()
    (tmp_path / "run2").touch()
    assert completed(tmp_path, "cairn", "status", "-p", "ru") == {"run1"}
    assert completed(tmp_path, "cairn", "status", "--prefix", "ru") == {"run1"}
    assert completed(tmp_path, "cairn", "print", "ru") == set(), "complete -o default takes files"
    assert completed(tmp_path, "cairn", "halt", "-c", "ru") == set(), "a number is due"


@pytest.mark.parametrize("shell, name, option", [("bash", "cairn", "-n"), ("zsh", "_cairn", "-n"), ("fish", "cairn.fish", "--no-execute")])
def test_a_shell_can_read_its_completion(shell: str, name: str, option: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    assert subprocess.run([found, option, COMPLETION / name], timeout=30, check=False).returncode == 0
