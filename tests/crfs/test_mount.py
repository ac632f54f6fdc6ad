"""What the manual page of crfs promises, row by row, on a real mount."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Iterator

import pytest

from mounts import is_mount

KB = 1 << 10
MB = 1 << 20
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to act as other users")
DAEMON, BIN = 1, 2  # users and groups that every Debian has


def in_another_process(code: str, *arguments: object, user: int = 0, group: int = 0, groups: tuple = ()) -> str:
    """What Python code prints that runs in a process of its own; it finds the arguments in sys.argv."""
    become = f"os.setgroups({list(groups)}); os.setgid({group}); os.setuid({user})\n" if user else ""
    done = subprocess.run([sys.executable, "-c", "import fcntl, mmap, os, subprocess, sys\n" + become +
                           textwrap.dedent(code), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


def open_to_write(path: Path, more: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | more, 0o644)


@pytest.fixture
def writer(mounted) -> Iterator[int]:
    """A file of the mount that has 100 bytes which are not in the backing folder."""
    file = open_to_write(mounted.path / "file")
    os.write(file, b"x" * 100)
    assert (mounted.backing / "file").stat().st_size == 0, "nothing is buffered: this test shows nothing"
    yield file
    os.close(file)


# --- visible at once ---

def test_what_is_written_is_seen_by_other_processes_at_once(mounted, writer):
    path = mounted.path / "file"
    assert in_another_process("print(open(sys.argv[1]).read())", path) == "x" * 100
    assert in_another_process("print(os.stat(sys.argv[1]).st_size)", path) == "100"
    assert in_another_process("print(bytes(mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)"
                              ").decode())", path) == "x" * 100
    os.write(writer, b"y" * 50)
    assert in_another_process("print(open(sys.argv[1]).read())", path) == "x" * 100 + "y" * 50


def test_a_reader_that_has_seen_the_file_sees_what_comes_later(mounted):
    path = mounted.path / "file"
    path.write_bytes(b"a" * 10000)
    reader = os.open(path, os.O_RDONLY)
    mapped = mmap.mmap(reader, 0, prot=mmap.PROT_READ)
    assert os.pread(reader, 20000, 0) == mapped[:] == b"a" * 10000
    file = open_to_write(path)
    for letter in b"bcd":
        os.pwrite(file, bytes([letter]) * 100, 5000)
        assert os.pread(reader, 100, 5000) == mapped[5000:5100] == bytes([letter]) * 100
    os.pwrite(file, b"e", 19999)
    assert len(os.pread(reader, 30000, 0)) == os.fstat(reader).st_size == 20000
    os.close(file)
    mapped.close()
    os.close(reader)


def test_a_reader_beside_a_writer_that_waits_sees_what_was_written(workshop):
    """The kernel forgets a page when the writer comes, and reads it again for the reader while the writer waits."""
    slow = workshop.slowfs()
    mounted = workshop.crfs("--pool", "64K", "--chunk", "64K", "--write", "64K", "--threads", "1", backing=slow.path)
    (mounted.path / "file").write_bytes(b"1" * 4 * KB)
    reader = os.open(mounted.path / "file", os.O_RDONLY)
    assert os.pread(reader, 4 * KB, 0) == b"1" * 4 * KB
    writer, other = open_to_write(mounted.path / "file"), open_to_write(mounted.path / "other")
    slow.set("delay-us", "500000")
    os.write(other, b"x" * 64 * KB)  # all the memory there is
    waiting = threading.Thread(target=os.pwrite, args=(writer, b"2" * 4 * KB, 0))
    waiting.start()
    while waiting.is_alive():
        os.pread(reader, 4 * KB, 0)
    waiting.join()
    assert os.pread(reader, 4 * KB, 0) == b"2" * 4 * KB
    slow.set("clear")
    for file in (reader, writer, other):
        os.close(file)


def test_a_file_that_others_changed_is_read_anew(mounted):
    """Also where they have set its time back, and its size is the same."""
    path, below = mounted.path / "file", mounted.backing / "file"
    path.write_bytes(b"1" * 4 * KB)
    assert path.read_bytes() == b"1" * 4 * KB
    times = below.stat()
    below.write_bytes(b"2" * 4 * KB)
    os.utime(below, ns=(times.st_atime_ns, times.st_mtime_ns))
    time.sleep(1.1)  # for so long the kernel keeps what it knows of names
    assert path.read_bytes() == b"2" * 4 * KB


def test_what_is_written_to_a_mapping_is_seen_by_others_and_gets_to_the_backing_folder(mounted):
    path = mounted.path / "file"
    path.write_bytes(b"a" * 10000)
    both = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(both, 0)
    mapped[:3] = b"new"
    assert in_another_process("print(open(sys.argv[1]).read(3))", path) == "new"
    direct = open_to_write(path)
    os.pwrite(direct, b"direct", 4000)  # in a page that is dirty in the mapping
    assert mapped[:3] == b"new" and mapped[4000:4006] == b"direct"
    mapped.flush()
    mapped.close()
    os.close(both)
    os.close(direct)
    content = (mounted.backing / "file").read_bytes()
    assert content[:3] == b"new" and content[4000:4006] == b"direct" and len(content) == 10000


def test_lists_of_folders_have_the_sizes_of_what_is_written(mounted, writer):
    assert in_another_process("print([entry.stat().st_size for entry in os.scandir(sys.argv[1])])",
                              mounted.path) == "[100]"
    assert "100" in subprocess.run(["ls", "-l", mounted.path], capture_output=True, text=True, check=True).stdout


def test_names_of_one_file_are_one_file(mounted, writer):
    os.link(mounted.path / "file", mounted.path / "other")
    other = os.open(mounted.path / "other", os.O_WRONLY)
    os.pwrite(other, b"1", 50)
    os.write(writer, b"2")
    assert (mounted.path / "file").read_bytes() == b"x" * 50 + b"1" + b"x" * 49 + b"2"
    assert (mounted.path / "file").stat().st_ino == (mounted.path / "other").stat().st_ino
    os.close(other)


# --- when it is in the backing folder ---

def test_close_waits_for_the_backing_folder(mounted):
    (mounted.path / "file").write_bytes(b"1" * 3 * MB + b"2")
    assert (mounted.backing / "file").read_bytes() == b"1" * 3 * MB + b"2"
    assert mounted.stats()["pool_used_bytes"] == 0


@pytest.mark.parametrize("how", [os.fsync, os.fdatasync])
def test_sync_waits_for_the_backing_folder(mounted, writer, how):
    how(writer)
    assert (mounted.backing / "file").read_bytes() == b"x" * 100


@pytest.mark.parametrize("flag", ["O_SYNC", "O_DSYNC"])
@pytest.mark.parametrize("access", ["O_WRONLY", "O_RDWR"])
def test_each_write_of_a_synchronous_handle_waits(mounted, flag, access):
    file = os.open(mounted.path / "file", os.O_CREAT | getattr(os, access) | getattr(os, flag))
    os.write(file, b"1")
    assert (mounted.backing / "file").read_bytes() == b"1"
    os.close(file)


def test_closing_a_reader_does_not_wait_for_writers(mounted, writer):
    (mounted.path / "file").read_bytes()
    assert (mounted.backing / "file").stat().st_size == 0


def test_async_close_comes_back_at_once_and_unmounting_waits(mount):
    mounted = mount("--close", "async")
    for number in range(20):
        (mounted.path / f"file{number}").write_bytes(b"1" * 100_000)
    assert (mounted.path / "file3").read_bytes() == b"1" * 100_000
    assert mounted.unmount() == 0
    assert all((mounted.backing / f"file{number}").stat().st_size == 100_000 for number in range(20))


@pytest.mark.crfs_only
def test_async_close_does_not_wait_and_sync_of_the_topmost_folder_does(workshop):
    slow = workshop.slowfs("--bandwidth", "500000")
    mounted = workshop.crfs("--close", "async", backing=slow.path)
    for number in range(3):
        (mounted.path / f"file{number}").write_bytes(b"1" * 200_000)
    assert mounted.stats()["pool_used_bytes"] > 0
    subprocess.run(["sync", mounted.path], check=True)
    assert [(slow.backing / f"file{number}").stat().st_size for number in range(3)] == [200_000] * 3


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_unmounts(mount, end, gathering):
    mounted = mount("--mode", gathering)
    file = open_to_write(mounted.path / "file")
    os.write(file, b"x" * 100)
    mounted.process.send_signal(end)
    assert mounted.wait() == 0
    assert (mounted.backing / "file").read_bytes() == b"x" * 100
    assert not os.path.ismount(mounted.path)
    with pytest.raises(OSError):
        os.write(file, b"more")
        os.fsync(file)
    with suppress(OSError):
        os.close(file)


def test_a_killed_daemon_loses_nothing_that_was_synced(mounted, writer):
    os.fsync(writer)
    os.write(writer, b"lost")
    mounted.kill()
    assert (mounted.backing / "file").read_bytes() == b"x" * 100
    os.dup2(os.open(os.devnull, os.O_WRONLY), writer)


# --- names ---

def test_rename_is_a_barrier(mounted, writer):
    (mounted.path / "file").rename(mounted.path / "new")
    assert (mounted.backing / "new").read_bytes() == b"x" * 100
    os.write(writer, b"y")
    os.fsync(writer)
    assert (mounted.backing / "new").read_bytes() == b"x" * 100 + b"y"


def test_rename_of_a_folder_is_a_barrier_for_what_is_in_it(mounted):
    (mounted.path / "folder").mkdir()
    file = open_to_write(mounted.path / "folder" / "file")
    os.write(file, b"1")
    (mounted.path / "folder").rename(mounted.path / "new")
    assert (mounted.backing / "new" / "file").read_bytes() == b"1"
    os.close(file)


def test_exchange_and_noreplace_are_those_of_the_backing_folder(mounted, writer):
    """And after an exchange both names have what was written. A process of its own would close our files, and so settle
    them."""
    other = open_to_write(mounted.path / "other")
    os.write(other, b"other")
    names = [os.fsencode(mounted.path / name) for name in ("file", "other")]
    libc = ctypes.CDLL(None, use_errno=True)
    no_replace, exchange = 1, 2
    assert libc.renameat2(-100, names[0], -100, names[1], no_replace) == -1 and ctypes.get_errno() == errno.EEXIST
    assert (mounted.backing / "other").read_bytes() == b"", "it is still buffered"
    assert libc.renameat2(-100, names[0], -100, names[1], exchange) == 0
    assert (mounted.backing / "other").read_bytes() == b"x" * 100
    assert (mounted.backing / "file").read_bytes() == b"other"
    os.close(other)


def test_what_was_written_to_a_file_without_a_name_is_never_written(mounted, writer):
    os.unlink(mounted.path / "file")
    os.write(writer, b"y" * 100)
    assert os.fstat(writer).st_nlink == 0
    copy = os.dup(writer)
    os.close(copy)
    reader = os.open(f"/proc/self/fd/{writer}", os.O_RDONLY)
    assert os.read(reader, 300) == b"x" * 100 + b"y" * 100
    os.close(reader)
    os.dup2(os.open(os.devnull, os.O_WRONLY), writer)
    time.sleep(0.1)
    assert mounted.stats()["bytes_out"] == 0 and mounted.stats()["pool_used_bytes"] == 0


def test_links_and_special_files(mounted):
    (mounted.path / "link").symlink_to("target")
    os.link(mounted.path / "link", mounted.path / "hard", follow_symlinks=False)
    os.mkfifo(mounted.path / "pipe", 0o600)
    local = socket.socket(socket.AF_UNIX)
    local.bind(str(mounted.path / "socket"))
    local.close()
    assert os.readlink(mounted.path / "hard") == os.readlink(mounted.backing / "link") == "target"
    assert stat.S_ISFIFO((mounted.backing / "pipe").stat().st_mode)
    assert stat.S_ISSOCK((mounted.path / "socket").stat().st_mode)
    assert in_another_process("""
        if os.fork() == 0:
            open(sys.argv[1], "w").write("through")
        else:
            print(open(sys.argv[1]).read())
    """, mounted.path / "pipe") == "through"


@ROOT_ONLY
def test_files_that_are_too_many_are_named_and_others_are_whole(mounted):
    files = [open_to_write(mounted.path / f"file{number}") for number in range(10)]
    resource.prlimit(mounted.process.pid, resource.RLIMIT_NOFILE, (80, 80))
    with pytest.raises(OSError) as told:
        for number in range(100):
            (mounted.path / f"more{number}").write_bytes(b"x")
    assert told.value.errno == errno.ENFILE
    for file in files:
        os.write(file, b"x" * 10000)
        os.close(file)
    assert all((mounted.backing / f"file{number}").stat().st_size == 10000 for number in range(10))
    assert mounted.said().count("raise the limit of this process") == 1


# --- size and place ---

@pytest.mark.parametrize("access", ["O_WRONLY", "O_RDWR"])
def test_appends_of_several_processes_do_not_overwrite_each_other(mounted, access):
    code = f"""
        file = os.open(sys.argv[1], os.O_CREAT | os.O_APPEND | os.{access})
        for number in range(500):
            os.write(file, (sys.argv[2] * 9 + "\\n").encode())
    """
    running = [subprocess.Popen([sys.executable, "-c", "import os, sys\n" + textwrap.dedent(code),
                                 str(mounted.path / "log"), letter]) for letter in "abc"]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    lines = (mounted.backing / "log").read_text().splitlines()
    assert sorted(lines) == ["a" * 9] * 500 + ["b" * 9] * 500 + ["c" * 9] * 500


def test_truncate(mounted, writer):
    os.truncate(mounted.path / "file", 40)
    assert os.fstat(writer).st_size == 40
    os.ftruncate(writer, 60)
    os.pwrite(writer, b"e", 79)
    assert (mounted.path / "file").read_bytes() == b"x" * 40 + bytes(39) + b"e"
    os.close(os.open(mounted.path / "file", os.O_WRONLY | os.O_TRUNC))
    assert (mounted.path / "file").stat().st_size == (mounted.backing / "file").stat().st_size == 0


def test_holes_are_found_where_they_are(mounted):
    file = open_to_write(mounted.path / "file")
    os.pwrite(file, b"1" * 64 * KB, 0)
    os.pwrite(file, b"2" * 64 * KB, 4 * MB)
    assert os.lseek(file, 0, os.SEEK_HOLE) == 64 * KB
    assert os.lseek(file, 64 * KB, os.SEEK_DATA) == 4 * MB
    os.close(file)
    assert (mounted.path / "file").stat().st_blocks == (mounted.backing / "file").stat().st_blocks < 4 * MB // 512


def test_blocks_of_what_is_not_written_yet_do_not_look_like_holes(mounted, writer):
    os.write(writer, b"1" * 10000)
    assert os.fstat(writer).st_blocks * 512 >= 10100


@pytest.mark.parametrize("kind, offset, length, expected", [
    ("", 50, 100, b"x" * 100 + bytes(50)), ("-n", 50, 100, b"x" * 100),
    ("-pn", 10, 20, b"x" * 10 + bytes(20) + b"x" * 70), ("-z", 90, 20, b"x" * 90 + bytes(20)),
])
def test_fallocate(mounted, writer, kind, offset, length, expected):
    path = mounted.path / "file"
    done = subprocess.run(["fallocate", *([kind] if kind else []), "-o", str(offset), "-l", str(length), path],
                          capture_output=True, text=True, check=False)
    if "not supported" in done.stderr:
        pytest.skip("skipped: the backing file system cannot do that")
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == expected
    os.fsync(writer)
    assert (mounted.backing / "file").read_bytes() == expected


def test_copy_file_range(mounted, writer):
    reader = os.open(mounted.path / "file", os.O_RDONLY)
    to = open_to_write(mounted.path / "copy")
    os.write(to, b"0" * 10)
    assert os.copy_file_range(reader, to, 100, 20, 5) == 80
    assert (mounted.path / "copy").read_bytes() == b"0" * 5 + b"x" * 80
    os.close(reader)
    os.close(to)


def test_direct_io(mount, mode):
    mounted = mount("--mode", mode)
    path = mounted.path / "file"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    page = mmap.mmap(-1, 8 * KB)
    page[:] = b"1" * 8 * KB
    assert os.pwritev(file, [page], 0) == 8 * KB
    page[:] = bytes(8 * KB)
    assert os.preadv(file, [page], 0) == 8 * KB and page[:] == b"1" * 8 * KB
    os.close(file)
    assert (mounted.backing / "file").read_bytes() == b"1" * 8 * KB


def test_the_space_is_that_of_the_backing_folder(mounted):
    below, above = os.statvfs(mounted.backing), os.statvfs(mounted.path)
    assert (above.f_blocks, above.f_bsize, above.f_files, above.f_namemax) == (
        below.f_blocks, below.f_bsize, below.f_files, below.f_namemax)


# --- attributes ---

def test_the_time_of_a_file_is_that_of_its_last_write(mounted, writer):
    shown = os.fstat(writer).st_mtime_ns
    assert abs(time.time_ns() - shown) < 5_000_000_000
    time.sleep(0.05)
    os.fsync(writer)
    assert os.fstat(writer).st_mtime_ns == (mounted.backing / "file").stat().st_mtime_ns == shown


def test_a_time_that_is_set_outlives_what_was_written_before(mounted, writer):
    os.utime(writer, ns=(10**18, 10**18 + 5))
    os.fsync(writer)
    assert os.fstat(writer).st_mtime_ns == (mounted.backing / "file").stat().st_mtime_ns == 10**18 + 5
    os.write(writer, b"later")
    assert os.fstat(writer).st_mtime_ns > 10**18 + 5


def test_extended_attributes(mounted, writer):
    path = mounted.path / "file"
    try:
        os.setxattr(mounted.backing / "file", "user.below", b"1")
    except OSError:
        pytest.skip("skipped: the backing file system has no extended attributes for users")
    assert os.getxattr(path, "user.below") == b"1"
    os.setxattr(path, "user.above", b"22")
    assert os.getxattr(mounted.backing / "file", "user.above") == b"22"
    assert sorted(os.listxattr(path)) == ["user.above", "user.below"]
    with pytest.raises(FileExistsError):
        os.setxattr(path, "user.above", b"3", os.XATTR_CREATE)
    os.removexattr(path, "user.above")
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, "user.above")


def test_locks_hold_between_processes(mounted, writer):
    fcntl.flock(writer, fcntl.LOCK_EX)
    fcntl.lockf(writer, fcntl.LOCK_EX, 10, 0)
    assert in_another_process("""
        file = os.open(sys.argv[1], os.O_RDWR)
        for lock in (lambda: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB),
                     lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 5),
                     lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 10)):
            try:
                lock()
                print("got")
            except BlockingIOError:
                print("held")
    """, mounted.path / "file").split() == ["held", "held", "got"]


# --- users ---

@pytest.fixture
def open_to_all(mounted):
    """The mount, where everybody may make files."""
    folder = mounted.path
    while folder != Path("/"):  # pytest's folders are its user's only
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IXGRP)
        folder = folder.parent
    mounted.path.chmod(0o777)
    return mounted


@ROOT_ONLY
def test_files_belong_to_who_makes_them(open_to_all):
    path = open_to_all.path
    in_another_process("""
        os.umask(0o027)
        os.chdir(sys.argv[1])
        open("file", "w").write("1")
        os.mkdir("folder", 0o777)
        os.mkfifo("pipe", 0o666)
        os.symlink("file", "link")
    """, path, user=DAEMON, group=BIN)
    for name, mode in (("file", 0o640), ("folder", 0o750), ("pipe", 0o640), ("link", 0o777)):
        status = (open_to_all.backing / name).lstat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (DAEMON, BIN, mode), name
    with pytest.raises(AssertionError, match="PermissionError"):
        in_another_process("open(sys.argv[1])", path / "file", user=BIN, group=DAEMON)
    assert in_another_process("print(open(sys.argv[1]).read())", path / "file", user=BIN, group=BIN) == "1"


@ROOT_ONLY
def test_supplementary_groups_count(open_to_all):
    folder = open_to_all.path / "of-group"
    folder.mkdir()
    os.chown(folder, 0, 50)
    folder.chmod(0o2770)
    in_another_process("open(sys.argv[1] + '/file', 'w'); os.mkdir(sys.argv[1] + '/folder')", folder,
                       user=DAEMON, group=BIN, groups=(50,))
    assert ((folder / "file").stat().st_uid, (folder / "file").stat().st_gid) == (DAEMON, 50)
    assert (folder / "folder").stat().st_gid == 50 and (folder / "folder").stat().st_mode & stat.S_ISGID


@ROOT_ONLY
@pytest.mark.parametrize("access", ["O_WRONLY", "O_RDWR"])
def test_a_file_that_may_not_be_written_can_be_by_who_creates_it(open_to_all, access):
    in_another_process(f"""
        file = os.open(sys.argv[1], os.O_CREAT | os.{access}, 0o444)
        os.write(file, b"1")
        os.ftruncate(file, 3)
        os.close(file)
    """, open_to_all.path / "file", user=DAEMON, group=DAEMON)
    assert (open_to_all.backing / "file").read_bytes() == b"1\0\0"


@ROOT_ONLY
@pytest.mark.parametrize("access", ["O_WRONLY", "O_RDWR"])
@pytest.mark.parametrize("change", ["os.write(file, b'1')", "os.ftruncate(file, 1)"])
def test_a_change_by_others_takes_the_right_to_run_as_the_owner(mount, mode, access, change):
    mounted = mount("--mode", mode)
    program = mounted.path / "program"
    program.write_bytes(b"old")
    program.chmod(0o6777)
    file = os.open(program, getattr(os, access))  # the mode changes under an open file, too
    os.write(file, b"root may")
    assert program.stat().st_mode & 0o7777 == 0o6777
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(DAEMON)
        os.setuid(DAEMON)
        exec(change, {"os": os, "file": file})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert program.stat().st_mode & 0o7777 == 0o777
    os.close(file)
    assert (mounted.backing / "program").stat().st_mode & 0o7777 == 0o777


def access_control_list(mask: int) -> bytes:
    """For the owner all, for BIN reading, for others nothing."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, permissions, who) for tag, permissions, who in (
        (0x01, 7, 0xFFFFFFFF), (0x02, 4, BIN), (0x04, 0, 0xFFFFFFFF), (0x10, mask, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)))


