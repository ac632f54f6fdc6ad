"""Every decoder for five seconds under the fuzzer, which begin with all kept inputs; and the proof that a defect is found.

FUZZ_SECONDS in the environment sets another time. Without clang this fails: nothing is skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

import run  # noqa: E402

SECONDS = int(os.environ.get("FUZZ_SECONDS", "5"))
AT_ONCE = 2


@pytest.fixture(scope="session", autouse=True)
def built():
    run.build(shutil.which("ccache"), AT_ONCE)


def test_no_decoder_breaks():
    outcomes = run.fuzz_all(run.target_names(), SECONDS, AT_ONCE)
    print(run.report(outcomes))
    assert len(outcomes) == 10
    assert not [failure for done in outcomes for failure in done.failures]


def test_a_planted_defect_is_found():
    found = run.Target("planted_defect").fuzz(SECONDS)
    assert any("it is not bad" in failure for failure in found.failures)
    replay = found.failures[0].split("replay: ")[1].split()
    assert subprocess.run(replay, capture_output=True, check=False).returncode != 0


def test_each_target_has_a_small_corpus():
    for name in run.target_names():
        files = run.files_in(run.Target(name).corpus)
        assert files, f"fuzz/corpus/{name} is missing: make fuzz"
        assert len(files) <= run.CORPUS_FILES_MAX, name
        assert sum(path.stat().st_size for path in files) <= run.CORPUS_BYTES_MAX, name


def test_nothing_is_kept_of_a_target_that_is_gone():
    names = set(run.target_names())
    for folder in ("corpus", "regressions"):
        kept = {path.name for path in (ROOT / "fuzz" / folder).iterdir()}
        assert kept <= names
