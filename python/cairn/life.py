"""Checks whether a process of this machine that recorded its identity is still alive.

docs/format/last-run-record.md has the rule, which src/files/process_identity.cpp follows as well: the two must agree.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from cairn.on_node import started_at


def this_kernel() -> str:
    """Where process ids are valid: the boot of the kernel, and the namespace of process ids. Empty if unknown."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def identity() -> Dict[str, Any]:
    """The identity of this process, for JSON."""
    return {"process": os.getpid(), "kernel": this_kernel(), "start_ticks": started_at(os.getpid())}


def lives(record: Mapping[str, Any]) -> Optional[bool]:
    """True if the process of an `identity` is alive; None if it is, or may be, a process of another machine."""
    kernel, process = record.get("kernel"), record.get("process")
    if not kernel or not isinstance(process, int) or process <= 0 or kernel != this_kernel():
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    # If /proc hides the processes of other users, a process with this id counts as the same process.
    ticks = started_at(process)
    return not (ticks and record.get("start_ticks") and ticks != record["start_ticks"]) and not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """It has ended, and its parent has not read its exit code."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] in (["Z"], ["X"])
