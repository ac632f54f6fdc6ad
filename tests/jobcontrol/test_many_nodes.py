"""What thousands of nodes need of this machine."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Tuple

import pytest

from cairn.heartbeats import Heartbeats
from cairn.processes import FILES_BESIDE, readable
from cairn.resources.local import Here
from jobs import Job
from stand_ins import put_on_path

LIMITS = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from cairn.processes import allow_files
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 2000))
allow_files(int(sys.argv[2]))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("count, said", [(1000, f"{1000 + FILES_BESIDE} 2000"), (5000, "ulimit -Hn allows 2000")])
def test_the_soft_limit_of_open_files_is_raised_as_far_as_it_may(count: int, said: str) -> None:
    package = str(Path(__file__).resolve().parents[2] / "python")
    done = subprocess.run([sys.executable, "-B", "-c", LIMITS, package, str(count)], text=True, check=False, timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert said in done.stdout, done.stdout


def test_pipes_of_any_number_are_waited_for() -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1200:
        pytest.skip("too few files may be open")
    reader, writer = os.pipe()
    high = fcntl.fcntl(reader, fcntl.F_DUPFD, 1100)
    assert readable([high], 0.01) == []
    os.write(writer, b"x")
    assert readable([high], 1) == [high]
    for number in (reader, writer, high):
        os.close(number)


class Scarce(Here):
    """The second process cannot be started."""

    def __init__(self) -> None:
        super().__init__(os.environ)
        self.begun: List[Tuple[str, "subprocess.Popen[bytes]"]] = []

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        if self.begun:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.begun.append((node, super().start(node, command)))
        return self.begun[0][1]


def test_nodes_that_cannot_be_watched_are_not_suspected() -> None:
    remote = Scarce()
    with Heartbeats(remote, ["n0", "n1"], patience_s=0.0) as beats:
        assert beats.trouble == os.strerror(errno.EMFILE) and beats.suspects() == []
    (_, process), = remote.begun
    assert process.returncode is not None, "it does not go on with nobody to listen"


class Late(Here):
    """The first process cannot be started."""

    refused = False
    begun: "Optional[subprocess.Popen[bytes]]" = None

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        if not self.refused:
            self.refused = True
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self.begun = super().start(node, command)
        return self.begun


def test_nodes_that_could_not_be_watched_are_tried_again() -> None:
    remote = Late(os.environ)
    with Heartbeats(remote, ["n0"], patience_s=5.0, rest_s=0.0) as beats:
        assert beats.trouble and beats.suspects() == [] and remote.begun is not None
        remote.begun.kill()
        end = time.monotonic() + 10
        while beats.suspects() != ["n0"]:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_run_goes_on_without_signs_of_life(cairn: Path, tmp_path: Path) -> None:
    put_on_path(tmp_path)
    commands = tmp_path / "stand-ins"
    (commands / "ssh").unlink()
    (commands / "sh").symlink_to("/bin/sh")
    job = Job(cairn, tmp_path, ["--no-scavenge"], ["srun", "-n1", "/bin/sh", "-c", "echo here"],
              {"SCR_NODELIST": "node[0-1]", "SCR_NODE_TESTS": "none", "CAIRN_REMOTE": "ssh", "PATH": str(commands)})
    outcome = job.wait()
    assert outcome.code == 0 and "here" in outcome.output, outcome
    assert "only the launcher is watched" in outcome.printed
