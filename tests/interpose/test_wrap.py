"""cairn wrap: the environment, the dry run, and what it does with files that are left."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Iterator, List

import pytest

PATTERN = r"ckpt\.(?<step>\d+)$"


class Wrap:
    """The command with a prefix directory and a cache."""

    def __init__(self, build: Path, root: Path) -> None:
        self.command = build / "src/tools/cairn"
        self.prefix, self.cache = root / "run", root / "cache"
        self.prefix.mkdir()

    def environment(self) -> dict:
        return {**{name: value for name, value in os.environ.items() if not name.startswith(("SCR_", "CAIRN_"))},
                "SCR_CACHE_BASE": str(self.cache), "CAIRN_WRAP_FREE_PERCENT": "0", "LC_ALL": "C"}

    def words(self, *words: str, patterns: "tuple[str, ...]" = (PATTERN,)) -> List[str]:
        named = [word for pattern in patterns for word in ("--checkpoint", pattern)]
        return [str(self.command), "wrap", *named, *words]

    def run(self, *words: str, patterns: "tuple[str, ...]" = (PATTERN,), **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.words(*words, patterns=patterns), cwd=self.prefix, env={**self.environment(), **more},
                              text=True, capture_output=True, timeout=60, check=False)

    def script(self, script: str, *options: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return self.run(*options, "--", "bash", "-c", script, **more)

    def forecast(self, script: str, patterns: "tuple[str, ...]" = (PATTERN,), **more: str) -> dict:
        done = self.run("--dry-run", "--json", "--", "bash", "-c", script, patterns=patterns, **more)
        assert done.returncode == 0, done
        found = json.loads(done.stdout.splitlines()[-1])
        prefix = f"{self.prefix}/"
        found["files"] = {one["path"][len(prefix):]: one for one in found["files"] if one["path"].startswith(prefix)}
        return found

    def cached(self) -> List[str]:
        return sorted(path.name for path in self.cache.rglob("ckpt*") if path.is_file())


@pytest.fixture
def wrap(build: Path) -> Iterator[Wrap]:
    root = Path(tempfile.mkdtemp(prefix="wrap.", dir="/dev/shm")).resolve()
    yield Wrap(build, root)
    shutil.rmtree(root, ignore_errors=True)


def test_files_are_in_the_cache_and_then_in_their_places(wrap: Wrap) -> None:
    done = wrap.script(f"echo a >ckpt.1; ls; find {wrap.cache} -name ckpt.1 | wc -l; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "ckpt.1\n1\n", "")
    assert (wrap.prefix / "ckpt.1").read_text() == "a\n" and wrap.cached() == []


def test_a_file_that_the_program_has_not_closed_gets_its_place(wrap: Wrap) -> None:
    done = wrap.script("exec 7>ckpt.1; echo a >&7; kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL and (wrap.prefix / "ckpt.1").read_text() == "a\n"


def test_what_a_killed_command_left_is_moved_before_the_next_program_starts(wrap: Wrap) -> None:
    started = subprocess.Popen(wrap.words("--", "bash", "-c", "echo a >ckpt.1; echo $$ >pid; sleep 60 & wait"), cwd=wrap.prefix,
                               env=wrap.environment(), start_new_session=True)
    while not (wrap.prefix / "pid").exists():
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    assert wrap.cached() == ["ckpt.1"]
    done = wrap.script("cat ckpt.1")
    assert (done.returncode, done.stdout) == (0, "a\n") and (wrap.prefix / "ckpt.1").exists() and wrap.cached() == []


def test_ranks_of_a_node_may_each_have_the_command(wrap: Wrap) -> None:
    """One is still at work when another ends, or begins."""
    first = subprocess.Popen(wrap.words("--", "bash", "-c", "echo a >ckpt.1; read; echo b >>ckpt.1"), cwd=wrap.prefix,
                             env=wrap.environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    while wrap.cached() != ["ckpt.1"]:
        time.sleep(0.02)
    second = wrap.script("echo c >ckpt.2; cat ckpt.1")
    assert (second.returncode, second.stdout, second.stderr) == (0, "a\n", "") and wrap.cached() == ["ckpt.1", "ckpt.2"]
    _, errors = first.communicate(b"\n")
    assert (first.returncode, errors) == (0, b"") and wrap.cached() == []
    assert (wrap.prefix / "ckpt.1").read_text() == "a\nb\n" and (wrap.prefix / "ckpt.2").read_text() == "c\n"


def test_cairn_clean_knows_what_is_left_and_removes_it_when_the_files_are_in_their_places(wrap: Wrap) -> None:
    def clean() -> str:
        words = [str(wrap.command), "clean", "--remove", "--older-than", "0", "--cache", str(wrap.cache)]
        return subprocess.run(words, cwd=wrap.prefix, env=wrap.environment(), text=True, stdout=subprocess.PIPE, check=True).stdout

    assert "1 file not moved" not in clean()
    wrap.script("echo 1 > ckpt.1; kill -KILL $PPID; kill -KILL $$")
    assert wrap.cached() == ["ckpt.1"]
    output = clean()
    assert f"1 file not moved to {wrap.prefix} yet" in output and "kept" in output and wrap.cached() == ["ckpt.1"], output
    assert wrap.run("--settle").returncode == 0
    assert "removed" in clean()
    assert not list(wrap.cache.glob("*/cairn-wrap.*")) and (wrap.prefix / "ckpt.1").read_text() == "1\n"


def test_settle_moves_what_is_left(wrap: Wrap) -> None:
    node = subprocess.Popen(wrap.words("--", "bash", "-c", "echo a >ckpt.1; echo b >ckpt.2; touch ready; sleep 60 & wait"),
                            cwd=wrap.prefix, env=wrap.environment(), start_new_session=True)
    while not (wrap.prefix / "ready").exists():
        time.sleep(0.02)
    os.killpg(node.pid, signal.SIGKILL)
    node.wait()
    done = wrap.run("--settle", "--json", patterns=())
    assert json.loads(done.stdout)["moved"] == 2 and json.loads(done.stdout)["left"] == []
    assert sorted(path.name for path in wrap.prefix.glob("ckpt*")) == ["ckpt.1", "ckpt.2"]


def test_what_cannot_be_moved_stays_and_is_named(wrap: Wrap) -> None:
    done = wrap.script("mkdir d; echo a >d/ckpt.1; LD_PRELOAD= rmdir d; echo b >d")
    assert done.returncode == 1 and wrap.cached() == ["ckpt.1"]
    assert "1 file in" in done.stderr and "ckpt.1" in done.stderr and "--settle" in done.stderr


def test_another_preloaded_library_stays_in_the_environment(wrap: Wrap, build: Path) -> None:
    other = build / "tests/interpose/other_library.so"
    done = wrap.script("echo $LD_PRELOAD", LD_PRELOAD=str(other))
    assert done.stdout == f"{other}:{build / 'lib/libcairn-interpose.so'}\n"


@pytest.mark.parametrize("words, code, message", [
    (["--checkpoint", "ckpt(", "--", "true"], 1, "the pattern 'ckpt(' is wrong"),
    (["--checkpoint", "ckpt(", "--dry-run", "--", "true"], 1, "the pattern 'ckpt(' is wrong"),
    (["--", "true"], 2, "name the checkpoint files"),
    (["--checkpoint", "a"], 2, "name the program"),
    (["--checkpoint", "a", "--settle", "--", "true"], 2, "runs no program"),
    (["--checkpoint", "a", "--json", "--", "true"], 2, "--json belongs to"),
    (["--checkpoint", "a", "--", "/nowhere/program"], 127, "/nowhere/program"),
    (["--checkpoint", "a", "--cache", ".", "--", "true"], 1, "inside of the prefix directory"),
    (["--checkpoint", "a", "-p", "/nowhere", "--", "true"], 1, "/nowhere is not a directory"),
])
def test_wrong_usage_is_named_before_the_program_starts(wrap: Wrap, words: List[str], code: int, message: str) -> None:
    done = wrap.run(*words, patterns=())
    assert done.returncode == code and message in done.stderr, done


def test_the_patterns_of_scr_are_taken_where_none_is_given(wrap: Wrap) -> None:
    done = wrap.run("--", "bash", "-c", f"echo a >state.ckpt; find {wrap.cache} -name state.ckpt | wc -l", patterns=(),
                    SCR_CHECKPOINT_PATTERN="0-N:ckpt$")
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_a_dry_run_redirects_nothing(wrap: Wrap) -> None:
    done = wrap.script("echo a >ckpt.1; cat ckpt.1; echo b >other; exit 4", "--dry-run")
    assert (done.returncode, done.stdout) == (4, "a\n") and (wrap.prefix / "ckpt.1").read_text() == "a\n"
    assert "ckpt.1: to the cache, step 1" in done.stderr and "other: stays in its place: no pattern matches" in done.stderr
    assert not wrap.cache.exists()


def test_a_dry_run_says_what_a_real_run_does(wrap: Wrap) -> None:
    """For each kind of file: what is forecast is what happens."""
    before = "echo old >ckpt.3; echo old >ckpt.4; echo t >target; ln -s target ckpt.5"
    script = ("echo a >ckpt.1; echo more >>ckpt.1; echo b >t; mv t ckpt.2; echo x >>ckpt.3; echo y >ckpt.4; echo z >ckpt.5; "
              "echo c >ckpt.6; mv ckpt.6 kept; echo d >log; cp ckpt.1 ckpt.8; echo e >ckpt.9; ln -s ckpt.9 latest; cat latest ckpt.9 >copied; "
              "mkdir d; echo f >d/ckpt.10; ln -sn d newest; echo g >ckpt.11; ln ckpt.11 copy; ln -s log ckpt.12; echo h >>ckpt.9")
    subprocess.run(["bash", "-c", before], cwd=wrap.prefix, check=True)
    files = wrap.forecast(script)["files"]
    assert {name for name, one in files.items() if one["what"] == "redirected"} == {"ckpt.1", "ckpt.2", "ckpt.4", "ckpt.8"}
    assert files["ckpt.1"]["step"] == "1" and files["ckpt.2"]["step"] == "2"
    assert "latest is a link to it" in files["ckpt.9"]["why"] and "newest is a link to it" in files["d/ckpt.10"]["why"]
    assert "copy is a link to it" in files["ckpt.11"]["why"] and files["ckpt.12"]["why"].startswith("a link")
    subprocess.run(["bash", "-c", f"rm -r {wrap.prefix}/*; {before}"], cwd=wrap.prefix, check=True)
    done = wrap.script(f"{script}; find {wrap.cache} -type f -name '[ck]*'")
    assert sorted(Path(line).name for line in done.stdout.splitlines()) == ["ckpt.1", "ckpt.2", "ckpt.4", "ckpt.8"], done


def test_a_dry_run_sees_all_processes(wrap: Wrap) -> None:
    found = wrap.forecast("echo a >ckpt.1; bash -c 'echo b >>ckpt.1; echo c >ckpt.2' & wait; python3 -c 'open(\"ckpt.3\", \"w\")'")
    assert {name for name, one in found["files"].items() if one["what"] == "redirected"} == {"ckpt.1", "ckpt.2", "ckpt.3"}
    assert found["files"]["ckpt.1"]["writers"] == 2 and any("2 processes write it" in note for note in found["notes"])


@pytest.mark.parametrize("script, patterns, words", [
    ("echo a >ckpt.1", (PATTERN, "nothing"), "pattern 2 (nothing) matches no file"),
    ("echo a >t; mv t ckpt.1", (PATTERN,), "would be copied into the cache by a rename"),
    ("echo a >ckpt.1", ("ckpt",), "name the step"),
    ("echo a >ckpt; echo b >ckpt", ("ckpt$",), "1 name comes again"),
    ("echo a >ckpt; echo b >ckpt", ("ckpt$",), "s, which is too soon"),
    ("for i in 1 2; do rm -f ckpt; echo a >>ckpt; done", ("ckpt$",), "1 name comes again"),
    ("for i in 1 2; do for n in a b; do echo $i >ckpt.$n; done; done", (r"ckpt\.(?<step>[ab])$",), "2 names come again"),
    ("for i in 1 2; do echo $i >t; mv t ckpt; done", ("(ckpt|t)$",), "s, which is too soon"),
    ("for i in 1 2; do echo $i >t$i; mv t$i ckpt; done", (r"(ckpt|t\d)$",), "ckpt, from another name each time"),
    ("mkdir d; echo a >d/ckpt.1; mv d e", (PATTERN,), "1 file would be in a directory that is renamed"),
    ("echo a >ckpt.1; ln -s ckpt.1 latest", (PATTERN,), "1 file would leave the cache, as links lead to them"),
])
def test_a_dry_run_gives_advice(wrap: Wrap, script: str, patterns: "tuple[str, ...]", words: str) -> None:
    assert any(words in note for note in wrap.forecast(script, patterns)["notes"])


def test_a_dry_run_without_trouble_has_no_notes(wrap: Wrap) -> None:
    assert wrap.forecast("echo a >ckpt.1; cat ckpt.1")["notes"] == []


def test_a_dry_run_knows_names_that_come_again_as_steps(wrap: Wrap) -> None:
    notes = wrap.forecast("echo a >ckpt.a; sleep 1.1; echo b >ckpt.a", (r"ckpt\.(?<step>[ab])$",))["notes"]
    assert len(notes) == 1 and "1 name comes again" in notes[0], notes
    for script in ("echo a >ckpt.1; echo b >ckpt.1", "echo a >ckpt.1; echo b >>ckpt.1"):  # written on to the same step
        assert wrap.forecast(script)["notes"] == []


@pytest.mark.parametrize("script, pattern", [
    ("for i in 1 2; do echo $i >t$i; mv t$i ckpt; done", "ckpt$"),
    ("for i in 1 2; do echo $i >t; mv t ckpt; done", "(ckpt|t)$"),
    ("for i in 1 2; do echo $i >t$i; mv t$i ckpt.$i; done", r"(ckpt\.|t)(?<step>\d)$"),
])
def test_a_dry_run_does_not_advise_against_a_pattern_that_works(wrap: Wrap, script: str, pattern: str) -> None:
    assert not [note for note in wrap.forecast(script, (pattern,))["notes"] if "temporary name" in note]


def test_a_program_without_the_library_is_noticed(wrap: Wrap, tmp_path: Path) -> None:
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", tmp_path / "static.c", "-o", tmp_path / "static"], check=True)
    done = wrap.run("--dry-run", "--", str(tmp_path / "static"))
    assert done.returncode == 0 and "statically linked" in done.stderr
    done = wrap.run("--", str(tmp_path / "static"))
    assert done.returncode == 1 and "is statically linked" in done.stderr
