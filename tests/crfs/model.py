"""Random programs of file operations, run on two folders that must answer the same; and made small when they do not.

A program is a list of operations on a few names and a few slots for open files. An operation on an empty slot
does nothing, so that each part of a program is a program too: it can be shrunk by leaving things out.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

Operation = Tuple[Any, ...]
Program = List[Operation]

NAMES = ("a", "b", "c", "d")
SLOTS = 5
# Chunks end at such places, and pages.
EDGES = [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 200000]
LARGEST = 300_000
# Sets a time that no write of this test can have by itself.
LONG_AGO_S = 1_000_000_000
FLAGS = [os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_TRUNC,
         os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_RDWR | os.O_CREAT | os.O_APPEND, os.O_RDONLY,
         os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR | os.O_CREAT | os.O_SYNC]
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO = 1, 2, 8, 16
C = ctypes.CDLL(None, use_errno=True)


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    if C.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def content(length: int, fill: int) -> bytes:
    return bytes((fill * 37 + i * 11 + (i >> 8)) & 0xFF for i in range(min(length, 509))) * (length // 509 + 1)


class Runner:
    """Runs a program in a folder. Each operation answers a value that two folders can be compared by."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slots: List[Optional[int]] = [None] * SLOTS

    def run(self, operation: Operation) -> Any:
        name, *arguments = operation
        try:
            return getattr(self, name)(*arguments)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0)

    def end(self) -> Any:
        """Everything closed; what all names show."""
        for fd in filter(lambda fd: fd is not None, self.slots):
            os.close(fd)
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def _fd(self, slot: int) -> int:
        fd = self.slots[slot]
        if fd is None:
            raise OSError(errno.EBADF, "empty slot")
        return fd

    def _put(self, slot: int, fd: int) -> None:
        if self.slots[slot] is not None:
            os.close(self.slots[slot])
        self.slots[slot] = fd

    def open(self, slot: int, name: str, flags: int) -> None:
        self._put(slot, os.open(self.folder / name, flags, 0o644))

    def close(self, slot: int) -> None:
        fd, self.slots[slot] = self._fd(slot), None
        os.close(fd)

    def dup(self, slot: int, other: int) -> None:
        self._put(other, os.dup(self._fd(slot)))

    def pwrite(self, slot: int, offset: int, length: int, fill: int) -> int:
        return os.pwrite(self._fd(slot), content(length, fill)[:length], offset)

    def write(self, slot: int, length: int, fill: int) -> int:
        return os.write(self._fd(slot), content(length, fill)[:length])

    def small_writes(self, slot: int, count: int, length: int, fill: int) -> List[int]:
        return [os.write(self._fd(slot), content(length, fill + i)[:length]) for i in range(count)]

    def pread(self, slot: int, offset: int, length: int) -> bytes:
        return os.pread(self._fd(slot), length, offset)

    def read(self, slot: int, length: int) -> bytes:
        return os.read(self._fd(slot), length)

    def seek(self, slot: int, offset: int, whence: int) -> int:
        return os.lseek(self._fd(slot), offset, whence)

    def ftruncate(self, slot: int, length: int) -> None:
        os.ftruncate(self._fd(slot), length)

    def truncate(self, name: str, length: int) -> None:
        # Whether the same size is a change is told in two ways by POSIX.
        if os.stat(self.folder / name).st_size != length:
            os.truncate(self.folder / name, length)

    def fallocate(self, slot: int, mode: int, offset: int, length: int) -> None:
        fallocate(self._fd(slot), mode, offset, length)

    def copy(self, slot: int, other: int, offset: int, to: int, length: int) -> int:
        return os.copy_file_range(self._fd(slot), self._fd(other), length, offset, to)

    def appends(self, slot: int, on: bool) -> None:
        flags = fcntl.fcntl(self._fd(slot), fcntl.F_GETFL)
        fcntl.fcntl(self._fd(slot), fcntl.F_SETFL, flags | os.O_APPEND if on else flags & ~os.O_APPEND)

    def read_ahead(self, slot: int) -> None:
        os.posix_fadvise(self._fd(slot), 0, 0, os.POSIX_FADV_WILLNEED)

    def special_bits(self, name: str, on: bool) -> None:
        os.chmod(self.folder / name, 0o4755 if on else 0o644)

    def fsync(self, slot: int) -> None:
        os.fsync(self._fd(slot))

    def fdatasync(self, slot: int) -> None:
        os.fdatasync(self._fd(slot))

    def map_write(self, slot: int, offset: int, length: int, fill: int, sync: bool) -> int:
        size = os.fstat(self._fd(slot)).st_size
        length = min(length, size - offset)
        if length <= 0:
            return 0
        with mmap.mmap(self._fd(slot), size) as mapped:
            mapped[offset:offset + length] = content(length, fill)[:length]
            if sync:
                mapped.flush()
        return length

    def map_read(self, slot: int) -> bytes:
        size = os.fstat(self._fd(slot)).st_size
        if size == 0:
            return b""
        with mmap.mmap(self._fd(slot), size, prot=mmap.PROT_READ) as mapped:
            return bytes(mapped)

    def rename(self, name: str, other: str) -> None:
        os.rename(self.folder / name, self.folder / other)

    def link(self, name: str, other: str) -> None:
        os.link(self.folder / name, self.folder / other)

    def unlink(self, name: str) -> None:
        os.unlink(self.folder / name)

    def age(self, name: str) -> None:
        os.utime(self.folder / name, (LONG_AGO_S, LONG_AGO_S))

    def stat(self, name: str) -> Tuple[int, int, bool]:
        return self._seen(os.stat(self.folder / name))

    def fstat(self, slot: int) -> Tuple[int, int, bool]:
        return self._seen(os.fstat(self._fd(slot)))

    def whole(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    @staticmethod
    def _seen(found: os.stat_result) -> Tuple[int, int, bool]:
        return found.st_size, found.st_nlink, found.st_mtime == LONG_AGO_S


def _offset(chance: random.Random) -> int:
    return chance.choice(EDGES) if chance.random() < 0.5 else chance.randrange(LARGEST)


def _length(chance: random.Random) -> int:
    return chance.choice([1, 13, 64, 4096, 5000, 65536]) if chance.random() < 0.7 else chance.randrange(1, 140_000)


def draw(seed: int, length: int = 150) -> Program:
    """The program of a seed."""
    chance = random.Random(seed)
    slot, name = lambda: chance.randrange(SLOTS), lambda: chance.choice(NAMES)
    offset, size, fill = lambda: _offset(chance), lambda: _length(chance), lambda: chance.randrange(256)
    makers: List[Tuple[int, Callable[[], Operation]]] = [
        (12, lambda: ("open", slot(), name(), chance.choice(FLAGS))),
        (3, lambda: ("close", slot())),
        (3, lambda: ("dup", slot(), slot())),
        (16, lambda: ("pwrite", slot(), offset(), size(), fill())),
        (12, lambda: ("write", slot(), size(), fill())),
        (8, lambda: ("small_writes", slot(), chance.randrange(2, 40), chance.choice([1, 40, 700, 4096]), fill())),
        (8, lambda: ("pread", slot(), offset(), size())),
        (4, lambda: ("read", slot(), size())),
        (4, lambda: ("seek", slot(), offset(), chance.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))),
        (5, lambda: ("ftruncate", slot(), offset())),
        (3, lambda: ("truncate", name(), offset())),
        (4, lambda: ("fallocate", slot(), chance.choice([0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE]), offset(), size())),
        (3, lambda: ("copy", slot(), slot(), offset(), offset(), size())),
        (2, lambda: ("appends", slot(), chance.random() < 0.5)),
        (2, lambda: ("read_ahead", slot())),
        (1, lambda: ("special_bits", name(), chance.random() < 0.5)),
        (3, lambda: ("fsync", slot())),
        (2, lambda: ("fdatasync", slot())),
        (5, lambda: ("map_write", slot(), offset(), size(), fill(), chance.random() < 0.5)),
        (3, lambda: ("map_read", slot())),
        (5, lambda: ("rename", name(), name())),
        (4, lambda: ("link", name(), name())),
        (4, lambda: ("unlink", name())),
        (2, lambda: ("age", name())),
        (6, lambda: ("stat", name())),
        (4, lambda: ("fstat", slot())),
        (6, lambda: ("whole", name())),
    ]
    weights = [weight for weight, _ in makers]
    return [("open", i, NAMES[i % 2], os.O_RDWR | os.O_CREAT) for i in range(3)] + [
        chance.choices(makers, weights)[0][1]() for _ in range(length)]


