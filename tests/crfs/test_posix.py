"""What POSIX says of a file system: the mount answers as the folder below it does."""

import os
import re
import subprocess
from pathlib import Path
from typing import Dict

import pytest

# Users that every Debian has; whose they are does not matter. Timestamps in memory go by the timer's tick.
SETTINGS = """
[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["daemon", "daemon"], ["bin", "bin"]]
"""


def results(pjdfstest: str, folder: Path, settings: Path) -> Dict[str, str]:
    """The verdict of each of pjdfstest's tests in a folder."""
    folder.mkdir(mode=0o755)
    run = subprocess.run([pjdfstest, "-c", str(settings), "-p", str(folder)], timeout=600, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return dict(re.findall(r"^(\S+) +(ok|FAILED|skipped)$", run.stdout, re.MULTILINE))


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: pjdfstest changes users, which root only can")
def test_pjdfstest_gives_the_same_on_the_mount_and_below_it(workshop, mode, needs):
    pjdfstest = needs("pjdfstest")
    settings = workshop.folder / "pjdfstest.toml"
    settings.write_text(SETTINGS)
    mount = workshop.crfs("--mode", mode)
    below = results(pjdfstest, mount.backing / "below", settings)
    above = results(pjdfstest, mount.path / "above", settings)
    assert len(below) > 350 and list(below.values()).count("ok") > 300
    assert {name: (below.get(name), above.get(name)) for name in {*below, *above}
            if below.get(name) != above.get(name)} == {}
