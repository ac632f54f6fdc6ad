"""Where there is nothing to look with, nothing has been looked at: that must not be green."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SKIPPED

PASSES = "test_page.py::test_where_there_is_no_log_nothing_is_written"
CHOSEN = {"the page": "test_browser.py::test_the_empty_page_is_one_too", "the figures": "test_metrics.py"}


@pytest.mark.parametrize("chosen", sorted(CHOSEN))
def test_what_cannot_be_looked_at_counts_as_skipped(chosen: str, tmp_path: Path, cairn: Path) -> None:
    """No chromium is on PATH, and no parser of the figures can be imported."""
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('none here')\n")
    folder = Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / PASSES),
         str(folder / CHOSEN[chosen]), "--cairn", str(cairn)], check=False, timeout=60, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)})
    assert done.returncode == SKIPPED and "skipped" in done.stdout, done
