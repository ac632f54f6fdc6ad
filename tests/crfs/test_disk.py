"""CRFS over a disk of its own, where root can make one of a file."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from conftest import NO_PASSTHROUGH

pytestmark = pytest.mark.crfs_only
MIB, PAGE = 1 << 20, 4096


@pytest.fixture
def image(workshop, needs) -> Path:
    """The file that has all that is on the disk."""
    image = workshop.folder / "image"
    with image.open("wb") as file:
        file.truncate(24 * MIB)
    subprocess.run([needs("mkfs.ext4"), "-q", "-m", "25", image], check=True)
    return image


@pytest.fixture
def disk(workshop, image) -> Iterator[Path]:
    disk = workshop.new_folder("disk")
    if subprocess.run(["mount", "-o", "loop", image, disk], check=False).returncode != 0:
        pytest.skip("NOT RUN: no disk can be made of a file here (loop devices)")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_nobody_gets_what_is_reserved_for_root(workshop, kernel_passes, disk):
    """Of the blocks of a disk, though root has opened the file first."""
    if not kernel_passes:
        pytest.skip(NO_PASSTHROUGH)
    mount = workshop.crfs("--mode", "passthrough", backing=disk)
    filled = {}
    for folder in (disk, mount.path):
        file = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
        code = ("import os, sys; os.setgroups([]); os.setgid(1); os.setuid(1)\n"
                "try:\n while True: os.write(int(sys.argv[1]), bytes(65536))\nexcept OSError: pass")
        subprocess.run([sys.executable, "-c", code, str(file)], pass_fds=[file], check=True)
        filled[folder] = os.fstat(file).st_size
        os.close(file)
        (folder / "file").unlink()
        os.sync()
    assert filled[mount.path] <= filled[disk] + MIB < 24 * MIB
    assert mount.unmount() == 0


@pytest.mark.parametrize("mode, close", [("direct", "wait"), ("direct", "async"), ("writeback", "async"),
                                         ("passthrough", "wait")])
def test_sync_of_the_mount_brings_what_was_closed_to_the_disk(workshop, disk, image, mode, close):
    mount = workshop.crfs("--mode", mode, "--close", close, backing=disk)
    folder = mount.path / "folder"
    folder.mkdir()
    written = random.Random(1).randbytes(PAGE)
    (folder / "file").write_bytes(written)
    subprocess.run(["sync", mount.path], check=True)
    assert written in image.read_bytes()
    assert mount.unmount() == 0
