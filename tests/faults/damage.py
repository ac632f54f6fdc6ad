"""What can happen to a file."""

import os
import shutil
from pathlib import Path

POSITIONS = {"first": 0.0, "middle": 0.5, "last": 1.0}


def flip_byte(path: Path, position: float = 0.5) -> None:
    """Inverts one byte, at a fraction of the file's length, leaving the times as they were."""
    before = path.stat()
    offset = int((before.st_size - 1) * position)
    with path.open("r+b") as file:
        file.seek(offset)
        [byte] = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 0xFF]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path: Path) -> None:
    """Cuts the second half off."""
    os.truncate(path, path.stat().st_size // 2)


def delete(path: Path) -> None:
    """Removes the file."""
    path.unlink()


def replace_by_folder(path: Path) -> None:
    """Puts a folder with something in it where the file was."""
    path.unlink()
    path.mkdir()
    (path / "stray").write_text("not yours")


def delete_folder(path: Path) -> None:
    """Removes a folder and all that is in it."""
    shutil.rmtree(path)
