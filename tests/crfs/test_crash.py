"""What was promised is there after a crash at any moment: of the machine, by the log; of the daemon, by killing it."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

import durable
from replay import Disk

PROGRAM = Path(durable.__file__).resolve()
SHAPES = {
    "default": (),
    "tight": ("--pool", "128K", "--chunk", "64K", "--write", "128K", "--threads", "2"),
}
Promises = List[Tuple[int, int]]  # when (CLOCK_MONOTONIC, ns), how many steps


class Programs:
    """One of each kind, on one folder."""

    def __init__(self, folder: Path, mode: str, seed: int, steps: int) -> None:
        self.kinds = {name: kind(seed) for name, kind in durable.KINDS.items()}
        if mode == "writeback":
            del self.kinds["renamed"]  # what was not closed nor synced is in the kernel's cache
        self._running = {
            # In the folder, not by its name: that is another folder's once the mount has been taken away.
            name: subprocess.Popen([sys.executable, str(PROGRAM), name, ".", str(seed), str(steps)],
                                   cwd=folder, stdout=subprocess.PIPE, text=True)
            for name in self.kinds}
        for process in self._running.values():
            assert process.stdout.readline() == "OPEN\n"

    def wait(self) -> Dict[str, Promises]:
        promises = {}
        for name, process in self._running.items():
            output = process.stdout.read()
            process.wait()
            # Who is killed may have told half a line.
            lines = [line.split() for line in output[:output.rfind("\n") + 1].splitlines()]
            promises[name] = [(int(when), int(steps)) for when, steps in lines]
        return promises

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()


def broken_promises(disk: Disk, programs: Programs, promises: Dict[str, Promises]) -> Tuple[int, List[str]]:
    """How many crashes were tried, and what each found wrong first."""
    told, waiting = dict.fromkeys(programs.kinds, 0), {name: list(of) for name, of in promises.items()}
    wrong: List[str] = []
    tried = 0
    for until_ns, changed in disk.crashes():
        for name, kind in programs.kinds.items():
            before = told[name]
            while waiting[name] and waiting[name][0][0] < until_ns:
                told[name] = waiting[name].pop(0)[1]
            if kind.name not in changed and told[name] == before:
                continue
            tried += 1
            for view in (disk.all, disk.synced) if kind.synced else (disk.all,):
                found = kind.wrong(view, told[name])
                if found:
                    wrong.append(f"{view.__name__}: {found}")
    return tried, wrong


@pytest.mark.parametrize("shape", SHAPES)
def test_a_crash_at_any_operation_leaves_what_was_promised(workshop, mode, shape, seed, long):
    log = workshop.folder / "operations"
    slow = workshop.slowfs("--log", str(log))
    mount = workshop.crfs("--mode", mode, *SHAPES[shape], backing=slow.path)
    programs = Programs(mount.path, mode, seed, 300 if long else 50)
    promises = programs.wait()
    assert mount.unmount() == 0 and slow.unmount() == 0
    assert all(promises.values()), "a program did nothing"
    tried, wrong = broken_promises(Disk(log), programs, promises)
    assert tried > 120
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:10])


def test_the_log_tells_what_the_disk_holds(workshop):
    """Replayed to its end it gives the folder, or the test above would look at something else."""
    log = workshop.folder / "operations"
    slow = workshop.slowfs("--log", str(log))
    programs = Programs(slow.path, "direct", 1, 20)
    promises = programs.wait()
    assert slow.unmount() == 0
    disk = Disk(log)
    for _ in disk.crashes():
        pass
    assert {path.name: disk.all(path.name) for path in slow.backing.iterdir()} == {
        path.name: path.read_bytes() for path in slow.backing.iterdir()}
    # And without its fsyncs the promises are broken.
    text = [line for line in log.read_text().splitlines() if '"op":"fsync"' not in line]
    log.write_text("\n".join(text))
    _, wrong = broken_promises(Disk(log), programs, promises)
    assert all(any(f"{name}1" in line for line in wrong) for name in ("journal", "replaced", "pages"))


def test_a_killed_daemon_loses_nothing_that_was_fsynced(workshop, mode, seed, long):
    for number in range(20 if long else 1):
        chance = random.Random(seed * 1000 + number)
        backing = workshop.new_folder("killed")
        mount = workshop.crfs("--mode", mode, "--pool", "2M", "--chunk", "128K", backing=backing)
        programs = Programs(mount.path, mode, seed + number, 100_000)
        time.sleep(chance.uniform(0.05, 0.6))
        mount.die()
        promises = programs.wait()
        assert any(promises.values())
        safe = {name: told[-1][1] if told else 0 for name, told in promises.items()}
        again = workshop.crfs("--mode", mode, backing=backing)
        for folder in (backing, again.path):
            def view(name: str) -> bytes:
                path = folder / name
                return path.read_bytes() if path.exists() else None
            # What was renamed without fsync was written before: the kernel of the backing folder lives on.
            wrong = [programs.kinds[name].wrong(view, steps) for name, steps in safe.items()]
            assert not any(wrong), wrong
        (again.path / "more").write_bytes(b"more" * 1000)
        assert again.unmount() == 0
        assert (backing / "more").read_bytes() == b"more" * 1000
