"""What a failing backing file system does to those who write: each handle is told once, other files are unharmed."""

import errno
import os
import random
import signal
import threading
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from mounts import Mount, Workshop

MIB = 1 << 20
# So that a chunk is one request to slowfs.
ONE_REQUEST = ("--chunk", "256K", "--write", "256K", "--pool", "4M")


def told(call: Callable[..., None], *arguments: object) -> int:
    """The errno of a call, 0 if it succeeds."""
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or -1
    return 0


def pattern(name: str, length: int) -> bytes:
    return random.Random(name).randbytes(length)


def write_slowly(fd: int, data: bytes, piece: int = 10_000) -> None:
    """In pieces; a plain passthrough shows short writes to the writer."""
    at = 0
    while at < len(data):
        at += os.write(fd, data[at:at + piece])


class Stack:
    """CRFS over slowfs over a folder."""

    def __init__(self, workshop: Workshop, gathering: str, *options: str, backing: Path = None) -> None:
        self.slow: Mount = workshop.slowfs(backing=backing)
        self.mount: Mount = workshop.crfs("--mode", gathering, *options, backing=self.slow.path)

    def open(self, name: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        return os.open(self.mount.path / name, flags, 0o644)

    def below(self, name: str) -> bytes:
        return (self.slow.backing / name).read_bytes()

    def end(self) -> int:
        """The exit status of CRFS."""
        return self.mount.unmount()


@pytest.mark.crfs_only
@pytest.mark.parametrize("name", ["EIO", "ENOSPC", "EDQUOT"])
def test_each_handle_is_told_of_an_error_once(workshop, gathering, name):
    stack, error = Stack(workshop, gathering, *ONE_REQUEST), getattr(errno, name)
    writer, reader = stack.open("bad"), stack.open("bad")
    twin, good = os.dup(writer), stack.open("good")
    stack.slow.set("fail", f"write@bad:2:{name}")
    write_slowly(writer, pattern("bad", MIB))
    write_slowly(good, pattern("good", MIB))
    assert told(os.fsync, writer) == error
    assert [told(os.fsync, writer), told(os.close, writer)] == [0, 0]
    assert told(os.close, twin) == 0, "a duplicate is the same handle"
    assert told(os.fsync, reader) == error
    assert [told(os.fsync, reader), told(os.close, reader)] == [0, 0]
    assert [told(os.fsync, good), told(os.close, good)] == [0, 0]
    later = stack.open("bad")
    assert told(os.close, later) == 0, "everybody was told before it was opened"
    assert stack.below("good") == pattern("good", MIB)


@pytest.mark.crfs_only
def test_close_tells_of_an_error_and_the_file_can_be_written_again(workshop, gathering):
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:1+:EIO")
    write_slowly(fd, pattern("bad", MIB))
    assert told(os.close, fd) == errno.EIO
    stack.slow.set("clear")
    fd = stack.open("bad", os.O_RDWR | os.O_TRUNC)
    write_slowly(fd, pattern("bad", MIB))
    assert told(os.close, fd) == 0
    assert stack.below("bad") == pattern("bad", MIB) == (stack.mount.path / "bad").read_bytes()


@pytest.mark.crfs_only
@pytest.mark.parametrize("closed", [True, False])
def test_what_could_not_be_written_is_not_shown_to_who_opens_the_file_later(workshop, gathering, closed):
    """The kernel has it in its cache still. Which of the four requests comes second differs: where it is the last, the end is
    missing, and in writeback mode, where the kernel keeps the size, zeros are in its place (crfs(1))."""
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:2:EIO")
    write_slowly(fd, pattern("bad", MIB), 65_536)
    assert told(os.close if closed else os.fsync, fd) == errno.EIO
    below = stack.below("bad")
    missing = MIB - len(below) if gathering == "writeback" else 0
    assert (stack.mount.path / "bad").read_bytes() == below + bytes(missing) != pattern("bad", MIB)
    assert closed or told(os.close, fd) == 0


@pytest.mark.crfs_only
def test_nor_after_a_truncation_that_changes_nothing(workshop, gathering):
    """Of which the kernel thinks that what it has is still right."""
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    (stack.mount.path / "bad").write_bytes(pattern("old", MIB))
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:1:EIO")
    write_slowly(fd, pattern("bad", MIB), 65_536)
    assert told(os.close, fd) == errno.EIO
    os.truncate(stack.mount.path / "bad", MIB)
    assert (stack.mount.path / "bad").read_bytes() == stack.below("bad") != pattern("bad", MIB)


@pytest.mark.crfs_only
def test_one_failing_write_of_many_files_reaches_one_close(workshop, gathering, seed, long):
    for number in range(30 if long else 3):
        chance = random.Random(seed * 1000 + number)
        stack = Stack(workshop, gathering, *ONE_REQUEST)
        stack.slow.set("fail", f"write:{chance.randrange(1, 40)}:EIO")
        answers: Dict[str, List[int]] = {f"f{i}": [] for i in range(10)}

        def one(name: str) -> None:
            fd = stack.open(name)
            write_slowly(fd, pattern(name, MIB), chance.choice([999, 4096, 70_000]))
            if name in ("f1", "f2"):
                answers[name].append(told(os.fsync, fd))
            answers[name].append(told(os.close, fd))

        threads = [threading.Thread(target=one, args=(name,)) for name in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failed = [name for name, codes in answers.items() if any(codes)]
        assert len(failed) == 1 and sorted(answers[failed[0]])[-1] == errno.EIO, answers
        assert answers[failed[0]].count(errno.EIO) == 1
        for name in answers.keys() - failed:
            assert stack.below(name) == pattern(name, MIB)
        stack.end()
        stack.slow.unmount()


@pytest.mark.crfs_only
def test_close_tells_what_the_backing_file_tells_at_its_own_close(workshop, gathering):
    """As file systems over a network do of a quota; also of what another call has brought there before."""
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    fd = stack.open("bad")
    write_slowly(fd, pattern("bad", MIB))
    os.fchmod(fd, 0o600)
    stack.slow.set("fail", "flush@bad:1:EDQUOT")
    assert told(os.close, fd) == errno.EDQUOT
    fd = stack.open("bad")
    assert told(os.close, fd) == 0


@pytest.mark.crfs_only
def test_a_late_close_tells_of_it_too(workshop, gathering):
    stack = Stack(workshop, gathering, "--close", "async", *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "flush@bad:1:EDQUOT")
    write_slowly(fd, pattern("bad", MIB))
    assert told(os.close, fd) == 0
    assert stack.end() != 0 and "bad" in stack.mount.said()


@pytest.mark.crfs_only
def test_what_nobody_was_told_is_told_to_the_next(workshop, gathering):
    stack = Stack(workshop, gathering, "--close", "async", *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:1+:EIO")
    write_slowly(fd, pattern("bad", MIB))
    assert told(os.close, fd) == 0
    fd, other = stack.open("bad"), stack.open("other")
    assert told(os.fsync, fd) == errno.EIO
    assert [told(os.fsync, fd), told(os.fsync, other), told(os.close, fd), told(os.close, other)] == [0, 0, 0, 0]


@pytest.mark.crfs_only
def test_who_opens_a_file_to_read_it_is_told_by_that(workshop, gathering):
    """A restart would take what is damaged for a checkpoint: it calls no fsync. The end of the file is there: where it is not, the
    kernel, if it gathers, shows zeros in its place."""
    stack = Stack(workshop, gathering, "--close", "async", "--threads", "1", *ONE_REQUEST)
    stack.slow.set("fail", "write@bad:2:ENOSPC")
    for name in ("bad", "good"):
        fd = stack.open(name)
        write_slowly(fd, pattern(name, MIB))
        assert told(os.close, fd) == 0
    root = os.open(stack.mount.path, os.O_RDONLY)
    assert told(os.fsync, root) == told(os.close, root) == 0
    assert told(stack.open, "bad", os.O_RDONLY) == errno.ENOSPC
    assert (stack.mount.path / "bad").read_bytes() == stack.below("bad") != pattern("bad", MIB), "it was told, once"
    assert (stack.mount.path / "good").read_bytes() == pattern("good", MIB)
    for name, error in (("bad", errno.ENOSPC), ("bad", 0), ("good", 0)):  # a reader may be anybody
        assert told(os.rename, stack.mount.path / name, stack.mount.path / "whole") == error
        if error == 0:
            (stack.mount.path / "whole").unlink()


@pytest.mark.crfs_only
def test_who_opens_a_file_to_read_it_takes_no_error_from_who_writes_it(workshop, gathering):
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:1:EIO")
    write_slowly(fd, pattern("bad", MIB))
    told(stack.open, "bad", os.O_RDONLY)
    assert told(os.close, fd) == errno.EIO


@pytest.mark.crfs_only
def test_what_cannot_be_written_at_the_end_is_told(workshop, gathering):
    """No program was told: only who has the kernel hand over what it has."""
    stack = Stack(workshop, gathering, *ONE_REQUEST)
    fd = stack.open("bad")
    stack.slow.set("fail", "write@bad:1+:EIO")
    write_slowly(fd, pattern("bad", MIB))
    stack.mount.signal(signal.SIGTERM)
    assert stack.mount.wait() == 1
    assert "bad" in stack.mount.said()
    told(os.close, fd)


@pytest.mark.crfs_only
def test_what_nobody_was_told_is_told_at_the_end(workshop, gathering):
    stack = Stack(workshop, gathering, "--close", "async", *ONE_REQUEST)
    stack.slow.set("fail", "write@bad:1+:EIO")
    for name in ("bad", "good"):
        fd = stack.open(name)
        write_slowly(fd, pattern(name, MIB))
        assert told(os.close, fd) == 0
    assert stack.end() != 0
    assert "bad" in stack.mount.said() and "good" not in stack.mount.said()
    assert stack.below("good") == pattern("good", MIB)


NEW_NAMES = {
    "rename": lambda top: os.rename(top / "a/new", top / "good"),
    "link": lambda top: os.link(top / "a/new", top / "b"),
    "rename of its folder": lambda top: os.rename(top / "a", top / "b"),
}


@pytest.mark.crfs_only
@pytest.mark.parametrize("how", NEW_NAMES)
def test_a_file_that_lost_data_gets_no_new_name_unless_somebody_was_told(workshop, gathering, how):
    """A program that replaces its last good checkpoint would have none."""
    stack = Stack(workshop, gathering, "--close", "async", *ONE_REQUEST)
    (stack.mount.path / "a").mkdir()
    (stack.mount.path / "good").write_bytes(b"good")
    stack.slow.set("fail", "write@new:1+:ENOSPC")
    fd = stack.open("a/new")
    write_slowly(fd, pattern("new", MIB))
    assert told(os.close, fd) == 0
    assert told(NEW_NAMES[how], stack.mount.path) == errno.ENOSPC
    assert (stack.mount.path / "good").read_bytes() == b"good"
    assert told(NEW_NAMES[how], stack.mount.path) == 0, "it was told, once"
    assert stack.end() == 0


@pytest.mark.crfs_only
def test_a_rename_before_the_close_is_told_too(workshop):
    stack = Stack(workshop, "direct", *ONE_REQUEST)
    stack.slow.set("fail", "write@new:1+:ENOSPC")
    fd = stack.open("new")
    write_slowly(fd, pattern("new", MIB))
    assert told(os.rename, stack.mount.path / "new", stack.mount.path / "good") == errno.ENOSPC
    assert [told(os.close, fd), (stack.mount.path / "good").exists()] == [errno.ENOSPC, False]


@pytest.mark.crfs_only
def test_a_file_whose_length_is_not_known_is_not_opened(workshop):
    """Appends would overwrite its beginning."""
    stack = Stack(workshop, "direct")
    (stack.slow.backing / "a").write_bytes(b"old" * 1000)
    assert (stack.mount.path / "a").stat().st_size == 3000
    stack.slow.set("delay-us", "1100000")  # so long that what the kernel knew from open() is not true any more
    stack.slow.set("fail", "getattr@a:1+:EIO")
    assert told(stack.open, "a", os.O_WRONLY | os.O_APPEND) == errno.EIO
    stack.slow.set("clear")
    fd = stack.open("a", os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"new")
    os.close(fd)
    assert stack.below("a") == b"old" * 1000 + b"new"


@pytest.mark.parametrize("length", [1, 4097, 100_000])
def test_short_writes_are_gone_on_with(workshop, gathering, length):
    stack = Stack(workshop, gathering)
    size = 3000 if length == 1 else MIB + 17
    stack.slow.set("short", str(length))
    fd = stack.open("a")
    write_slowly(fd, pattern("a", size), 12_345)
    assert [told(os.fsync, fd), told(os.close, fd)] == [0, 0]
    assert stack.below("a") == pattern("a", size)


@pytest.mark.crfs_only
@pytest.mark.parametrize("fault, call", [
    ("fsync@a:1+:EIO", lambda fd: os.fsync(fd)),
    ("truncate@a:1+:EIO", lambda fd: os.ftruncate(fd, 5)),
    ("fallocate@a:1+:ENOSPC", lambda fd: os.posix_fallocate(fd, 0, MIB)),
    ("read@a:1+:EIO", lambda fd: os.pread(fd, 100, 0)),
])
def test_errors_of_other_requests_come_back_and_pass(workshop, fault, call):
    stack = Stack(workshop, "direct")
    (stack.slow.backing / "a").write_bytes(b"old" * 1000)
    fd = stack.open("a")
    stack.slow.set("fail", fault)
    assert told(call, fd) == getattr(errno, fault.split(":")[-1])
    stack.slow.set("clear")
    assert [told(call, fd), told(os.fsync, fd), told(os.close, fd)] == [0, 0, 0]
    assert stack.end() == 0, "no data were lost"


@pytest.mark.crfs_only
def test_a_write_through_o_sync_fails_itself(workshop):
    stack = Stack(workshop, "direct", *ONE_REQUEST)
    fd = stack.open("a", os.O_RDWR | os.O_CREAT | os.O_SYNC)
    stack.slow.set("fail", "write@a:1:EIO")
    assert told(os.write, fd, b"x" * 100) == errno.EIO
    assert [told(os.write, fd, b"y" * 100), told(os.close, fd)] == [0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_harms_only_what_did_not_fit(workshop, gathering):
    disk = workshop.small_disk(6 * MIB)
    mount = workshop.crfs("--mode", gathering, backing=disk)
    (mount.path / "fits").write_bytes(pattern("fits", 2 * MIB))
    fd = os.open(mount.path / "large", os.O_RDWR | os.O_CREAT)
    codes = {told(write_slowly, fd, pattern("large", 8 * MIB)), told(os.close, fd)}
    assert codes <= {0, errno.ENOSPC} and errno.ENOSPC in codes
    assert (disk / "fits").read_bytes() == pattern("fits", 2 * MIB)
    (mount.path / "large").unlink()
    (mount.path / "again").write_bytes(pattern("again", 3 * MIB))
    assert (disk / "again").read_bytes() == pattern("again", 3 * MIB)
