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
BLKIO = Path("/sys/fs/cgroup/blkio")
PATIENCE_S = 600
OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Backend:
    """A directory, and the cgroup that programs join before they write there."""

    def __init__(self, name: str, directory: Path, is_slow: bool = False, group: Optional[Path] = None) -> None:
        self.name, self.directory, self.is_slow, self._group = name, directory, is_slow, group

    def run(self, words: Sequence[object], environment: Optional[Dict[str, str]] = None) -> Any:
        """What a program prints, which is JSON. Nothing of an earlier program is still on its way to the disk."""
        subprocess.run(["sync", "-f", str(self.directory)], check=True)
        done = subprocess.run([str(word) for word in words], env={**os.environ, **AS_ROOT, **(environment or {})},
                              stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              preexec_fn=self._join)
        return json.loads(done.stdout)

    def run_ranks(self, ranks: int, words: Sequence[object], environment: Optional[Dict[str, str]] = None) -> Any:
        return self.run([*OPENMPI, "-np", ranks, *words], environment)

    def _join(self) -> None:
        if self._group:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def in_memory() -> Iterator[Backend]:
    with tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir="/dev/shm") as directory:
        yield Backend("page cache, tmpfs", Path(directory))


@contextlib.contextmanager
def on_disk(disk: Path) -> Iterator[Backend]:
    with tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir=disk) as directory:
        yield Backend(f"page cache, {file_system_of(disk)}", Path(directory))


@contextlib.contextmanager
def throttled(disk: Path, bytes_per_s: int) -> Iterator[Backend]:
    """A device that takes so much from the programs, by their cgroup; needs root and cgroup version 1."""
    group = BLKIO / f"cairn-rbio-{os.getpid()}"
    group.mkdir()
    try:
        limit = f"{device_of(disk)} {bytes_per_s}"
        (group / "blkio.throttle.write_bps_device").write_text(limit)
        with tempfile.TemporaryDirectory(prefix="cairn-rbio-", dir=disk) as directory:
            yield Backend(f"{file_system_of(disk)} on a device limited to {bytes_per_s // MIB} MiB/s (blkio cgroup)",
                          Path(directory), is_slow=True, group=group)
    finally:
        group.rmdir()


@contextlib.contextmanager
def slow_mount(build: Path, bytes_per_s: int) -> Iterator[Backend]:
    """A file system that waits: without root, and where there is no cgroup version 1."""
    workshop = Workshop(build)
    try:
        mount = workshop.slowfs("--direct", "--no-xattr", "--bandwidth", str(bytes_per_s))
        yield Backend(f"FUSE file system of {bytes_per_s // MIB} MiB/s (slowfs)", mount.path, is_slow=True)
    finally:
        workshop.close()


@contextlib.contextmanager
def slow(build: Path, disk: Path, bytes_per_s: int) -> Iterator[Backend]:
    """The best slow backend that can be made here."""
    with contextlib.ExitStack() as stack:
        try:
            backend = stack.enter_context(throttled(disk, bytes_per_s))
        except OSError as error:
            print(f"\nNo device can be throttled here ({error}); a slow FUSE file system takes its place.")
            backend = stack.enter_context(slow_mount(build, bytes_per_s))
        yield backend


def device_of(directory: Path) -> str:
    """MAJOR:MINOR of the whole device, which alone can be throttled."""
    number = os.stat(directory).st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    return (entry / "dev").read_text().strip()


def file_system_of(directory: Path) -> str:
    return subprocess.run(["stat", "-f", "-c", "%T", str(directory)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip().replace("ext2/ext3", "ext4")


class Noise:
    """How busy other programs kept the machine."""

    def __init__(self) -> None:
        self._begin = self._now()

    @staticmethod
    def _now() -> List[float]:
        """Seconds of the clock, of all cores, of our programs, and of cores that the host took away."""
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in words]
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = sum(ticks[:3]) + sum(ticks[5:7])
        return [time.monotonic(), busy, own.ru_utime + own.ru_stime, ticks[7]]

    def text(self) -> str:
        clock, busy, own, stolen = (end - begin for begin, end in zip(self._begin, self._now()))
        return (f"Of {os.cpu_count()} cores, other programs used {max(0.0, busy - own) / clock:.2f}, "
                f"and the host took {stolen / clock:.2f}.")
