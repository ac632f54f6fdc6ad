"""The backing folder: others make files in it at the wrong moment, other file systems are mounted within it, its server
trusts no root."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from mounts import Mount, other_node, run

pytestmark = [pytest.mark.crfs_only, pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to be another")]
USER = 1  # every Debian has it
MIB = 1 << 20
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


@pytest.fixture
def nested(workshop) -> Path:
    """A file system in memory, and two more within it, which have the same numbers."""
    outer = workshop.small_disk(8 * MIB)
    for name in ("a", "b"):
        (outer / name).mkdir()
        workshop.small_disk(8 * MIB, outer / name)
    for disk in (outer, outer / "a", outer / "b"):
        for name in ("one", "two"):
            (disk / name).write_text(f"{name} of {disk.name}")
        (disk / "folder").mkdir()
        os.link(disk / "one", disk / "folder/linked")
    return outer


def test_files_of_file_systems_within_have_numbers_of_their_own(workshop, mode, nested):
    mount = workshop.crfs("--mode", mode, backing=nested)
    found = run("find", ".", "-printf", "%P %D:%i\n", cwd=mount.path)
    below = run("find", ".", "-printf", "%P %D:%i\n", cwd=nested)
    assert "loop" not in found
    names = dict(line.rsplit(" ", 1) for line in found.splitlines())
    natively = dict(line.rsplit(" ", 1) for line in below.splitlines())
    assert names.keys() == natively.keys() and len(names) == 15

    def groups(numbers: dict) -> set:
        """Of names that are one file."""
        return {frozenset(name for name in numbers if numbers[name] == one) for one in numbers.values()}
    assert groups(names) == groups(natively)
    assert len(groups(names)) == 12


def test_a_folder_lists_the_numbers_that_its_files_have(workshop, mode, nested):
    """So many that the kernel asks for the later ones without their attributes."""
    for folder in (nested, nested / "a"):
        for number in range(1000):
            (folder / f"file{number}").touch()
    mount = workshop.crfs("--mode", mode, backing=nested)
    for folder in (mount.path, mount.path / "a"):
        listed = {entry.name: entry.inode() for entry in list(os.scandir(folder))}
        assert len(listed) >= 1003
        for name, number in listed.items():
            assert number == (folder / name).stat().st_ino or os.path.ismount(nested / folder.relative_to(mount.path) / name)


def test_a_copy_keeps_the_links_of_each(workshop, mode, nested):
    mount = workshop.crfs("--mode", mode, backing=nested)
    run("cp", "-a", mount.path, workshop.folder / "copy", cwd=workshop.folder)
    for disk in ("", "a", "b"):
        copy = workshop.folder / "copy" / disk
        assert (copy / "one").samefile(copy / "folder/linked") and (copy / "two").stat().st_nlink == 1
        assert (copy / "one").read_text() == f"one of {(nested / disk).name}"
        assert (copy / "two").read_text() == f"two of {(nested / disk).name}"


@pytest.mark.parametrize("served, warned", [
    ({"SERVES": "0x6969"}, True), ({"SERVES": "0x0BD00BD0"}, True), ({"SERVES": "0xEF53"}, False), ({}, False)])
def test_root_is_warned_where_he_may_be_nobody(workshop, served, warned):
    """The type of the file system of the folder, of NFS, Lustre, ext4, and as it is."""
    mount = workshop.crfs(environment=other_node(workshop.build, **served))
    assert mount.unmount() == 0
    assert mount.said().count("root_squash") == warned and mount.said().count("\n") == warned