def difference(program: Program, one: Path, other: Path) -> Optional[str]:
    """Runs a program in two new folders; where they differ first, None if nowhere."""
    runners = []
    for folder in (one, other):
        folder.mkdir()
        runners.append(Runner(folder))
    for at, operation in enumerate(program):
        answers = [runner.run(operation) for runner in runners]
        if answers[0] != answers[1]:
            for runner in runners:
                with suppress(OSError):
                    runner.end()
            return f"operation {at}, {operation}: {_short(answers)}"
    ends: List[Dict[str, bytes]] = [runner.end() for runner in runners]
    if ends[0] == ends[1]:
        return None
    return "at the end: " + "; ".join(f"{name}: {_short([end.get(name) for end in ends])}"
                                      for name in sorted({*ends[0], *ends[1]}) if ends[0].get(name) != ends[1].get(name))


def _short(answers: List[Any]) -> str:
    one, other = answers
    if isinstance(one, bytes) and isinstance(other, bytes):
        first = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
        return (f"{len(one)} and {len(other)} bytes, the first difference at {first}: "
                f"{one[first:first + 8].hex()} and {other[first:first + 8].hex()}")
    return f"{one!r} and {other!r}"


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 400) -> Program:
    """The smallest program found that still fails: parts left out, ever smaller ones, then numbers made smaller."""
    size = len(program) // 2
    while size > 0 and tries > 0:
        at = 0
        while at < len(program) and tries > 0:
            shorter = program[:at] + program[at + size:]
            tries -= 1
            if fails(shorter):
                program = shorter
            else:
                at += size
        size //= 2
    for at, operation in enumerate(program):
        for place, value in enumerate(operation):
            if not isinstance(value, int) or isinstance(value, bool) or operation[0] == "open" or place < 2:
                continue
            for smaller in (0, 1, 4096, value // 2):
                simpler = (*operation[:place], smaller, *operation[place + 1:])
                if smaller >= value or tries <= 0:
                    continue
                tries -= 1
                if fails([*program[:at], simpler, *program[at + 1:]]):
                    operation = simpler
                    program = [*program[:at], simpler, *program[at + 1:]]
                    break
    return program
