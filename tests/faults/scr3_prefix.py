"""A prefix directory as SCR 3 leaves it: its records beside files that are there (docs/format/scr3.md)."""

import struct
import zlib
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple


class Dataset(NamedTuple):
    number: int
    name: str
    files: List[List[str]]  # of each rank, relative to the prefix directory
    complete: bool = True


def packed(tree: Mapping[str, Any]) -> bytes:
    """A value that is no tree is a key with nothing below it."""
    content = struct.pack(">I", len(tree))
    for key, below in tree.items():
        content += key.encode() + b"\0" + packed(below if isinstance(below, dict) else {str(below): {}})
    return content


def file_of(tree: Mapping[str, Any]) -> bytes:
    body = packed(tree)
    checked = struct.pack(">IHHQI", 0x951FC3F5, 1, 1, 20 + len(body) + 4, 1) + body
    return checked + struct.pack(">I", zlib.crc32(checked))


def write(prefix: Path, datasets: List[Dataset], current: str) -> None:
    """`.scr` for files that are there already."""
    index: Dict[str, Any] = {}
    for dataset in datasets:
        sizes = [(prefix / name).stat().st_size for names in dataset.files for name in names]
        facts = {"ID": dataset.number, "NAME": dataset.name, "FLAG_CKPT": 1, "FLAG_OUTPUT": 0,
                 "CREATED": 1_600_000_000_000_000 + dataset.number, "USER": "ann", "JOBID": "77",
                 "CKPT": dataset.number, "FILES": len(sizes), "SIZE": sum(sizes), "COMPLETE": 1}
        index[str(dataset.number)] = {"DSET": facts, "COMPLETE": int(dataset.complete),
                                      "FLUSHED": "2026-11-21T10:00:00"}
        folder = prefix / ".scr" / f"scr.dataset.{dataset.number}"
        folder.mkdir(parents=True)
        (folder / "summary.scr").write_bytes(
            file_of({"VERSION": 6, "COMPLETE": int(dataset.complete), "DSET": facts}))
        write_files(folder, dataset.files)
    (prefix / ".scr" / "index.scr").write_bytes(file_of({
        "VERSION": 2, "CURRENT": current, "NAME": {one.name: {"DSET": one.number} for one in datasets},
        "DSET": index}))


def write_files(folder: Path, files: List[List[str]], ranks_in_leaf: int = 3) -> None:
    """A tree over leaves of a few ranks each."""
    leaves = {}
    for first in range(0, len(files), ranks_in_leaf):
        ranks = {str(first + i): {"FILE": {name: {} for name in names}}
                 for i, names in enumerate(files[first:first + ranks_in_leaf])}
        (folder / f"rank2file.0.{first}").write_bytes(
            file_of({"LEVEL": 0, "RANKS": len(files), "RANK": ranks}))
        leaves[str(first)] = {"OFFSET": 0, "FILE": f".0.{first}"}
    (folder / "rank2file").write_bytes(file_of({"LEVEL": 1, "RANKS": len(files), "RANK": leaves}))
