#!/usr/bin/env python3
"""Reads a field of an rbIO step with NumPy, by the format alone (docs/format/rbio-part.md).

    python3 read_rbio.py STEP_DIRECTORY FIELD OUTPUT.npy

It compares no checksum; "cairn rbio verify" does.
"""

import json
import struct
import sys

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


if __name__ == "__main__":
    np.save(sys.argv[3], read_field(sys.argv[1], sys.argv[2]))
