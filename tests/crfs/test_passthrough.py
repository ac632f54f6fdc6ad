"""When files are left to the kernel, and what comes with it. What it shares with other modes is tested with them."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from mounts import PATIENCE_S

pytestmark = [pytest.mark.crfs_only,
              pytest.mark.skipif(os.geteuid() != 0, reason="skipped: Linux lets only root pass files through")]
MIB = 1 << 20
NOBODY = 65534


def written_unsynced(path: Path, data: bytes) -> int:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(file, data)
    return file


@pytest.fixture
def passing(workshop):
    """A mount that passes files through; the test is skipped where the kernel cannot."""
    mount = workshop.crfs("--mode", "passthrough")
    if "cannot" in mount.said():
        pytest.skip("NOT RUN: this kernel passes no files through")
    return mount


@pytest.fixture
def overlay(workshop) -> Iterator[Path]:
    layers = workshop.new_folder("layers")
    for name in ("lower", "upper", "work", "merged"):
        (layers / name).mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                    f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work", layers / "merged"],
                   check=True)
    yield layers / "merged"
    subprocess.run(["umount", "-l", layers / "merged"], check=True)


@pytest.mark.parametrize("options, passed", [
    (("--mode", "auto"), True), (("--mode", "auto", "--profile"), False),
    (("--mode", "auto", "--close", "async"), False), (("--icpp2011",), False), (("--mode", "direct"), False)])
def test_a_folder_in_memory_is_passed_through_where_nothing_needs_all_writes(workshop, passing, options, passed):
    mount = workshop.crfs(*options)
    file = written_unsynced(mount.path / "file", b"data")
    assert (mount.backing / "file").read_bytes() == (b"data" if passed else b"")
    assert (mount.stats()["passed_through"], mount.stats()["writes_in"]) == ((1, 0) if passed else (0, 1))
    os.close(file)


def test_a_slow_folder_is_not(workshop):
    mount = workshop.crfs("--mode", "auto", backing=workshop.slowfs("--delay-us", "1000").path)
    os.close(written_unsynced(mount.path / "file", b"data"))
    assert mount.stats()["passed_through"] == 0 and mount.stats()["writes_in"] == 1


def test_all_handles_of_a_file_see_one_file(passing):
    path = passing.path / "file"
    writer = written_unsynced(path, b"12345")
    reader = os.open(path, os.O_RDONLY)
    both = os.open(path, os.O_RDWR | os.O_APPEND)
    os.write(both, b"678")
    assert os.pread(reader, 100, 0) == b"12345678" and os.fstat(writer).st_size == 8
    os.ftruncate(writer, 6)
    os.write(both, b"9")
    assert os.pread(reader, 100, 0) == b"1234569" and path.stat().st_size == 7
    os.truncate(path, 2)
    assert os.fstat(both).st_size == 2 and (passing.backing / "file").read_bytes() == b"12"
    for file in (writer, reader, both):
        os.close(file)


def test_what_is_closed_is_let_go(workshop):
    """The kernel's hold on a file ends with its last handle: the space of a removed one is free again."""
    disk = workshop.small_disk(8 * MIB)
    mount = workshop.crfs("--mode", "passthrough", backing=disk)
    for _ in range(20):
        file = written_unsynced(mount.path / "file", bytes(5 * MIB))
        os.close(os.open(mount.path / "file", os.O_RDONLY))
        os.close(file)
        (mount.path / "file").unlink()
        end = time.monotonic() + PATIENCE_S  # the daemon hears of the last close a moment later
        while os.statvfs(disk).f_bfree * os.statvfs(disk).f_frsize < 7 * MIB:
            assert time.monotonic() < end, "the removed file is held"
            time.sleep(0.01)


def test_a_full_disk_tells_the_write(workshop, passing):
    mount = workshop.crfs("--mode", "passthrough", backing=workshop.small_disk(4 * MIB))
    (mount.path / "fits").write_bytes(b"1" * MIB)
    with pytest.raises(OSError) as told:
        (mount.path / "large").write_bytes(b"1" * 8 * MIB)
    assert told.value.errno == errno.ENOSPC
    assert (mount.backing / "fits").read_bytes() == b"1" * MIB


def test_who_has_a_file_open_goes_on_without_the_daemon(passing):
    file = written_unsynced(passing.path / "file", b"before")
    passing.process.kill()
    passing.wait()
    os.write(file, b", after")
    assert (passing.backing / "file").read_bytes() == b"before, after"
    with pytest.raises(OSError):
        os.fsync(file)
    os.dup2(os.open(os.devnull, os.O_WRONLY), file)


def test_a_program_with_special_bits_is_gathered_until_nobody_has_it_open(passing):
    program = passing.path / "program"
    program.write_bytes(b"old")
    program.chmod(0o4777)
    passed = passing.stats()["passed_through"]
    file = os.open(program, os.O_WRONLY)
    reader = os.open(program, os.O_RDONLY)
    os.write(file, b"new")
    assert passing.stats()["passed_through"] == passed and os.pread(reader, 9, 0) == b"new"
    code = "import os, sys; os.setuid(1); os.write(int(sys.argv[1]), b'er')"
    subprocess.run([sys.executable, "-c", code, str(file)], pass_fds=[file], check=True)
    assert program.stat().st_mode & 0o7777 == 0o777
    os.close(reader)
    os.close(file)


def test_a_user_writes_in_his_own_name(passing):
    passing.backing.chmod(0o777)
    code = ("import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "fd = os.open('file', os.O_WRONLY | os.O_CREAT); os.write(fd, b'mine'); os.fchmod(fd, 0o4755)\n"
            "os.write(fd, b' too')\n")
    subprocess.run([sys.executable, "-c", code], cwd=passing.path, check=True)
    status = (passing.backing / "file").stat()
    assert (status.st_uid, status.st_size, status.st_mode & 0o7777) == (NOBODY, 8, 0o755)


def test_where_the_kernel_refuses_writes_are_gathered(workshop, overlay):
    mount = workshop.crfs("--mode", "passthrough", backing=overlay)
    file = written_unsynced(mount.path / "file", b"data")
    assert mount.stats()["passed_through"] == 0 and mount.stats()["writes_in"] == 1
    os.close(file)
    assert (overlay / "file").read_bytes() == b"data"
    assert mount.unmount() == 0
