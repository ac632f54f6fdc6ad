"""The disk as it is after each operation of a log of slowfs: what a crash at that moment would leave.

Names are as the operations made them, in order. A file is, in the `all` view, what was written; in the `synced` view
only what it was when it was last synced: whatever was not is lost.
"""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Set, Tuple

REGULAR, KIND = 0o100000, 0o170000
PUNCH_HOLE, ZERO_RANGE = 2, 16


class Disk:
    def __init__(self, log: Path) -> None:
        self._entries = [json.loads(line) for line in log.read_text().splitlines()]
        self._data = Path(f"{log}.data").read_bytes()
        self._names: Dict[Tuple[int, str], int] = {}
        self._now: Dict[int, bytearray] = {}
        self._durable: Dict[int, bytes] = {}

    def crashes(self) -> Iterator[Tuple[int, Set[str]]]:
        """Before each operation, and after the last: until when (CLOCK_MONOTONIC, ns) the disk is like this, and the
        files that the operation before has changed."""
        changed: Set[str] = set()
        for entry in self._entries:
            yield entry["t_ns"], changed
            changed = self._apply(entry)
        yield 1 << 62, changed

    def all(self, name: str) -> Optional[bytes]:
        inode = self._inode(name)
        return None if inode is None else bytes(self._now[inode])

    def synced(self, name: str) -> Optional[bytes]:
        inode = self._inode(name)
        return None if inode is None else self._durable[inode]

    def _inode(self, name: str) -> Optional[int]:
        return next((inode for (_, other), inode in self._names.items() if other == name), None)

    def _apply(self, entry: Dict[str, Any]) -> Set[str]:
        inode = entry.get("ino")
        if entry["op"] in ("create", "link", "rename", "unlink", "rmdir"):
            self._change_names(entry)
            return {entry["name"], entry.get("new_name", "")}
        if inode in self._now:
            self._change_file(self._now[inode], entry)
        return {name for (_, name), other in self._names.items() if other == inode}

    def _change_names(self, entry: Dict[str, Any]) -> None:
        place = entry["parent"], entry["name"]
        if entry["op"] in ("unlink", "rmdir"):
            del self._names[place]
        elif entry["op"] == "rename":
            target = entry["new_parent"], entry["new_name"]
            moved, other = self._names.pop(place), self._names.get(target)
            self._names[target] = moved
            if entry["exchange"]:
                self._names[place] = other
        else:
            fresh = entry["op"] == "create" and self._names.get(place) != entry["ino"]
            self._names[place] = entry["ino"]
            if fresh and entry["mode"] & KIND == REGULAR:
                self._now[entry["ino"]], self._durable[entry["ino"]] = bytearray(), b""

    def _change_file(self, file: bytearray, entry: Dict[str, Any]) -> None:
        if entry["op"] == "write":
            start, count = entry["offset"], entry["bytes"]
            file.extend(bytes(max(0, start + count - len(file))))
            file[start:start + count] = self._data[entry["data"]:entry["data"] + count]
        elif entry["op"] == "truncate":
            del file[entry["size"]:]
            file.extend(bytes(entry["size"] - len(file)))
        elif entry["op"] == "fsync":
            self._durable[entry["ino"]] = bytes(file)
        elif entry["op"] == "fallocate":
            end = entry["offset"] + entry["bytes"]
            if entry["mode"] & (PUNCH_HOLE | ZERO_RANGE):
                file[entry["offset"]:end] = bytes(len(file[entry["offset"]:end]))
            if entry["mode"] & 1 == 0:
                file.extend(bytes(max(0, end - len(file))))