ACL_DEFAULT_READ_FOR_BIN = access_control_list(7)
SET_ACL = "os.setxattr(sys.argv[1], 'system.posix_acl_access', bytes.fromhex(sys.argv[2]))"


@ROOT_ONLY
def test_access_control_lists(open_to_all):
    folder = open_to_all.path / "folder"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    try:
        os.setxattr(open_to_all.backing / "folder", "system.posix_acl_default", ACL_DEFAULT_READ_FOR_BIN)
    except OSError:
        pytest.skip("skipped: the backing file system has no ACLs")
    in_another_process("os.umask(0o077); open(sys.argv[1], 'w').write('1')", folder / "file", user=DAEMON, group=DAEMON)
    below = os.getxattr(open_to_all.backing / "folder" / "file", "system.posix_acl_access")
    assert os.getxattr(folder / "file", "system.posix_acl_access") == below
    assert (folder / "file").stat().st_mode & 0o777 == 0o660  # the mask of the list, not the umask
    assert in_another_process("print(open(sys.argv[1]).read())", folder / "file", user=BIN, group=BIN) == "1"
    with pytest.raises(AssertionError, match="PermissionError"):
        in_another_process("open(sys.argv[1])", folder / "file", user=3, group=3)


@ROOT_ONLY
@pytest.mark.parametrize("group, kept", [(DAEMON, True), (BIN, False)])
def test_the_owner_sets_an_access_control_list_on_the_mount(open_to_all, group, kept):
    """The group's set-id bit goes if it is not a group of the owner."""
    above, below = open_to_all.path / "file", open_to_all.backing / "file"
    above.write_bytes(b"1")
    os.chown(above, DAEMON, group)
    above.chmod(0o2750)
    wanted = access_control_list(5).hex()
    with pytest.raises(AssertionError, match="Operation not permitted"):
        in_another_process(SET_ACL, above, wanted, user=BIN, group=BIN)
    assert stat.S_IMODE(below.stat().st_mode) == 0o2750
    in_another_process(SET_ACL, above, wanted, user=DAEMON, group=DAEMON)
    for path in (above, below):
        assert os.getxattr(path, "system.posix_acl_access").hex() == wanted
        assert stat.S_IMODE(path.stat().st_mode) == (0o2750 if kept else 0o750)
    assert in_another_process("print(open(sys.argv[1]).read())", above, user=BIN, group=3) == "1"
    with pytest.raises(AssertionError, match="PermissionError"):
        in_another_process("open(sys.argv[1])", above, user=3, group=3)


