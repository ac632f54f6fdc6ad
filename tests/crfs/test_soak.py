"""What the soak says at its end."""

import os
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).resolve().parent / "soak"


def test_a_soak_that_left_something_out_is_no_success(tmp_path):
    """Nothing that would build pjdfstest or fsx is found, and there is no time."""
    done = subprocess.run([sys.executable, SOAK, "--build", tmp_path, "--seconds", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("pjdfstest was never run", "fsx was never run", "no round was finished"))
    assert "no large round was finished" in done.stdout
