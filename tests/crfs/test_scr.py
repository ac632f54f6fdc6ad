"""crfs --scr: closed steps become datasets, and the newest whole one is there after the next mount."""

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional

import pytest

from model import difference, draw, shrink
from mounts import Mount, Workshop

PATTERN = r"step\.(?<step>\d+)/part\.\d+(\.tmp)?$"
PATIENCE_S = 30
PARTS, PART_BYTES = 3, 70000


def content(step: int, part: int) -> bytes:
    """As steps.c has it."""
    return bytes((step * 31 + part * 7 + i % 251) & 0xFF for i in range(PART_BYTES))


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


class Job:
    """Mounts of one prefix directory, and the caches of its nodes."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop, self.build = workshop, workshop.build
        self.folder = workshop.new_folder("job")
        self.backing, self.caches = self.folder / "pfs", self.folder / "caches"
        self.backing.mkdir()
        self.settings: Dict[str, str] = {}

    def mount(self, *options: str, node: str = "n0", pattern: str = PATTERN, path: Optional[Path] = None, **settings: str) -> Mount:
        chosen = ["--checkpoint", pattern] if pattern else []
        return self.workshop.crfs("--scr", *chosen, *options, backing=self.backing, path=path,
                                  environment=self.environment(node, **settings))

    def environment(self, node: str, **settings: str) -> Dict[str, str]:
        return {"SCR_CACHE_BASE": str(self.caches / "%n"), "SCR_CNTL_BASE": str(self.caches / "%n" / "control"), "SCR_JOB_ID": "7",
                "SCR_NODE_NAME": node, "SCR_USER_NAME": "me", "CAIRN_WRAP_FREE_PERCENT": "0", "SCR_COPY_TYPE": "SINGLE",
                **self.settings, **settings}

    def write(self, mount: Mount, first: int, last: int) -> None:
        subprocess.run([self.build / "tests/crfs/steps", mount.path, str(first), str(last)], check=True)

    def cached(self, node: str = "n0") -> List[str]:
        """The redirected files on a node."""
        files = next((self.caches / node / "me").glob("cairn-mount.*/files"))
        return sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())

    def dataset(self, step: int, node: str = "n0") -> Optional[Path]:
        """The directory of a committed dataset in the cache, of the node's rank."""
        for record in (self.caches / node / "me").glob("cairn.7.*/dataset.*/rank.*/record"):
            if (record.parent / f"files/step.{step}").exists():
                return record.parent
        return None

    def is_in_use(self) -> bool:
        """Whether the process of a mount lives."""
        with next((self.caches / "n0/me").glob("cairn-mount.*/lock")).open() as lock, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        return True

    def index(self) -> str:
        """The datasets of the prefix directory."""
        return subprocess.run([self.build / "src/tools/cairn", "index", "list", "-p", self.backing], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def lose_caches(self, *nodes: str) -> None:
        for node in nodes or [path.name for path in self.caches.iterdir()]:
            shutil.rmtree(self.caches / node)


@pytest.fixture
def job(workshop: Workshop) -> Job:
    return Job(workshop)


def steps_in(mount: Mount) -> List[int]:
    """Those of which a program finds files."""
    return sorted(int(path.name.split(".")[1]) for path in mount.path.glob("step.*") if any(path.iterdir()))


def expect_step(mount: Mount, step: int) -> None:
    names = sorted(path.name for path in (mount.path / f"step.{step}").iterdir())
    assert names == [f"part.{part}" for part in range(PARTS)]
    for part, name in enumerate(names):
        assert (mount.path / f"step.{step}" / name).read_bytes() == content(step, part), (step, name)


def write_part(mount: Mount, step: int, part: int) -> None:
    folder = mount.path / f"step.{step}"
    folder.mkdir(exist_ok=True)
    (folder / f"part.{part}").write_bytes(content(step, part))


def flip(path: Path, keeps_time: bool = True) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(12345)
        byte = file.read(1)
        file.seek(12345)
        file.write(bytes([byte[0] ^ 4]))
    if keeps_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_steps_of_a_static_program_outlive_the_caches(job):
    mount = job.mount()
    job.write(mount, 1, 3)
    assert not any((job.backing / "step.3").iterdir())
    expect_step(mount, 3)
    assert mount.unmount() == 0, mount.said()
    assert "step.3" in job.index()
    job.lose_caches()
    again = job.mount()
    assert steps_in(again) == [3], again.said()
    expect_step(again, 3)
    assert subprocess.run([job.build / "tests/crfs/steps", again.path, "check", "3"], check=False).returncode == 0


def test_the_next_mount_shows_the_newest_step_of_the_cache(job):
    mount = job.mount(SCR_FLUSH="0")
    job.write(mount, 1, 3)
    assert mount.unmount() == 0, mount.said()
    assert not any((job.backing / "step.3").iterdir())
    again = job.mount(SCR_FLUSH="0")
    assert steps_in(again) == [3], again.said()
    expect_step(again, 3)
    job.write(again, 4, 4)
    assert again.unmount() == 0, again.said()
    assert steps_in(job.mount()) == [4]


def test_after_a_kill_only_whole_steps_are_there(job):
    mount = job.mount()
    job.write(mount, 1, 2)
    write_part(mount, 3, 0)
    with (mount.path / "step.3/part.1").open("wb") as file:
        file.write(content(3, 1)[:5000])
        wait_for(lambda: job.dataset(2))
        mount.kill()
        with suppress(OSError):
            file.close()
    mount.die()
    again = job.mount()
    assert steps_in(again) == [2], again.said()
    expect_step(again, 2)


def test_a_killed_mount_and_a_lost_cache_leave_what_was_copied(job):
    mount = job.mount(SCR_FLUSH="1")
    job.write(mount, 1, 2)
    write_part(mount, 3, 0)
    wait_for(lambda: "step.2" in job.index())
    assert (job.backing / "step.2/part.0").exists() and "step.2/part.0" in job.cached()
    expect_step(mount, 2)  # each name once
    mount.die()
    job.lose_caches()
    again = job.mount()
    assert steps_in(again)[-1] == 2, again.said()
    expect_step(again, 2)


def test_a_flipped_byte_of_the_cache_is_repaired_from_the_prefix_directory(job):
    mount = job.mount()
    job.write(mount, 1, 3)
    assert mount.unmount() == 0
    flip(job.dataset(3) / "files/step.3/part.1")
    expect_step(job.mount(), 3)


@pytest.mark.parametrize("keeps_time", [True, False])
def test_a_flipped_byte_of_the_prefix_directory_is_not_handed_out(job, keeps_time):
    mount = job.mount(SCR_FLUSH="1")
    for step in (1, 2, 3):
        job.write(mount, step, step)
        wait_for(lambda: step == 1 or f"step.{step - 1}" in job.index())
    assert mount.unmount() == 0, mount.said()
    job.lose_caches()
    flip(job.backing / "step.3/part.1", keeps_time)
    again = job.mount()
    expect_step(again, 2)
    with pytest.raises(OSError):
        (again.path / "step.3/part.1").read_bytes()
    with pytest.raises(OSError):  # one block has the bytes of all these files
        (again.path / "step.3/part.0").read_bytes()


def test_a_byte_that_is_flipped_while_it_is_mounted_is_not_handed_out(job):
    mount = job.mount(SCR_FLUSH="1")
    job.write(mount, 1, 2)
    wait_for(lambda: "step.1" in job.index())
    for step in range(3, 7):
        job.write(mount, step, step)
        wait_for(lambda: job.dataset(step))
    wait_for(lambda: "step.1/part.0" not in job.cached())
    assert (mount.path / "step.1/part.0").read_bytes() == content(1, 0)
    flip(job.backing / "step.1/part.2")
    time.sleep(1.1)  # the kernel keeps attributes for a second
    with pytest.raises(OSError):
        (mount.path / "step.1/part.2").read_bytes()


@pytest.mark.parametrize("mode", ["direct", "passthrough"])
def test_a_file_that_is_never_closed_goes_where_it_belongs(job, mode):
    mount = job.mount("--mode", mode)
    job.write(mount, 1, 1)
    for part in range(PARTS - 1):
        write_part(mount, 2, part)
    file = (mount.path / "step.2/part.2").open("wb", buffering=0)
    file.write(content(2, 2)[:30000])
    mount.signal(signal.SIGTERM)
    assert mount.wait() == 0, mount.said()
    rest = content(2, 2)[30000:]
    with suppress(OSError):  # none where the kernel writes the file by itself
        rest = rest[file.write(rest):]
    with suppress(OSError):
        file.close()
    assert "step.2 cannot become a checkpoint" in mount.said()
    assert mode == "passthrough" or rest
    again = job.mount("--mode", mode)
    expect_step(again, 1)
    assert (job.backing / "step.2/part.2").read_bytes() + rest == content(2, 2)
    assert [(job.backing / f"step.2/part.{part}").read_bytes() for part in range(PARTS - 1)] == [content(2, part) for part in range(PARTS - 1)]


def test_appending_to_a_checkpoint_does_not_change_it(job):
    mount = job.mount(SCR_FLUSH="0")
    job.write(mount, 1, 2)
    write_part(mount, 3, 0)
    wait_for(lambda: job.dataset(2))
    kept = job.dataset(2)
    assert (kept / "files/step.2/part.0").stat().st_nlink > 1
    time.sleep(1.1)  # the kernel keeps attributes for a second
    assert [path.stat().st_nlink for path in (mount.path / "step.2").iterdir()] == [1] * PARTS
    saved = job.folder / "saved"
    shutil.copytree(kept / "files", saved)
    with (mount.path / "step.2/part.0").open("ab") as file:
        file.write(b"more")
        file.flush()
        assert (mount.path / "step.2/part.0").read_bytes() == content(2, 0) + b"more"
        if kept.exists():
            assert (kept / "files/step.2/part.0").read_bytes() == content(2, 0)
    assert (saved / "step.2/part.0").read_bytes() == content(2, 0)


def test_no_way_leads_to_the_file_of_a_checkpoint(job):
    """A process that has it open keeps it, but does not get at it to write."""
    mount = job.mount(SCR_FLUSH="0")
    job.write(mount, 1, 2)
    wait_for(lambda: job.dataset(2))
    os.link(job.dataset(2) / "files/step.2/part.0", job.caches / "n0/second")  # it is there as long as a checkpoint could have it
    kept_open = os.open(mount.path / "step.2/part.0", os.O_RDONLY)
    with (mount.path / "step.2/part.0").open("ab") as file:
        file.write(b"more")
        for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
            with pytest.raises(OSError):
                os.open(f"/proc/self/fd/{kept_open}", flags)
        with pytest.raises(OSError):
            os.truncate(f"/proc/self/fd/{kept_open}", 5)
        assert os.pread(kept_open, 2 * PART_BYTES, 0) == (job.caches / "n0/second").read_bytes() == content(2, 0)
    os.close(kept_open)


def test_a_step_that_was_written_again_is_a_checkpoint_again(job):
    mount = job.mount()
    job.write(mount, 1, 3)
    wait_for(lambda: job.dataset(3))
    with (mount.path / "step.3/part.0").open("ab") as file:
        file.write(b"more")
    wait_for(lambda: job.dataset(3) and (job.dataset(3) / "files/step.3/part.0").stat().st_size > PART_BYTES)
    with (mount.path / "step.3/part.1").open("ab") as file:
        file.write(b"and more")
    assert mount.unmount() == 0, mount.said()
    job.lose_caches()
    again = job.mount()
    assert steps_in(again) == [3]
    assert [(again.path / f"step.3/part.{part}").read_bytes() for part in range(PARTS)] == [
        content(3, 0) + b"more", content(3, 1) + b"and more", content(3, 2)]


@pytest.mark.parametrize("way", ["truncate", "open", "rename", "write"])
def test_a_file_that_is_written_again_is_old_or_new_after_a_kill(job, way):
    mount = job.mount(SCR_FLUSH="0")
    job.write(mount, 1, 2)
    wait_for(lambda: job.dataset(2))
    path = mount.path / "step.2/part.1"
    new = b"new" * 1000
    if way == "truncate":
        os.truncate(path, 0)
        os.truncate(path, 3000)
        new = bytes(3000)
    elif way == "open":
        path.write_bytes(new)
    elif way == "rename":
        path.with_suffix(".1.tmp").write_bytes(new)
        os.rename(path.with_suffix(".1.tmp"), path)
    else:
        with path.open("r+b") as file:
            file.write(new)
        new = new + content(2, 1)[len(new):]
    assert path.read_bytes() == new
    mount.die()
    again = job.mount(SCR_FLUSH="0")
    step = steps_in(again)[-1]
    if step == 2:
        found = (again.path / "step.2/part.1").read_bytes()
        assert found in (content(2, 1), new)
        if found == content(2, 1):
            expect_step(again, 2)
    else:
        expect_step(again, 1)


def test_what_a_program_removes_is_removed(job):
    mount = job.mount(SCR_FLUSH="1")
    job.write(mount, 1, 2)
    wait_for(lambda: "step.1" in job.index())
    shutil.rmtree(mount.path / "step.1")
    assert steps_in(mount) == [2]
    assert not (job.backing / "step.1").exists() and "step.1/part.0" not in job.cached()
    assert not (mount.path / "step.1").exists()
    job.write(mount, 3, 3)
    assert mount.unmount() == 0, mount.said()
    assert steps_in(job.mount())[-1] == 3


def test_with_a_full_cache_files_are_where_they_are_without_scr(job):
    mount = job.mount(CAIRN_WRAP_FREE_PERCENT="100")
    job.write(mount, 1, 2)
    assert job.cached() == []
    assert (job.backing / "step.2/part.2").read_bytes() == content(2, 2)
    assert mount.unmount() == 0, mount.said()
    assert "step.2 cannot become a checkpoint" in mount.said()
    again = job.mount(CAIRN_WRAP_FREE_PERCENT="100")
    expect_step(again, 2)
    write_part(again, 3, 0)
    assert again.unmount() == 0 and "step.3 cannot become a checkpoint" in again.said()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_cache_that_fills_up_in_a_step_fails_the_program_and_makes_no_dataset(job):
    job.caches.mkdir()
    job.workshop.small_disk(8 << 20, job.caches)
    mount = job.mount(SCR_FLUSH="0")
    job.write(mount, 1, 1)
    write_part(mount, 2, 0)
    filler = job.caches / "filler"
    filler.write_bytes(bytes(5 << 20))
    with pytest.raises(OSError):
        (mount.path / "step.2/part.1").write_bytes(bytes(6 << 20))
    filler.unlink()
    write_part(mount, 2, 2)
    assert mount.unmount() in (0, 1), mount.said()
    assert job.dataset(2) is None and "step.2 cannot become a checkpoint" in mount.said()
    assert steps_in(job.mount(SCR_FLUSH="0"))[0] == 1


def test_names_may_change_on_the_way(job):
    mount = job.mount(pattern=r"(tmp|step)\.(?<step>\d+)/part\.\d+$")
    for step in (1, 2):
        (mount.path / f"tmp.{step}").mkdir()
        for part in range(PARTS):
            (mount.path / f"tmp.{step}/part.{part}").write_bytes(content(step, part))
        os.rename(mount.path / f"tmp.{step}", mount.path / f"step.{step}")
        expect_step(mount, step)
    for part in range(PARTS):  # a pattern does not match these names
        write_part(mount, 3, part) if part else (mount.path / "other").write_bytes(content(3, 0))
    os.rename(mount.path / "other", mount.path / "step.3/part.0")
    expect_step(mount, 3)
    assert "step.3/part.0" in job.cached()
    os.rename(mount.path / "step.3/part.0", mount.path / "out")
    assert (mount.path / "out").read_bytes() == (job.backing / "out").read_bytes() == content(3, 0)
    os.rename(mount.path / "out", mount.path / "step.3/part.0")
    assert mount.unmount() == 0, mount.said()
    job.lose_caches()
    again = job.mount()
    expect_step(again, 3)


def test_links_lead_out_of_the_cache(job):
    mount = job.mount()
    job.write(mount, 1, 1)
    part = mount.path / "step.1/part.0"
    os.link(part, mount.path / "second")
    assert (job.backing / "second").samefile(job.backing / "step.1/part.0")
    assert (mount.path / "second").read_bytes() == part.read_bytes() == content(1, 0)
    os.symlink("step.1/part.1", mount.path / "symbolic")
    assert (mount.path / "symbolic").read_bytes() == content(1, 1)
    for make in (os.mkdir, lambda path: os.symlink("x", path), lambda path: os.link(mount.path / "second", path)):
        with pytest.raises(FileExistsError):
            make(mount.path / "step.1/part.1")
    with pytest.raises(OSError):
        os.rmdir(mount.path / "step.1")


def test_processes_of_a_node_write_a_step_together(job):
    mount = job.mount(pattern=r"step\.(?<step>\d+)/p\d+\.part\.\d+$")
    for step in (1, 2, 3):
        (mount.path / f"step.{step}").mkdir()
        script = 'i=0; while [ $i -lt 3 ]; do dd if=/dev/zero of="$0/p$1.part.$i" bs=4k count=5 status=none; i=$((i+1)); done'
        processes = [subprocess.Popen(["sh", "-c", script, mount.path / f"step.{step}", str(number)]) for number in range(4)]
        assert [process.wait() for process in processes] == [0] * 4
    assert mount.unmount() == 0, mount.said()
    job.lose_caches()
    again = job.mount(pattern=r"step\.(?<step>\d+)/p\d+\.part\.\d+$")
    assert steps_in(again) == [3]
    assert len(list((again.path / "step.3").iterdir())) == 12


CANNOT = "cannot become a checkpoint"
# The pattern, the names in their order, the steps that are lost, and what the newest one has.
REPEATED = {
    "one name": (r"restart$", ["restart"] * 5, 1, {"restart": 4}),
    "two names in turn": (r"restart\.(?<step>[ab])$", ["restart.a", "restart.b"] * 3, 0, {"restart.b": 5}),
    "two names of one step": (r"restart\.[ab]$", ["restart.a", "restart.b"] * 3, 1, {"restart.a": 4, "restart.b": 5}),
}


def numbered(number: int) -> bytes:
    return bytes([number]) * 50000


@pytest.mark.parametrize("way", REPEATED)
def test_names_that_come_again_are_steps_each_time(job, way):
    pattern, names, lost, newest = REPEATED[way]
    mount = job.mount(pattern=pattern, SCR_FLUSH="0")
    for number, name in enumerate(names):
        (mount.path / name).write_bytes(numbered(number))
        assert (mount.path / name).read_bytes() == numbered(number)
        time.sleep(0.6)
    assert mount.said().count(CANNOT) == lost, mount.said()
    mount.die()
    again = job.mount(pattern=pattern, SCR_FLUSH="0")
    found = {path.name: path.read_bytes() for path in again.path.glob("restart*") if path.stat().st_size > 0}
    assert found == {name: numbered(number) for name, number in newest.items()}, again.said()


@pytest.mark.parametrize("pattern", [r"restart$", r"restart(\.new)?$"])
def test_names_that_come_again_by_a_rename_are_steps_each_time(job, pattern):
    mount = job.mount(pattern=pattern, SCR_FLUSH="0")
    for number in range(5):
        (mount.path / "restart.new").write_bytes(numbered(number))
        os.rename(mount.path / "restart.new", mount.path / "restart")
        time.sleep(0.6)
    assert mount.said().count(CANNOT) <= 1, mount.said()
    mount.die()
    assert (job.mount(pattern=pattern, SCR_FLUSH="0").path / "restart").read_bytes() == numbered(4)


def test_of_a_program_that_overwrites_too_fast_the_last_step_is_a_checkpoint(job):
    mount = job.mount(pattern=r"restart$")
    for number in range(60):
        (mount.path / "restart").write_bytes(numbered(number))
    assert mount.unmount() == 0, mount.said()
    assert f"step.1 {CANNOT}" in mount.said() and mount.said().count(CANNOT) < 30, mount.said()
    job.lose_caches()
    assert (job.mount(pattern=r"restart$").path / "restart").read_bytes() == numbered(59)


def test_a_name_that_repeats_is_read_as_it_was_written_last(job):
    """Also if it was written over the file of a dataset, which no restart can take any more; as a step that was given up leaves it."""
    pattern = r"restart\.(?<step>[ab])$"
    mount = job.mount(pattern=pattern, SCR_FLUSH="2")
    for number, name in enumerate(["restart.a", "restart.b"], 1):
        (mount.path / name).write_bytes(numbered(number))
        time.sleep(0.6)
    wait_for(lambda: "step.2" in job.index() and (job.backing / "restart.b").exists())
    mount.die()
    job.lose_caches()
    (job.backing / "restart.b").write_bytes(numbered(4))
    for _ in range(2):
        again = job.mount(pattern=pattern, SCR_FLUSH="2")
        assert (again.path / "restart.b").read_bytes() == numbered(4), again.said()
        assert again.unmount() == 0, again.said()
    assert "failed" in job.index(), "the dataset that has lost the file"


def test_a_damaged_file_of_a_name_that_repeats_is_not_handed_out(job):
    mount = job.mount(pattern=r"restart$", SCR_FLUSH="1")
    for number in (1, 2):
        (mount.path / "restart").write_bytes(numbered(number))
        time.sleep(0.6)
    assert mount.unmount() == 0, mount.said()
    job.lose_caches()
    flip(job.backing / "restart")
    again = job.mount(pattern=r"restart$")
    for _ in range(2):
        with pytest.raises(OSError):
            (again.path / "restart").read_bytes()


def test_a_step_with_a_link_or_a_pipe_becomes_no_dataset(job):
    mount = job.mount(SCR_FLUSH="1")
    for step, make in ((1, os.mkdir), (2, lambda path: os.symlink("part.0", path)), (3, os.mkfifo), (4, os.mknod), (5, os.mkdir)):
        write_part(mount, step, 0)
        make(mount.path / f"step.{step}/part.7")
        time.sleep(0.3)
    assert mount.unmount() == 0, mount.said()
    index = job.index()
    assert [f"step.{step}" in index for step in range(1, 6)] == [True, False, False, False, True], (index, mount.said())


SEVERAL = "several processes write checkpoint files whose names repeat"


class Writer:
    """A process that writes files when the test says so."""

    PROGRAM = """
import pathlib, sys
for line in sys.stdin:
    name, number = line.split()
    pathlib.Path(name).write_bytes(bytes([int(number)]) * 50000)
    print("done", flush=True)
"""

    def __init__(self, mount: Mount) -> None:
        self.process = subprocess.Popen(["/usr/bin/python3", "-B", "-c", self.PROGRAM], cwd=mount.path, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def write(self, name: str, number: int) -> None:
        print(name, number, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"


def expect_newest_in_place(job: Job, mount: Mount, pattern: str, newest: Dict[str, bytes]) -> None:
    """Where the program meant them to be, now and after the next mount."""
    for name, expected in newest.items():
        assert (mount.path / name).read_bytes() == expected, name
        wait_for(lambda: (job.backing / name).exists() and (job.backing / name).read_bytes() == expected)
    assert mount.unmount() == 0, mount.said()
    assert mount.said().count(SEVERAL) == 1, mount.said()
    for caches_are_lost in (False, True):
        if caches_are_lost:
            job.lose_caches()
        again = job.mount(pattern=pattern)
        assert {path.name: path.read_bytes() for path in again.path.glob("restart*")} == newest, again.said()
        assert again.unmount() == 0, again.said()


@pytest.mark.parametrize("pattern, names", [(r"restart\.\d+$", ["restart.{}"]), (r"restart\.(?<step>[ab])\.\d+$", ["restart.a.{}", "restart.b.{}"])])
def test_names_that_several_processes_repeat_are_where_they_are_without_scr(job, pattern, names):
    job.settings = {"SCR_FLUSH": "1"}
    mount = job.mount(pattern=pattern)
    newest = {}
    with Writer(mount) as ahead, Writer(mount) as behind:
        for number in range(7):
            for writer, process, step in ((ahead, 1, number), (behind, 2, number - 1)):
                if step >= 0:
                    name = names[step % len(names)].format(process)
                    newest[name] = numbered(step)
                    writer.write(name, step)
            time.sleep(0.3)
    expect_newest_in_place(job, mount, pattern, newest)


@pytest.mark.parametrize("flush", ["0", "1"])
def test_a_process_that_repeats_names_late_leaves_no_checkpoint_that_hides_files(job, flush):
    job.settings = {"SCR_FLUSH": flush}
    mount = job.mount(pattern=r"restart\.\d+$")
    with Writer(mount) as ahead, Writer(mount) as behind:
        for number in range(5):
            ahead.write("restart.1", number)
            time.sleep(0.6)
        assert SEVERAL not in mount.said()
        behind.write("restart.2", 0)
        wait_for(lambda: SEVERAL in mount.said())
        for number in (5, 6):
            ahead.write("restart.1", number)
            behind.write("restart.2", number)
    expect_newest_in_place(job, mount, r"restart\.\d+$", {"restart.1": numbered(6), "restart.2": numbered(6)})


def test_a_script_that_copies_several_files_is_several_processes(job):
    mount = job.mount(pattern=r"restart\.\d+$", SCR_FLUSH="0")
    for number in range(3):
        (job.folder / "source").write_bytes(numbered(number))
        subprocess.run(["sh", "-c", 'cp "$0" restart.1; cp "$0" restart.2', job.folder / "source"], cwd=mount.path, check=True)
        time.sleep(0.3)
    expect_newest_in_place(job, mount, r"restart\.\d+$", {"restart.1": numbered(2), "restart.2": numbered(2)})


def test_a_program_that_is_started_again_on_the_mount_keeps_its_checkpoints(job):
    mount = job.mount(pattern=r"restart\.\d+$", SCR_FLUSH="0")
    for number in range(4):
        with Writer(mount) as writer:
            writer.write("restart.1", number)
            writer.write("restart.2", number)
        time.sleep(0.6)
    mount.die()
    again = job.mount(pattern=r"restart\.\d+$", SCR_FLUSH="0")
    assert {path.name: path.read_bytes() for path in again.path.glob("restart*")} == {f"restart.{part}": numbered(3) for part in (1, 2)}


def test_patterns_of_scr_count_where_no_other_is_given(job):
    with pytest.raises(RuntimeError, match="no pattern says"):
        job.mount(pattern="")
    (job.backing / ".scrconf").write_text("SCR_CHECKPOINT_PATTERN=0-N:step/[0-9]+\n")
    mount = job.mount(pattern="")
    (mount.path / "step").mkdir()
    (mount.path / "step/1").write_bytes(b"1")
    assert job.cached() == ["step/1"]


def test_in_the_background_the_process_ends_when_all_is_copied(job):
    path = job.workshop.new_folder("mount")
    subprocess.run([job.build / "src/crfs/crfs", "--scr", "--checkpoint", PATTERN, job.backing, path], check=True,
                   env={**os.environ, **job.environment("n0")})
    subprocess.run([job.build / "tests/crfs/steps", path, "1", "2"], check=True)
    subprocess.run(["fusermount3", "-u", path], check=True)
    wait_for(lambda: not job.is_in_use())
    assert "step.2" in job.index()
    assert steps_in(job.mount()) == [2]


def test_cairn_clean_removes_what_a_mount_has_left(job):
    def clean() -> str:
        words = [job.build / "src/tools/cairn", "clean", "--remove", "--of", job.backing, "--cache", job.caches / "n0"]
        return subprocess.run(words, cwd=job.folder, env={**os.environ, "SCR_USER_NAME": "me"}, check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    mount = job.mount()
    job.write(mount, 1, 2)
    assert clean().count("a run of the job is alive") == 2
    assert mount.unmount() == 0, mount.said()
    wait_for(lambda: not job.is_in_use())
    assert clean().count("removed") == 2 and not list((job.caches / "n0/me").glob("cairn*"))
    expect_step(job.mount(), 2)


def test_one_mount_of_a_directory_is_enough(job):
    job.mount()
    with pytest.raises(RuntimeError, match="another mount of"):
        job.mount()


@pytest.mark.parametrize("options, said", [
    (["--mode", "writeback"], "--mode writeback"), (["--discard"], "--discard"), (["-o", "allow_other"], "one user"),
    (["--nodes", "n1,n2"], "this node is n0"), (["--checkpoint", "("], "correct --checkpoint")])
def test_options_that_do_not_fit_are_named(job, options, said):
    with pytest.raises(RuntimeError, match=said):
        job.mount(*options)


def test_a_backing_directory_without_checkpoints_is_as_it_is_without_scr(job):
    (job.backing / "step.9").mkdir()
    (job.backing / "step.9/part.0").write_bytes(b"of another program")
    mount = job.mount()
    assert (mount.path / "step.9/part.0").read_bytes() == b"of another program"
    with (mount.path / "step.9/part.0").open("ab") as file:
        file.write(b", longer")
    assert (job.backing / "step.9/part.0").read_bytes() == b"of another program, longer"
    (mount.path / "step.9/part.0").write_bytes(b"new")
    assert job.cached() == ["step.9/part.0"] and (mount.path / "step.9/part.0").read_bytes() == b"new"
    os.rename(mount.path / "step.9/part.0", mount.path / "step.9/part.1")
    assert not (mount.path / "step.9/part.0").exists()
    assert mount.unmount() == 0, mount.said()


def test_what_is_written_after_a_rename_into_the_cache_is_there(job):
    mount = job.mount()
    (mount.path / "step.1").mkdir()
    (mount.path / "other").write_bytes(b"first")
    os.rename(mount.path / "other", mount.path / "step.1/part.0")
    with (mount.path / "step.1/part.0").open("ab") as file:
        file.write(b", second")
    assert (mount.path / "step.1/part.0").read_bytes() == b"first, second"
    assert mount.unmount() == 0, mount.said()
    assert (job.mount().path / "step.1/part.0").read_bytes() == b"first, second"


def mounts_of(job: Job, nodes: List[str], pattern: str = PATTERN) -> List[Mount]:
    """All at the same time, as they wait for each other."""
    paths = [job.workshop.new_folder(node) for node in nodes]
    with ThreadPoolExecutor(len(nodes)) as pool:
        futures = [pool.submit(job.mount, "--nodes", ",".join(nodes), node=node, path=path, pattern=pattern)
                   for node, path in zip(nodes, paths)]
        return [future.result() for future in futures]


def end_all(mounts: List[Mount]) -> None:
    for mount in mounts:
        mount.signal(signal.SIGTERM)
    assert [mount.wait() for mount in mounts] == [0] * len(mounts), [mount.said() for mount in mounts]


def test_nodes_protect_each_other(job):
    job.settings = {"SCR_COPY_TYPE": "XOR", "SCR_FLUSH": "0"}
    mounts = mounts_of(job, ["n0", "n1", "n2"])
    for step in (1, 2, 3):
        for part, mount in enumerate(mounts):
            (mount.path / f"step.{step}").mkdir(exist_ok=True)
            (mount.path / f"step.{step}/part.{part}").write_bytes(content(step, part))
    end_all(mounts)
    job.lose_caches("n1")
    mounts = mounts_of(job, ["n0", "spare", "n2"])
    for part, mount in enumerate(mounts):
        assert (mount.path / f"step.3/part.{part}").read_bytes() == content(3, part), mount.said()
    end_all(mounts)


def test_with_a_mount_for_each_process_names_may_repeat(job):
    job.settings = {"SCR_FLUSH": "0"}
    mounts = mounts_of(job, ["n0", "n1"], r"restart\.\d+$")
    with Writer(mounts[0]) as first, Writer(mounts[1]) as second:
        for number in range(4):
            first.write("restart.1", number)
            second.write("restart.2", number)
            time.sleep(0.6)
    end_all(mounts)
    assert not any(SEVERAL in mount.said() for mount in mounts)
    mounts = mounts_of(job, ["n0", "n1"], r"restart\.\d+$")
    for part, mount in enumerate(mounts, 1):
        assert (mount.path / f"restart.{part}").read_bytes() == numbered(3), mount.said()
    assert not any((job.backing / f"restart.{part}").exists() for part in (1, 2))
    end_all(mounts)


def test_a_node_that_dies_stops_no_program_of_the_others(job):
    job.settings = {"SCR_COPY_TYPE": "XOR", "SCR_FLUSH": "0"}
    mounts = mounts_of(job, ["n0", "n1", "n2"])
    for step in (1, 2):
        for part, mount in enumerate(mounts):
            write_part(mount, step, part)
    wait_for(lambda: job.dataset(1))
    mounts[1].die()
    wait_for(lambda: "no step becomes a checkpoint any more" in mounts[0].said())
    write_part(mounts[0], 3, 0)
    assert (job.backing / "step.3/part.0").read_bytes() == content(3, 0)
    for mount in (mounts[0], mounts[2]):
        mount.signal(signal.SIGTERM)
        mount.wait()
        assert mount.said().count("that are in no checkpoint stay there: the next run removes them") == 1, mount.said()
    job.lose_caches("n1")
    mounts = mounts_of(job, ["n0", "n3", "n2"])
    step = max(step for step in (1, 2) if (mounts[0].path / f"step.{step}/part.0").exists())
    for part, mount in enumerate(mounts):
        assert (mount.path / f"step.{step}/part.{part}").read_bytes() == content(step, part), mount.said()
    end_all(mounts)


@pytest.mark.parametrize("pattern", ["[abcd]$", "[ab]$"])
def test_random_programs_find_what_they_find_without_scr(job, pattern, seed, long):
    """While steps become datasets, and are withdrawn. Left out is what differs: hard links, and renames to names of other files, of a
    file that is open; and a file that is open to be read while another process writes it again."""
    mount = job.mount(pattern=pattern, SCR_FLUSH="0")
    memory = job.workshop.new_folder("memory")
    numbers: Iterator[int] = itertools.count()
    left_out = {"link"} if pattern == "[abcd]$" else {"link", "rename"}

    def differs(program):
        name = str(next(numbers))
        return difference(program, mount.path / name, memory / name)

    for number in range(500 if long else 15):
        program = [operation for operation in draw(seed * 100_000 + number)
                   if operation[0] not in left_out and not (operation[0] == "open" and operation[3] == os.O_RDONLY)]
        if first := differs(program):
            small = shrink(program, lambda tried: bool(differs(tried)))
            lines = "\n".join(f"    {operation}," for operation in small)
            pytest.fail(f"{first}\n{differs(small) or 'not every time'}\nprogram (mount first):\n{lines}")
    assert mount.unmount() == 0, mount.said()
