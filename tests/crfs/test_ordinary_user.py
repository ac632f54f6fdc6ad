"""CRFS mounted by somebody who is not root, with the help of fusermount3."""

import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from mounts import PATIENCE_S, is_mount

pytestmark = [pytest.mark.crfs_only, pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to be another")]
USER = 1  # every Debian has it
FUSE_DEVICE = os.makedev(10, 229)


@pytest.fixture
def home(build) -> Iterator[Path]:
    """A folder of the user, with the command. Where /dev/fuse is root's alone, ours (no other process sees it) is not:
    that is how udev makes it."""
    folder = Path(tempfile.mkdtemp(prefix="cairn-user-", dir="/dev/shm"))
    folder.chmod(0o755)
    shutil.copy(build / "src/crfs/crfs", folder / "crfs")
    for name in ("backing", "mount", "dev"):
        (folder / name).mkdir()
        os.chown(folder / name, USER, USER)
    mounted = []
    if stat.S_IMODE(os.stat("/dev/fuse").st_mode) & 0o006 != 0o006:
        if os.readlink("/proc/self/ns/mnt") == os.readlink(f"/proc/{os.getppid()}/ns/mnt"):
            pytest.skip("NOT RUN: /dev/fuse is root's alone, and the mounts here are everybody's")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder / "dev"], check=True)
        mounted.append(folder / "dev")
        os.mknod(folder / "dev/fuse", stat.S_IFCHR | 0o666, FUSE_DEVICE)
        (folder / "dev/fuse").chmod(0o666)
        subprocess.run(["mount", "--bind", folder / "dev/fuse", "/dev/fuse"], check=True)
        mounted.append(Path("/dev/fuse"))
    yield folder
    as_user("fusermount3", "-u", "-z", "-q", folder / "mount", check=False)
    for place in reversed(mounted):
        subprocess.run(["umount", "-l", place], check=True)
    shutil.rmtree(folder)


def as_user(*command: object, check: bool = True) -> Tuple[int, str]:
    done = subprocess.run([*map(str, command)], user=USER, group=USER, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0 or not check, done.stdout
    return done.returncode, done.stdout


@pytest.mark.parametrize("mode", ["auto", "writeback"])
def test_the_mount_is_for_the_user_and_gathers(home, mode):
    """In the background, as it is used; a second fusermount3 ends it."""
    as_user(home / "crfs", "--mode", mode, "--stats", "--stats-file", home / "backing/stats", home / "backing",
            home / "mount")
    assert is_mount(home / "mount")
    as_user("sh", "-c", f"cd {home}/mount && for i in 1 2 3; do echo $i; done > file && mkdir new && mv file new")
    assert as_user("cat", home / "mount/new/file") == (0, "1\n2\n3\n")
    status = (home / "backing/new/file").stat()
    assert (status.st_uid, status.st_size) == (USER, 6)
    with pytest.raises(PermissionError):  # not even root's
        os.listdir(home / "mount")
    as_user("fusermount3", "-u", home / "mount")
    end = time.monotonic() + PATIENCE_S
    while not (home / "backing/stats").exists() or "0 files" not in (home / "backing/stats").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not is_mount(home / "mount")


def test_what_only_root_may_do_is_said(home):
    code, said = as_user(home / "crfs", "--mode", "passthrough", home / "backing", home / "mount", check=False)
    assert code == 2 and "root" in said and not is_mount(home / "mount")


def test_a_file_of_others_is_refused(home):
    (home / "backing/secret").write_text("root's")
    (home / "backing/secret").chmod(0o600)
    as_user(home / "crfs", home / "backing", home / "mount")
    for command in ("cat", "tee"):
        code, said = as_user(command, home / "mount/secret", check=False)
        assert code != 0 and "Permission denied" in said
    assert (home / "backing/secret").read_text() == "root's"
