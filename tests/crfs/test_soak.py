"""What the soak says at its end."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Tuple

import pytest

SOAK = Path(__file__).resolve().parent / "soak"


@pytest.fixture
def soak(monkeypatch):
    loader = importlib.machinery.SourceFileLoader("soak", str(SOAK))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    return module


@pytest.fixture
def suite_of(tmp_path):
    """suite_of(name, body): a suite of one test, with the options of all."""
    for name in ("conftest.py", "mounts.py"):
        shutil.copy(SOAK.parent / name, tmp_path)

    def make(name: str, body: str) -> Path:
        suite = tmp_path / f"{name}.py"
        suite.write_text(f"import pytest, time\ndef test_one(long):\n    {body}\n")
        return suite

    return make


def test_a_soak_that_left_something_out_is_no_success(tmp_path):
    """Nothing that would build pjdfstest or fsx is found, and there is no time."""
    done = subprocess.run([sys.executable, SOAK, "--build", tmp_path, "--seconds", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("pjdfstest was never run", "fsx was never run", "not even a small round"))
    assert "never finished at full size, which needs more --seconds: test_backing, " in done.stdout


def end_of(soak, monkeypatch, capsys, build, *suites: Path, seconds: float) -> Tuple[object, str]:
    """The exit status of a soak of these suites, or what it says as it fails, and what it has printed."""
    monkeypatch.setattr(soak, "SUITES", suites)
    monkeypatch.setattr(soak, "install", lambda build: [])
    monkeypatch.setattr(sys, "argv", ["soak", "--build", str(build), "--seconds", str(seconds)])
    try:
        soak.main()
    except SystemExit as end:
        return end.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_the_end_tells_which_suites_were_finished_at_full_size(soak, suite_of, monkeypatch, capsys, build):
    code, said = end_of(soak, monkeypatch, capsys, build, suite_of("test_quick", "pass"),
                        suite_of("test_slow", "time.sleep(60 if long else 0)"), seconds=20)
    assert code == 0 and "nothing failed" in said
    told = [line.split()[1:4] for line in said.splitlines() if line.startswith("soak: test_")]
    assert told == [["test_quick", "1", "1"], ["test_slow", "1", "0"]]
    assert said.splitlines()[-1].endswith("never finished at full size, which needs more --seconds: test_slow")


def test_what_fails_is_named_with_its_seed(soak, suite_of, monkeypatch, capsys, build):
    code, _ = end_of(soak, monkeypatch, capsys, build, suite_of("test_bad", "assert not long"), seconds=60)
    assert code == "soak: test_bad failed with seed 1, large"


@pytest.mark.parametrize("body, left_out", [
    ('pytest.skip("NOT RUN: fio is not there (make ...)")', {"fio is not there (make ...)"}),
    ('pytest.skip("NOT RUN: criu does not work here: ...")', set()), ('pytest.skip("not for root")', set()),
    ("pytest.exit('no FUSE here', 77)", {"there is no FUSE here"})])
def test_what_a_suite_was_skipped_for_is_left_out(soak, suite_of, build, body, left_out):
    suite, found = suite_of("test_one", body), set()
    assert soak.run_suite(suite, build, 1, False, time.monotonic() + 60, found) is True
    assert soak.run_suite(suite, build, 1, False, time.monotonic(), found) in (None, True), "the time is up: nothing has failed"
    assert found == left_out
