"""It goes on: with hardly any memory, with a backing file system that stands still, and until the last byte is out."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import List

import pytest

from mounts import PATIENCE_S, detach, is_mount

SCARCE = ("--pool", "64K", "--chunk", "64K", "--write", "64K", "--threads", "1", "--fuse-threads", "1")
RECORD = 1000
# Writes numbered records until it cannot, then tells how many the system took.
WRITER = f"""
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("open", flush=True)
done, most = 0, int(sys.argv[2])
try:
    while done < most:
        record = (b"%d " % done).ljust({RECORD}, b"r")
        if os.write(fd, record) != len(record): break
        done += 1
    os.close(fd)
except OSError:
    pass
print(done, flush=True)
"""


def records(count: int) -> bytes:
    return b"".join((b"%d " % i).ljust(RECORD, b"r") for i in range(count))


def start_writers(folder: Path, count: int, most: int = 1 << 60) -> List["subprocess.Popen[str]"]:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(folder / f"w{i}"), str(most)],
                                stdout=subprocess.PIPE, text=True) for i in range(count)]
    for writer in writers:
        assert writer.stdout.readline() == "open\n"
    return writers


def count_of(writer: "subprocess.Popen[str]") -> int:
    """How many records the system took from a writer."""
    output = writer.stdout.read()  # not communicate(), which knows nothing of what readline() has read ahead
    writer.wait()
    return int(output)


@pytest.mark.parametrize("delay_us", [0, 300])
def test_one_chunk_for_64_files_and_one_thread(workshop, gathering, delay_us):
    slow = workshop.slowfs("--delay-us", str(delay_us))
    mount = workshop.crfs("--mode", gathering, *SCARCE, backing=slow.path)
    contents = {f"f{i}": random.Random(i).randbytes(150_000 + i * 1000) for i in range(64)}
    done: List[str] = []

    def write(name: str, data: bytes) -> None:
        with open(mount.path / name, "wb", buffering=0) as file:
            at = 0
            while at < len(data):
                at += file.write(data[at:at + 30_000])
                if at > 100_000:
                    os.fstat(file.fileno())
        done.append(name)

    threads = [threading.Thread(target=write, args=item, daemon=True) for item in contents.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    assert len(done) == 64, f"{64 - len(done)} writers stand still"
    assert mount.unmount() == 0
    for name, data in contents.items():
        assert (slow.backing / name).read_bytes() == data


def test_a_backing_file_system_that_stood_still_is_gone_on_with(workshop, gathering):
    slow = workshop.slowfs()
    mount = workshop.crfs("--mode", gathering, "--pool", "1M", "--chunk", "128K", backing=slow.path)
    writers = start_writers(mount.path, 4, most=4000)
    for _ in range(3):
        slow.signal(signal.SIGSTOP)
        time.sleep(0.3)
        slow.signal(signal.SIGCONT)
        time.sleep(0.05)
    assert [count_of(writer) for writer in writers] == [4000] * 4
    assert mount.unmount() == 0
    for i in range(4):
        assert (slow.backing / f"w{i}").read_bytes() == records(4000)


@pytest.mark.crfs_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_that_is_told_to_end_writes_what_it_has(workshop, number):
    """Direct mode: what write() took is the daemon's, not the page cache's."""
    slow = workshop.slowfs("--delay-us", "2000")
    mount = workshop.crfs("--mode", "direct", "--pool", "8M", "--chunk", "256K", backing=slow.path)
    writers = start_writers(mount.path, 3)
    time.sleep(0.4)
    mount.signal(number)
    status = mount.wait()
    counts = [count_of(writer) for writer in writers]
    assert status == 0 and not is_mount(mount.path)
    assert min(counts) > 50
    for i, count in enumerate(counts):
        # A record that was on its way may be there as well.
        assert (slow.backing / f"w{i}").read_bytes()[:count * RECORD] == records(count)


@pytest.mark.crfs_only
def test_what_the_kernel_took_while_the_daemon_is_told_to_end_is_there(workshop):
    """Writers that never wait: the kernel gathers for them."""
    for _ in range(3):
        mount = workshop.crfs("--mode", "writeback")
        idle = os.open(mount.path / "idle", os.O_WRONLY | os.O_CREAT)
        os.write(idle, records(100))
        renamed = os.open(mount.path / "before", os.O_WRONLY | os.O_CREAT)
        os.write(renamed, records(50))
        os.link(mount.path / "before", mount.path / "after")
        os.unlink(mount.path / "before")
        writers = start_writers(mount.path, 3)
        time.sleep(0.3)
        mount.signal(signal.SIGTERM)
        assert mount.wait() == 0
        assert (mount.backing / "idle").read_bytes() == records(100)
        assert (mount.backing / "after").read_bytes() == records(50)
        for file in (idle, renamed):
            try:
                os.close(file)
            except OSError:
                pass  # the mount is gone
        counts = [count_of(writer) for writer in writers]
        assert min(counts) > 0
        for i, count in enumerate(counts):
            assert (mount.backing / f"w{i}").read_bytes()[:count * RECORD] == records(count), (count, mount.said())


@pytest.mark.crfs_only
def test_a_daemon_that_is_killed_while_it_ends_leaves_nobody_waiting(workshop):
    """What the kernel still had to hand over has no answer: the mount must end, or every disk stands still."""
    slow = workshop.slowfs("--delay-us", "50000")
    mount = workshop.crfs("--mode", "writeback", "--pool", "1M", "--chunk", "128K", "--write", "128K",
                          backing=slow.path)
    file = os.open(mount.path / "big", os.O_WRONLY | os.O_CREAT)
    for _ in range(32):
        os.write(file, bytes(1 << 20))
    mount.signal(signal.SIGTERM)
    time.sleep(0.5)
    assert mount.process.poll() is None, "it is still at it"
    mount.kill()
    ended = threading.Event()

    def sync() -> None:
        with pytest.raises(OSError):
            os.fsync(file)
        ended.set()

    threading.Thread(target=sync, daemon=True).start()
    assert ended.wait(PATIENCE_S), "the kernel waits for answers of the dead"
    try:
        os.close(file)
    except OSError:
        pass  # as fsync() has told
    detach(mount.path)


@pytest.mark.crfs_only
def test_who_does_not_write_need_not_wait_for_those_who_do(workshop):
    """20 writers of a chunk each, more than the threads at the start, and 4 chunks, of which 2 are written in a second."""
    slow = workshop.slowfs("--bandwidth", str(512 << 10))
    mount = workshop.crfs("--pool", "1M", "--chunk", "256K", backing=slow.path)
    files = [os.open(mount.path / f"w{i}", os.O_WRONLY | os.O_CREAT) for i in range(20)]
    writers = [threading.Thread(target=os.write, args=(file, bytes(256 << 10))) for file in files]
    for writer in writers:
        writer.start()
    time.sleep(0.5)
    start = time.monotonic()
    (mount.path / "folder").mkdir()
    assert len(os.listdir(mount.path)) == 21
    (mount.path / "w7").stat()
    took_s = time.monotonic() - start
    slow.set("clear")
    for writer, file in zip(writers, files):
        writer.join()
        os.close(file)
    assert took_s < 1


@pytest.mark.crfs_only
def test_unmount_writes_what_was_closed(workshop, gathering):
    slow = workshop.slowfs("--delay-us", "2000")
    mount = workshop.crfs("--mode", gathering, "--close", "async", "--pool", "16M", "--chunk", "256K", backing=slow.path)
    for i in range(8):
        (mount.path / f"f{i}").write_bytes(records(1500 + i))
    assert mount.unmount() == 0
    for i in range(8):
        assert (slow.backing / f"f{i}").read_bytes() == records(1500 + i)


@pytest.mark.crfs_only
def test_a_lazy_unmount_waits_for_who_still_writes(workshop, gathering):
    slow = workshop.slowfs("--delay-us", "1000")
    mount = workshop.crfs("--mode", gathering, "--pool", "4M", "--chunk", "256K", backing=slow.path)
    writers = start_writers(mount.path, 3, most=6000)
    detach(mount.path)
    assert [count_of(writer) for writer in writers] == [6000] * 3
    assert mount.wait() == 0, mount.said()
    for i in range(3):
        assert (slow.backing / f"w{i}").read_bytes() == records(6000)


def test_writers_that_are_killed_leave_what_they_wrote(workshop, gathering, seed):
    """As with a page cache: what write() took is there, though nobody closed the file."""
    mount = workshop.crfs("--mode", gathering, "--pool", "4M", "--chunk", "256K")
    chance = random.Random(seed)
    writers = start_writers(mount.path, 4, most=8_000)
    for writer in writers[:2]:
        time.sleep(chance.uniform(0, 0.1))
        writer.kill()
        writer.wait()
    assert [count_of(writer) for writer in writers[2:]] == [8_000] * 2
    seen = [(mount.path / f"w{i}").read_bytes() for i in range(4)]
    assert mount.unmount() == 0
    for i, data in enumerate(seen):
        assert data == records(len(data) // RECORD + 1)[:len(data)]
        assert (mount.backing / f"w{i}").read_bytes() == data


@pytest.mark.crfs_only
@pytest.mark.parametrize("operation", ["open", "write", "fsync"])
def test_a_file_that_stands_still_holds_up_no_other(workshop, gathering, operation):
    slow = workshop.slowfs("--delay", f"{operation}@still:4000000")
    mount = workshop.crfs("--mode", gathering, backing=slow.path)
    for name in ("still", "other"):
        (slow.backing / name).write_bytes(b"old")

    def use(name: str) -> None:
        with open(mount.path / name, "r+b", buffering=0) as file:
            file.truncate(0)
            file.write(records(100))
            os.fsync(file.fileno())
            assert os.pread(file.fileno(), RECORD, 0) == records(1)
            assert os.fstat(file.fileno()).st_size == 100 * RECORD

    still = threading.Thread(target=use, args=("still",))
    still.start()
    time.sleep(0.3)
    for _ in range(5):
        use("other")
    assert still.is_alive(), "the other file waited"
    still.join()
    assert mount.unmount() == 0
    for name in ("still", "other"):
        assert (slow.backing / name).read_bytes() == records(100)
