"""Random programs give the same on the mount as in memory: bytes, sizes, errors."""

import itertools
from pathlib import Path

import pytest

from model import Program, difference, draw, shrink

SHAPES = {
    "default": (),
    "tight": ("--pool", "128K", "--chunk", "64K", "--write", "64K", "--threads", "1"),
}
PROGRAMS = {False: 30, True: 1000}  # a seed's, without and with --long


@pytest.mark.parametrize("shape", SHAPES)
def test_the_mount_is_as_a_folder_in_memory(workshop, mode, shape, seed, long):
    mount = workshop.crfs("--mode", mode, *SHAPES[shape])
    memory = workshop.new_folder("memory")
    numbers = itertools.count()

    def differs(program: Program) -> str:
        name = str(next(numbers))
        found = difference(program, mount.path / name, memory / name)
        if found is None:
            found = below(mount.backing / name, memory / name)
        return found

    def below(backing: Path, expected: Path) -> str:
        """All is closed, so all is in the backing folder."""
        wrong = [path.name for path in expected.iterdir() if (backing / path.name).read_bytes() != path.read_bytes()]
        return f"closed, but not in the backing folder: {wrong}" if wrong else ""

    for number in range(PROGRAMS[long]):
        program = draw(seed * 100_000 + number)
        if differs(program):
            small = shrink(program, lambda tried: bool(differs(tried)))
            lines = "\n".join(f"    {operation}," for operation in small)
            pytest.fail(f"{differs(small) or 'not every time: ' + differs(program)}\nprogram (mount first):\n{lines}")


def test_a_planted_difference_is_found_and_made_small(tmp_path, monkeypatch):
    """The test can fail: a file system on which a write past 64 KiB loses its last byte."""
    from model import Runner

    class Broken(Runner):
        def pwrite(self, slot: int, offset: int, length: int, fill: int) -> int:
            count = super().pwrite(slot, offset, length, fill)
            if offset + length > 65536 and self.folder.parent.name == "broken":
                super().pwrite(slot, offset + length - 1, 1, fill + 1)
            return count

    monkeypatch.setattr("model.Runner", Broken)
    for folder in ("broken", "right"):
        (tmp_path / folder).mkdir()
    numbers = itertools.count()

    def fails(program: Program) -> bool:
        name = str(next(numbers))
        return difference(program, tmp_path / "broken" / name, tmp_path / "right" / name) is not None

    failing = next(program for program in map(draw, range(50)) if fails(program))
    small = shrink(failing, fails)
    assert fails(small) and len(small) <= 3, small
