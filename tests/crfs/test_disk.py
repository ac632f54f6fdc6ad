"""CRFS over a disk of its own, where root can make one of a file."""

import os
import subprocess
import sys

import pytest

from conftest import NO_PASSTHROUGH

pytestmark = pytest.mark.crfs_only
MIB = 1 << 20


def test_nobody_gets_what_is_reserved_for_root(workshop, kernel_passes, needs):
    """Of the blocks of a disk, though root has opened the file first."""
    if not kernel_passes:
        pytest.skip(NO_PASSTHROUGH)
    image, disk = workshop.folder / "image", workshop.new_folder("disk")
    with image.open("wb") as file:
        file.truncate(24 * MIB)
    subprocess.run([needs("mkfs.ext4"), "-q", "-m", "25", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, disk], check=False).returncode != 0:
        pytest.skip("NOT RUN: no disk can be made of a file here (loop devices)")
    try:
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
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
