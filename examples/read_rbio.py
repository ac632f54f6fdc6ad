#!/usr/bin/env python3
"""Reads a field of an rbIO step with NumPy, by the format alone (docs/format/rbio-part.md).

    python3 read_rbio.py STEP_DIRECTORY FIELD OUTPUT.npy

It compares no checksum; "cairn rbio verify" does.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np


def read_field(step_directory: str, name: str) -> np.ndarray:
    """The elements of all ranks, in rank order."""
    pieces, part, parts = {}, 0, 1
    while part < parts:
        data = np.memmap(f"{step_directory}/part.{part}.rbio", np.uint8, "r")
        header = json.loads(bytes(data[32:32 + struct.unpack_from("<Q", data, 12)[0]]))
        index = [field["name"] for field in header["fields"]].index(name)
        field, at = header["fields"][index], header["table_offset"]
        while at < header["table_offset"] + header["table_bytes"]:
            rank, *extents = struct.unpack_from(f"<I{2 * len(header['fields'])}Q", data, at)
            offset, size = extents[2 * index:2 * index + 2]
            pieces[rank] = data[offset:offset + size].view(field["dtype"])
            blocks = sum(-(-length // header["block_bytes"]) for length in extents[1::2])
            at += 4 + 8 * len(extents) + 4 * blocks + 4
        part, parts = part + 1, header["parts"]
    elements = np.concatenate([pieces[rank] for rank in sorted(pieces)])
    return elements.reshape(-1, field["components"]) if field["components"] > 1 else elements


def check(step_directory: str, name: str) -> None:
    """Ends the program if read_field() cannot read the step, or if the step has no such field."""
    if not (Path(step_directory) / "part.0.rbio").exists():
        sys.exit(f"{step_directory} is not a step of rbIO: it has no part.0.rbio")
    for path in sorted(Path(step_directory).glob("part.*.rbio")):
        with path.open("rb") as part:
            start = part.read(32)
            if len(start) < 32 or start[:8] != b"CRNRBIO\n":
                sys.exit(f"{path} is damaged: it does not begin as a file of rbIO")
            version, header_bytes = struct.unpack_from("<IQ", start, 8)
            if version != 1:
                sys.exit(f"{path} has format {version}, and this program reads format 1")
            names = [field["name"] for field in json.loads(part.read(header_bytes))["fields"]]
        if name not in names:
            sys.exit(f"{path} has no field {name}; its fields are {', '.join(names)}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: read_rbio.py STEP_DIRECTORY FIELD OUTPUT.npy")
    check(sys.argv[1], sys.argv[2])
    np.save(sys.argv[3], read_field(sys.argv[1], sys.argv[2]))
