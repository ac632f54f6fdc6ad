"""Whether a process of this machine still lives, long after it recorded its identity.

docs/format/last-run-record.md has the rule, which src/files/process_identity.cpp follows as well: the two must agree.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from cairn.on_node import started_at


def this_kernel() -> str:
    """Of which the process ids are: its boot, and the namespace of its process ids. Empty where the system does not say."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def identity() -> Dict[str, Any]:
    """Of this process, for JSON."""
    return {"process": os.getpid(), "kernel": this_kernel(), "start_ticks": started_at(os.getpid())}


def lives(record: Mapping[str, Any]) -> Optional[bool]:
    """Whether the process of an `identity` does; None where it is, or may be, a process of another machine."""
    kernel, process = record.get("kernel"), record.get("process")
    if not kernel or not isinstance(process, int) or process <= 0 or kernel != this_kernel():
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    # Where /proc hides the processes of other users, that one of that id exists must do.
    ticks = started_at(process)
    return not (ticks and record.get("start_ticks") and ticks != record["start_ticks"]) and not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """It has ended, and its parent has not asked for its exit code."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] in (["Z"], ["X"])
