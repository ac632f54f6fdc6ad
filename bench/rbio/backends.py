"""Where checkpoints go: directories on quick and on slow storage, and how programs are run on them."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/crfs"))

from mounts import Workshop  # noqa: E402

MIB = 1 << 20
IMAGE_BYTES = 2 << 30
BLKIO = Path("/sys/fs/cgroup/blkio")
PATIENCE_S = 1800
AIM, AIM_OF_SLOW = "aim 1.8, outstanding 2.5", "aim 20, outstanding 40"
OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Backend:
    """A directory, the cgroup that programs join before they write there, and how much longer than rbIO the best coIO
    shall block there."""

    def __init__(self, name: str, directory: Path, is_slow: bool = False, group: Optional[Path] = None,
                 aim: str = "") -> None:
        self.name, self.directory, self.is_slow, self._group, self.aim = name, directory, is_slow, group, aim

    def run(self, words: Sequence[object], environment: Optional[Dict[str, str]] = None) -> Any:
        """What a program prints, which is JSON."""
        return json.loads(self.finish(words, environment, stdout=subprocess.PIPE).stdout)

    def finish(self, words: Sequence[object], environment: Optional[Dict[str, str]] = None, **streams: int) -> Any:
        """Runs a program. Nothing of an earlier one is still on its way to the disk."""
        subprocess.run(["sync", "-f", str(self.directory)], check=True)
        return subprocess.run([str(word) for word in words], env={**os.environ, **AS_ROOT, **(environment or {})},
                              check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, preexec_fn=self._join, **streams)

    def run_ranks(self, ranks: int, words: Sequence[object], environment: Optional[Dict[str, str]] = None) -> Any:
        return self.run([*OPENMPI, "-np", ranks, *words], environment)

    def _join(self) -> None:
        if self._group:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def in_memory() -> Iterator[Backend]:
    with tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir="/dev/shm") as directory:
        yield Backend("page cache, tmpfs", Path(directory), aim=AIM)


@contextlib.contextmanager
def on_disk(disk: Path) -> Iterator[Backend]:
    with tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir=disk) as directory:
        yield Backend(f"page cache, {file_system_of(disk)}", Path(directory), aim=AIM)


@contextlib.contextmanager
def throttled(bytes_per_s: int) -> Iterator[Backend]:
    """A file system of our own, as the journal of a shared one writes at the bidding of others, on a device that takes
    so much from the programs, by their cgroup. Needs root and cgroup version 1."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir="/dev/shm")))
        image, mount = directory / "image", directory / "mount"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        mount.mkdir()
        system("mkfs.ext4", "-q", image)
        system("mount", "-o", "loop", image, mount)
        stack.callback(system, "umount", mount)
        group = BLKIO / f"cairn-rbio-{os.getpid()}"
        group.mkdir()
        stack.callback(group.rmdir)
        number = os.stat(mount).st_dev
        limit = f"{os.major(number)}:{os.minor(number)} {bytes_per_s}"
        (group / "blkio.throttle.write_bps_device").write_text(limit)
        yield Backend(f"ext4 on a device limited to {bytes_per_s // MIB} MiB/s (loop device, blkio cgroup)", mount,
                      is_slow=True, group=group, aim=AIM_OF_SLOW)


@contextlib.contextmanager
def slow_mount(build: Path, bytes_per_s: int) -> Iterator[Backend]:
    """A file system that waits: without root, and where there is no cgroup version 1."""
    workshop = Workshop(build)
    try:
        mount = workshop.slowfs("--direct", "--no-xattr", "--bandwidth", str(bytes_per_s))
        yield Backend(f"FUSE file system of {bytes_per_s // MIB} MiB/s (slowfs)", mount.path, is_slow=True,
                      aim=AIM_OF_SLOW)
    finally:
        workshop.close()


@contextlib.contextmanager
def delayed(build: Path, delay_us: int) -> Iterator[Backend]:
    """A file system in which each operation takes so long, and bytes take no time: it lies in memory."""
    workshop = Workshop(build, parent=Path("/dev/shm"))
    try:
        mount = workshop.slowfs("--direct", "--no-xattr", "--delay-us", str(delay_us))
        yield Backend(f"FUSE file system with {delay_us / 1000:g} ms per operation (slowfs)", mount.path, is_slow=True,
                      aim="no aim")
    finally:
        workshop.close()


@contextlib.contextmanager
def slow(build: Path, bytes_per_s: int) -> Iterator[Backend]:
    """The best slow backend that can be made here."""
    with contextlib.ExitStack() as stack:
        try:
            backend = stack.enter_context(throttled(bytes_per_s))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"\nNo device can be throttled here ({error}); a slow FUSE file system takes its place.")
            backend = stack.enter_context(slow_mount(build, bytes_per_s))
        yield backend


def system(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


def file_system_of(directory: Path) -> str:
    return subprocess.run(["stat", "-f", "-c", "%T", str(directory)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip().replace("ext2/ext3", "ext4")


class Noise:
    """How busy other programs kept the machine. Needs the accounts of cgroup version 1: the ticks of /proc/stat miss programs
    that sleep and wake within a tick, as ranks do, and what ours used would hide what others did."""

    ALL = Path("/sys/fs/cgroup/cpuacct/cpuacct.usage")

    def __init__(self) -> None:
        self._begin = self._now()

    def _now(self) -> List[float]:
        """Seconds of the clock, of all cores, of our programs, and of cores that the host took away."""
        busy = int(self.ALL.read_text()) / 1e9 if self.ALL.exists() else 0.0
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        stolen = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")
        return [time.monotonic(), busy, own.ru_utime + own.ru_stime, stolen]

    def text(self) -> str:
        clock, busy, own, stolen = (end - begin for begin, end in zip(self._begin, self._now()))
        others = f"other programs used {(busy - own) / clock:.2f}" if busy else "what other programs used is not known"
        return f"Of {os.cpu_count()} cores, {others}, and the host took {stolen / clock:.2f}."
