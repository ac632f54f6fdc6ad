"""When files are left to the kernel, and what comes with it. What it shares with other modes is tested with them."""

import ctypes
import errno
import fcntl
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from conftest import NO_PASSTHROUGH
from mounts import PATIENCE_S, Mount

pytestmark = [pytest.mark.crfs_only,
              pytest.mark.skipif(os.geteuid() != 0, reason="skipped: Linux lets only root pass files through")]
MIB = 1 << 20
PAGE = 4096
C = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534


def written_unsynced(path: Path, data: bytes) -> int:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(file, data)
    return file


@pytest.fixture
def passing(workshop, kernel_passes) -> Mount:
    if not kernel_passes:
        pytest.skip(NO_PASSTHROUGH)
    return workshop.crfs("--mode", "passthrough")


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
    (("--mode", "auto", "--close", "async"), False), (("--mode", "auto", "-o", "suid"), False),
    (("--icpp2011",), False), (("--mode", "direct"), False)])
def test_a_folder_in_memory_is_passed_through_where_nothing_needs_all_writes(workshop, passing, options, passed):
    mount = workshop.crfs(*options)
    file = written_unsynced(mount.path / "file", b"data")
    assert (mount.backing / "file").read_bytes() == (b"data" if passed else b"")
    assert (mount.stats()["passed_through"], mount.stats()["writes_in"]) == ((1, 0) if passed else (0, 1))
    assert mount.stats()["mode"] == ("passthrough" if passed else "direct")
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
    appender = os.open(passing.path / "file", os.O_WRONLY | os.O_APPEND)
    passing.kill()
    os.write(file, b", after")
    with pytest.raises(OSError):
        os.write(appender, b"more")
    assert (passing.backing / "file").read_bytes() == b"before, after"
    with pytest.raises(OSError):
        os.fsync(file)
    for handle in (file, appender):
        os.dup2(os.open(os.devnull, os.O_WRONLY), handle)


def test_what_fcntl_changes_counts(passing):
    file = os.open(passing.path / "file", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.write(file, b"0123456789")
    fcntl.fcntl(file, fcntl.F_SETFL, 0)
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, b"AB")
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    os.write(file, b"end")
    assert os.pread(file, 100, 0) == b"AB23456789end"
    os.close(file)
    # It ends with less than a sector, for which it takes O_DIRECT off.
    source = passing.backing / "source"
    source.write_bytes(bytes(range(256)) * 40)
    subprocess.run(["dd", f"if={source}", f"of={passing.path}/copy", "bs=4096", "oflag=direct", "status=none"], check=True)
    assert (passing.backing / "copy").read_bytes() == source.read_bytes()


def test_reading_ahead_does_not_change_how_long_a_file_is(passing):
    file = os.open(passing.path / "file", os.O_RDWR | os.O_CREAT)
    os.write(file, b"x" * MIB)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
    copy = os.open(passing.path / "copy", os.O_RDWR | os.O_CREAT)
    assert os.copy_file_range(file, copy, 2 * MIB, 0, 0) == MIB
    os.close(file)
    os.close(copy)


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_RDWR | os.O_APPEND, os.O_RDONLY])
def test_sendfile_sees_what_others_write(passing, flags):
    """It goes through the cache of the mount, where handles are direct."""
    path, to = passing.path / "file", os.memfd_create("to")
    writer = written_unsynced(path, b"123")
    reader = os.open(path, flags)

    def sent() -> bytes:
        os.ftruncate(to, 0)
        os.lseek(to, 0, os.SEEK_SET)
        os.sendfile(to, reader, 0, 100)
        return os.pread(to, 100, 0)

    for offset, data, whole in (0, b"123", b"123"), (3, b"456", b"123456"), (1, b"x", b"1x3456"):
        os.pwrite(writer, data, offset)
        end = time.monotonic() + PATIENCE_S  # what is in the cache is dropped just after it was sent
        while sent() != whole:
            assert time.monotonic() < end, sent()
    for file in (reader, writer, to):
        os.close(file)


def test_a_mapping_outlives_its_handle(passing):
    """Python's own would keep a handle. The file gets a set-id bit meanwhile."""
    path = passing.path / "file"
    path.write_bytes(b"1" * PAGE)
    file = os.open(path, os.O_RDWR)
    C.mmap.restype = ctypes.c_void_p
    place = C.mmap(None, ctypes.c_size_t(PAGE), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, ctypes.c_long(0))
    os.close(file)
    os.utime(path, (1, 1))
    assert path.stat().st_mtime == 1
    ctypes.memset(place, ord("2"), 1)
    assert path.stat().st_mtime > 1
    path.chmod(0o4755)
    file = os.open(path, os.O_RDWR)
    ctypes.memset(place, ord("3"), 2)
    assert os.pread(file, 3, 0) == b"331"
    os.pwrite(file, b"4", 2)
    assert ctypes.string_at(place, 4) == b"3341"
    os.close(file)
    C.munmap(ctypes.c_void_p(place), ctypes.c_size_t(PAGE))


def test_a_file_system_mounted_below_is_gathered_for(workshop, passing):
    (passing.backing / "slow").mkdir()
    slow = workshop.slowfs("--delay-us", "1000", path=passing.backing / "slow")
    for name, passed in (("slow/file", 0), ("file", 1)):
        os.close(written_unsynced(passing.path / name, b"data"))
        assert (passing.stats()["passed_through"], passing.stats()["writes_in"]) == (passed, 1)
    assert passing.unmount() == 0 and slow.unmount() == 0


def write_as_daemon(file: int) -> None:
    code = "import os, sys; os.setgroups([]); os.setgid(1); os.setuid(1); os.write(int(sys.argv[1]), b'new')"
    subprocess.run([sys.executable, "-c", code, str(file)], pass_fds=[file], check=True)


@pytest.mark.parametrize("set_when", ["before", "while root reads it", "while it is open for writing"])
def test_a_write_by_others_takes_set_id_bits_away(passing, set_when):
    """Whoever has opened the file first."""
    program = passing.path / "program"
    program.write_bytes(b"old")
    before = -1 if set_when == "before" else os.open(program, os.O_RDONLY if "reads" in set_when else os.O_WRONLY)
    program.chmod(0o4777)
    file = before if "writing" in set_when else os.open(program, os.O_WRONLY)
    write_as_daemon(file)
    assert program.stat().st_mode & 0o7777 == 0o777 and (passing.backing / "program").read_bytes() == b"new"
    for handle in {before, file} - {-1}:
        os.close(handle)


def test_root_keeps_set_id_bits_of_what_it_opens_with_them(passing):
    program = passing.path / "program"
    program.write_bytes(b"old")
    program.chmod(0o4755)
    with program.open("r+b") as file:
        file.write(b"new")
    assert program.stat().st_mode & 0o7777 == 0o4755 and (passing.backing / "program").read_bytes() == b"new"


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
    assert mount.stats()["mode"] == "direct" and mount.said().count("the kernel does not allow") == 1
    os.close(file)
    assert (overlay / "file").read_bytes() == b"data"
    assert mount.unmount() == 0
