"""What the soak says at its end."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parent / "soak"


def test_a_soak_that_left_something_out_is_no_success(tmp_path):
    """Nothing that would build pjdfstest or fsx is found, and there is no time."""
    done = subprocess.run([sys.executable, SOAK, "--build", tmp_path, "--seconds", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("pjdfstest was never run", "fsx was never run", "no round was finished"))
    assert "no large round was finished" in done.stdout


@pytest.mark.parametrize("body, left_out", [
    ('pytest.skip("NOT RUN: fio is not there (make ...)")', {"fio is not there (make ...)"}),
    ('pytest.skip("NOT RUN: criu does not work here: ...")', set()), ('pytest.skip("not for root")', set()),
    ("pytest.exit('no FUSE here', 77)", {"all suites were skipped"})])
def test_what_a_suite_was_skipped_for_is_left_out(tmp_path, monkeypatch, build, body, left_out):
    """With the same options and the same count of what is missing, and one test in place of all."""
    loader = importlib.machinery.SourceFileLoader("soak", str(SOAK))
    soak = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(soak)
    monkeypatch.setattr(soak, "SUITES", tmp_path)
    for name in ("conftest.py", "mounts.py"):
        shutil.copy(SOAK.parent / name, tmp_path)
    (tmp_path / "test_one.py").write_text(f"import pytest\ndef test_one():\n    {body}\n")
    found = set()
    assert soak.run_suites(build, 1, False, time.monotonic() + 60, found) is True
    assert soak.run_suites(build, 1, False, time.monotonic(), found) in (None, True), "the time is up: nothing has failed"
    assert found == left_out