# --- errors ---

@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", disk], check=False).returncode != 0:
        pytest.skip("skipped: a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@ROOT_ONLY
def test_close_tells_each_handle_once_that_the_disk_is_full(mount, small_disk):
    mounted = mount(backing=small_disk)
    one, other = open_to_write(mounted.path / "file"), open_to_write(mounted.path / "file")
    unharmed = open_to_write(mounted.path / "unharmed")
    os.write(unharmed, b"1")
    os.write(one, b"1" * 3 * MB)
    copy = os.dup(one)
    with pytest.raises(OSError, match="No space"):
        os.close(copy)
    os.close(one)
    with pytest.raises(OSError, match="No space"):
        os.fsync(other)
    os.fsync(other)
    os.close(other)
    os.truncate(mounted.path / "file", 0)
    os.write(unharmed, b"2")
    os.close(unharmed)
    assert (small_disk / "unharmed").read_bytes() == b"12"
    assert mounted.unmount() == 0  # they were told


@ROOT_ONLY
def test_an_error_that_no_close_could_tell_is_told_to_who_opens_next_or_at_the_end(mount, small_disk):
    mounted = mount("--close", "async", backing=small_disk)
    for name in ("first", "second"):
        (mounted.path / name).write_bytes(b"1" * 3 * MB)
    end = time.monotonic() + 30
    while mounted.stats()["pool_used_bytes"] and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.2)
    writer = os.open(mounted.path / "first", os.O_WRONLY)
    with pytest.raises(OSError, match="No space"):
        os.fsync(writer)
    os.close(writer)
    assert mounted.unmount() == 1
    assert "second" in mounted.said() and "No space" in mounted.said() and "first" not in mounted.said()


