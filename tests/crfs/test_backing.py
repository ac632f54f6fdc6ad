"""The backing folder: others make files in it at the wrong moment, and other file systems are mounted within it."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from mounts import Mount, other_node

pytestmark = [pytest.mark.crfs_only, pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to be another")]
USER = 1  # every Debian has it
# As the user it prints what it has read, or the errno.
OPEN = """
import os, sys
os.setgroups([]); os.setgid(1); os.setuid(1)
try:
    file = os.open(sys.argv[1], int(sys.argv[2]), 0o600)
    print(os.read(file, 100).decode(), end="")
    os.write(file, b" and more")
except OSError as error:
    print(error.errno, end="")
"""


def opened_by_user(path: Path, flags: int) -> str:
    return subprocess.run([sys.executable, "-c", OPEN, str(path), str(os.O_RDWR | os.O_CREAT | flags)],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture
def brought(workshop) -> Path:
    """What another node brings into the backing folder just before CRFS would make a file there."""
    workshop.folder.chmod(0o755)
    folder = workshop.new_folder("elsewhere")
    folder.chmod(0o777)
    return folder / "brought"


@pytest.fixture
def late(workshop, brought) -> Callable[[str], Mount]:
    """A mount, by mode, than which the other node is always quicker."""

    def make(mode: str) -> Mount:
        backing = workshop.new_folder("backing")
        backing.chmod(0o777)
        return workshop.crfs("--mode", mode, backing=backing, environment=other_node(workshop.build, BRINGS=str(brought)))

    return make


@pytest.mark.parametrize("flags", [0, os.O_TRUNC])
def test_a_file_that_others_make_meanwhile_is_opened_by_who_may(late, mode, brought, flags):
    """The kernel believes that it is new, and has asked nobody."""
    mount = late(mode)
    brought.write_bytes(b"root's")
    brought.chmod(0o600)
    assert opened_by_user(mount.path / "secret", flags) == str(errno.EACCES)
    assert (mount.backing / "secret").read_bytes() == b"root's" and not brought.exists()
    brought.write_bytes(b"anybody's")
    brought.chmod(0o666)
    read = "" if flags else "anybody's"
    assert opened_by_user(mount.path / "open", flags) == read
    assert (mount.backing / "open").read_text() == (mount.path / "open").read_text() == read + " and more"


def test_it_is_not_opened_by_who_wants_a_new_one(late, mode, brought):
    mount = late(mode)
    brought.write_bytes(b"anybody's")
    brought.chmod(0o666)
    assert opened_by_user(mount.path / "file", os.O_EXCL) == str(errno.EEXIST)
    assert (mount.path / "file").read_bytes() == b"anybody's"


def test_it_may_be_a_link_or_a_folder(late, mode, brought):
    mount = late(mode)
    brought.symlink_to("target")
    assert opened_by_user(mount.path / "link", 0) == ""
    assert (mount.path / "link").is_symlink() and (mount.backing / "target").read_text() == " and more"
    brought.mkdir()
    brought.chmod(0o777)
    assert opened_by_user(mount.path / "folder", 0) == str(errno.EISDIR)
