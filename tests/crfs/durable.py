"""Programs that know what must survive: each writes in its own way, and tells of a step when it is safe.

    python3 durable.py KIND FOLDER SEED STEPS

prints "OPEN", then a line "NANOSECONDS STEPS" (CLOCK_MONOTONIC) after each time that so many steps are safe. What a
step writes follows from the seed, so that what is found later can be checked without having seen it written.
"""

import os
import random
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional

View = Callable[[str], Optional[bytes]]  # what a file holds; None if it is not there
Safe = Callable[[int], None]

PAGE = 4096
SECTOR = 512
PAGES = 40


def write(fd: int, data: bytes, chance: random.Random) -> None:
    """In pieces of many sizes, as programs do."""
    at = 0
    while at < len(data):
        at += os.write(fd, data[at:at + chance.choice([17, 600, 4096, 9000, 50_000])])


class Journal:
    """Appends records; every few are fsynced."""

    synced = True

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"journal{seed}"

    def records(self, steps: int) -> Iterator[bytes]:
        chance = random.Random(self.seed)
        return (chance.randbytes(chance.choice([30, 700, 5000, 40_000])) for _ in range(steps))

    def run(self, folder: Path, steps: int, safe: Safe) -> None:
        chance = random.Random(self.seed)
        fd = os.open(folder / self.name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for step, record in enumerate(self.records(steps), 1):
            write(fd, record, chance)
            if step % 3 == 0:
                os.fsync(fd)
                safe(step)
        os.close(fd)

    def wrong(self, view: View, safe: int) -> Optional[str]:
        expected, found = b"".join(self.records(safe)), view(self.name) or b""
        if found[:len(expected)] == expected:
            return None
        return f"{self.name}: of {len(expected)} bytes that were fsynced only {common(found, expected)} are right"


class Replaced:
    """Writes a new file, fsyncs it, and renames it over the one there is."""

    synced = True

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"{type(self).__name__.lower()}{seed}"

    def version(self, number: int) -> bytes:
        chance = random.Random(self.seed * 10_000 + number)
        return (b"%08d" % number) + chance.randbytes(chance.choice([100, 5000, 70_000, 300_000]))

    def run(self, folder: Path, steps: int, safe: Safe) -> None:
        chance = random.Random(self.seed)
        for step in range(1, steps + 1):
            new = folder / f"{self.name}.new"
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            write(fd, self.version(step), chance)
            self.publish(fd, new, folder / self.name)
            safe(step)

    def publish(self, fd: int, new: Path, name: Path) -> None:
        os.fsync(fd)
        os.close(fd)
        os.rename(new, name)

    def wrong(self, view: View, safe: int) -> Optional[str]:
        found = view(self.name)
        if found is None:
            return f"{self.name} is not there after {safe} versions" if safe else None
        number = int(found[:8]) if found[:8].isdigit() else 0
        if number < max(safe, 1):
            return f"{self.name}: version {number} of {len(found)} bytes, not {safe}"
        expected = self.version(number)
        if found == expected:
            return None
        return f"{self.name}: {common(found, expected)} bytes of version {number} are right, not {len(expected)}"


class Closed(Replaced):
    """The same without fsync: rename waits for what was written."""

    synced = False

    def publish(self, fd: int, new: Path, name: Path) -> None:
        os.close(fd)
        os.rename(new, name)


class Renamed(Replaced):
    """The same, and the file is still open when it is renamed."""

    synced = False

    def publish(self, fd: int, new: Path, name: Path) -> None:
        os.rename(new, name)
        os.close(fd)


class Pages:
    """Writes pages of one file again and again, as databases do."""

    synced = True

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"pages{seed}"

    def page_of(self, step: int) -> int:
        return random.Random(self.seed * 10_000 + step).randrange(PAGES)

    def run(self, folder: Path, steps: int, safe: Safe) -> None:
        fd = os.open(folder / self.name, os.O_RDWR | os.O_CREAT, 0o644)
        for step in range(1, steps + 1):
            os.pwrite(fd, (b"%08d" % step) * (PAGE // 8), self.page_of(step) * PAGE)
            if step % 7 == 0:
                os.fdatasync(fd)
                safe(step)
        os.close(fd)

    def wrong(self, view: View, safe: int) -> Optional[str]:
        found = view(self.name) or b""
        least: Dict[int, int] = {self.page_of(step): step for step in range(1, safe + 1)}
        for page, step in least.items():
            for at in range(page * PAGE, (page + 1) * PAGE, SECTOR):
                sector = found[at:at + SECTOR]
                if len(set(sector[i:i + 8] for i in range(0, len(sector), 8))) != 1 or int(sector[:8] or b"0") < step:
                    return f"{self.name}: page {page} should be of step {step}, has {sector[:16]!r} at {at}"
        return None


KINDS = {"journal": Journal, "replaced": Replaced, "closed": Closed, "renamed": Renamed, "pages": Pages}


def common(one: bytes, other: bytes) -> int:
    """The length of what both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def main(kind: str, folder: str, seed: str, steps: str) -> None:
    print("OPEN", flush=True)
    try:
        KINDS[kind](int(seed)).run(Path(folder), int(steps),
                                   lambda step: print(time.monotonic_ns(), step, flush=True))
    except OSError as error:
        sys.exit(f"{kind}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