# --- the command ---

def run(command: Path, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def command(mounted, build) -> Path:
    return build / "src" / "crfs" / "crfs"


@pytest.mark.parametrize("name", ["crfs", "mount.crfs"])
def test_in_the_background_it_comes_back_when_the_mount_is_there(command, tmp_path, name):
    backing, path = tmp_path / "below", tmp_path / "above"
    backing.mkdir()
    path.mkdir()
    options = ["-o", "rw,pool=8M,chunk=64k,nofail,x-something=1,profile,stats-file=" + str(tmp_path / "stats"),
               *(["-n", "-v"] if name == "mount.crfs" else ["--stats", "--json"])]
    done = run(command.parent / name, backing, path, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (path / "file").write_bytes(b"1")
    assert (backing / "file").read_bytes() == b"1"
    subprocess.run(["fusermount3", "-u", path], check=True)
    end = time.monotonic() + 30
    while not (tmp_path / "stats").exists() or not (tmp_path / "stats").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    report = (tmp_path / "stats").read_text()
    if name == "crfs":
        assert json.loads(report.splitlines()[0])["writes_in"] == 1
        assert json.loads(report.splitlines()[1])["classes"][0]["writes"] == 1
    else:
        assert "below 64 B" in report


@pytest.mark.parametrize("arguments, code, words", [
    ([], 2, ["BACKING"]), (["a"], 2, ["MOUNTPOINT"]), (["--pool", "x", "a", "b"], 2, ["--pool"]),
    (["--chunk", "100K", "a", "b"], 2, ["power of two"]), (["--chunk", "128M", "a", "b"], 2, ["--pool"]),
    (["--stats", "a", "b"], 2, ["--stats-file"]), (["-f", "--json", "a", "b"], 2, ["--stats"]),
    (["--stats-file", "f", "a", "b"], 2, ["--profile"]), (["-f", "--profile", "--mode", "writeback", "a", "b"], 2, ["direct"]),
    (["--mode", "passthrough", "--close", "async", "a", "b"], 2, ["direct"]), (["--mode", "x", "a", "b"], 2, ["auto"]),
    (["--mode", "passthrough", "-o", "suid", "a", "b"], 2, ["direct"]),
    (["no-such-folder", "/"], 1, ["no-such-folder"]), (["/tmp", "/no-such-folder"], 1, ["/no-such-folder"]),
    (["/", "/tmp"], 1, ["outside"]), (["-o", "no_such_option", "/var", "/etc"], 1, ["no_such_option"]),
])
def test_what_is_wrong_is_named_and_nothing_is_mounted(command, arguments, code, words):
    done = run(command, *arguments)
    assert done.returncode == code
    assert all(word in done.stdout + done.stderr for word in words), done


def test_a_folder_may_be_called_anything(mount, workshop):
    """What looks like options of the mount is none."""
    folder = workshop.folder / "a,suid,dev\\,b c"
    folder.mkdir()
    mounted = mount(backing=folder)
    (mounted.path / "file").write_bytes(b"1")
    assert (folder / "file").read_bytes() == b"1"
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        line = next(line for line in mounts if f" {mounted.path} " in line)
    assert "nosuid" in line and "nodev" in line
    source = line.split(" - ")[1].split()[1]
    assert source.encode().decode("unicode_escape") == str(folder)


def test_a_link_does_not_hide_that_the_mount_is_in_its_own_backing_folder(command, tmp_path):
    (tmp_path / "real/inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    done = run(command, tmp_path / "real", tmp_path / "link/inside")
    assert done.returncode == 1 and "outside" in done.stderr, done


def test_a_mount_for_reading_only(mount):
    mounted = mount("-o", "ro")
    with pytest.raises(OSError, match="Read-only"):
        (mounted.path / "file").write_bytes(b"1")


def test_a_directory_is_not_mounted_over_itself(command, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in ("real", "link"):
        done = run(command, tmp_path / "real", tmp_path / path)
        assert done.returncode == 1 and "same directory" in done.stderr, done
        assert not is_mount(tmp_path / "real")


def test_a_mount_does_not_hide_another_one(command, mounted, tmp_path):
    (mounted.path / "file").write_bytes(b"1")
    done = run(command, tmp_path, mounted.path)
    assert done.returncode == 1 and f"fusermount3 -u {mounted.path}" in done.stderr, done
    assert (mounted.path / "file").read_bytes() == b"1"


def test_a_mount_below_another_one_is_made(mount, mounted):
    (mounted.path / "below").mkdir()
    below = mount(path=mounted.path / "below")
    (below.path / "file").write_bytes(b"1")
    assert (below.backing / "file").exists() and not (mounted.backing / "below/file").exists()


def test_a_backing_directory_below_its_mount_point_is_served(mount, tmp_path):
    (tmp_path / "mount/backing").mkdir(parents=True)
    mounted = mount(backing=tmp_path / "mount/backing", path=tmp_path / "mount")
    (mounted.path / "file").write_bytes(b"1")
    assert (mounted.path / "file").read_bytes() == b"1"
    assert mounted.unmount() == 0
    assert (tmp_path / "mount/backing/file").read_bytes() == b"1"


@pytest.mark.parametrize("part", ["mount point", "backing directory"])
def test_a_dead_mount_is_named_with_the_way_to_unmount_it(command, mounted, tmp_path, part):
    (mounted.path / "inside").mkdir()
    mounted.kill()
    time.sleep(1.1)  # for so long the kernel keeps what it knows of names
    paths = {"mount point": (tmp_path, mounted.path), "backing directory": (mounted.path / "inside", tmp_path)}
    done = run(command, *paths[part])
    assert done.returncode == 1 and f"fusermount3 -u {mounted.path}" in done.stderr, done


@pytest.mark.gathers
def test_many_small_writes_become_few(mounted):
    file = open_to_write(mounted.path / "file")
    for _ in range(2000):
        os.write(file, b"1" * 1000)
    os.close(file)
    stats = mounted.stats()
    assert (stats["writes_in"], stats["bytes_in"], stats["bytes_out"]) == (2000, 2_000_000, 2_000_000)
    assert stats["writes_out"] <= 3 and stats["errors"] == 0


def test_the_table_of_writes(mount):
    mounted = mount("--profile")
    file = open_to_write(mounted.path / "file")
    for size in (10, 10, 3000, 5 * MB + 7):
        os.write(file, b"1" * size)
    os.close(file)
    assert mounted.unmount() == 0
    rows = {line[:16].strip(): line[16:].split() for line in mounted.said().splitlines()}
    assert rows["below 64 B"][:2] == ["2", "50.00"]
    assert rows["1 - 4 KiB"][:2] == ["1", "25.00"]
    assert rows["above 1 MiB"][:3] == ["1", "25.00", "99.94"]


def test_many_files_get_on_with_hardly_any_memory_or_threads(mount):
    """The least of everything, many files at once."""
    mounted = mount("--pool", "4K", "--chunk", "4K", "--write", "4K", "--threads", "1", "--fuse-threads", "1")
    files = [open_to_write(mounted.path / f"file{number}") for number in range(64)]
    for turn in range(20):
        for number, file in enumerate(files):
            os.write(file, bytes([number]) * 300)
    for file in files:
        os.close(file)
    for number in range(64):
        assert (mounted.backing / f"file{number}").read_bytes() == bytes([number]) * 6000


# In a namespace where everybody may open /dev/fuse, as Debian's udev has it.
WITH_FUSE_FOR_ALL = """
mknod "$1/fuse" c 10 229 && chmod 666 "$1/fuse" && mount --bind "$1/fuse" /dev/fuse || exit 77
home=$1; shift
exec setpriv --reuid=1 --regid=1 --clear-groups "$@" "$home"
"""
MOUNT_AS_USER = """
import os, subprocess, sys
command, home = sys.argv[1:]
os.chdir(home)
os.mkdir("below")
os.mkdir("above")
subprocess.run([command, "below", "above"], check=True)
file = os.open("above/file", os.O_CREAT | os.O_WRONLY, 0o400)
os.write(file, b"1" * 10000)
os.close(file)
os.symlink("target", "above/link")
os.rename("above/link", "above/new")
print(len(open("above/file").read()), os.stat("below/file").st_size, os.readlink("below/new"))
subprocess.run(["fusermount3", "-u", "above"], check=True)
"""


@ROOT_ONLY
def test_a_user_mounts_for_himself(command):
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, DAEMON, DAEMON)
        reachable = shutil.copy(command, home)  # the checkout may be in root's own folder
        done = subprocess.run(["unshare", "--mount", "sh", "-c", WITH_FUSE_FOR_ALL, "sh", home, sys.executable, "-c",
                               MOUNT_AS_USER, reachable], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip(f"skipped: no namespaces here: {done.stderr}")
        assert (done.returncode, done.stdout) == (0, "10000 10000 target\n"), done.stderr
