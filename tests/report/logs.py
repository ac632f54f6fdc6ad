"""Logs as the library writes them (docs/format/log.md), of jobs that never ran."""

import json
from pathlib import Path
from typing import Any, List

BYTES = 2**30
HOSTILE = "<script>document.title='taken'</script>&\"'\n"


class Log:
    """Lines, with a clock that goes on with them."""

    def __init__(self, job: str = "7") -> None:
        self.time_s = 1_800_000_000.0
        self.job = job
        self.lines: List[str] = []

    def add(self, what: str, after_s: float = 0.0, kind: str = "event", **more: Any) -> None:
        self.time_s += after_s
        self.lines.append(json.dumps({"time": "", "time_us": round(self.time_s * 1e6), "host": "n0", "job": self.job,
                                      kind: what, **more}))

    def moved(self, what: str, seconds: float, **more: Any) -> None:
        self.add(what, kind="transfer", seconds=seconds, bytes=BYTES, files=8, **more)

    def start(self, *, rebuilt_s: float = 0.0) -> None:
        """Init, of 1 s and what it rebuilds."""
        self.add("START", note="8 ranks on 4 nodes")
        if rebuilt_s:
            self.add("REBUILD_START", dataset=1, name="ckpt.1")
            self.add("REBUILD_SUCCESS", 0.5 + rebuilt_s, dataset=1, name="ckpt.1", seconds=rebuilt_s, note="rank 1")
        self.add("COMPUTE_START", 0.5 if rebuilt_s else 1.0)

    def checkpoint(self, number: int, name: str = "", flush: bool = False) -> None:
        """10 s of computing, 1 s of writing, 2 s of protecting, 4 s of flushing."""
        printed = {"dataset": number, "name": name or f"ckpt.{number}"}
        self.add("COMPUTE_END", 10, seconds=10.0)
        self.add("CHECKPOINT_START", **printed)
        self.time_s += 3
        self.moved("WRITE", 1.0, **printed)
        self.moved("ENCODE", 2.0, **printed)
        self.moved("CHECKPOINT", 3.0, **printed)
        self.add("CHECKPOINT_END", seconds=3.0, **printed)
        if flush:
            self.add("FLUSH_START", **printed)
            self.add("FLUSH_SUCCESS", 4.0, seconds=4.0, **printed)
            self.moved("FLUSH_SYNC", 4.0, **printed)
        self.add("COMPUTE_START")

    def write(self, prefix: Path) -> Path:
        """As the log of a prefix directory, which is returned."""
        (prefix / ".cairn").mkdir(parents=True, exist_ok=True)
        (prefix / ".cairn" / "log.json").write_text("".join(line + "\n" for line in self.lines))
        return prefix


def eventful(runs: int = 3) -> Log:
    """Runs that die, the last one halted; every kind of failure; names that want to be HTML."""
    log = Log()
    log.add("NODE_FAIL", note="n8: " + HOSTILE)
    for number in range(runs):
        log.add("RUN_START", note=f"run {number + 1} on 4 nodes: n0,n1,n2,n3")
        log.start(rebuilt_s=2.0 if number else 0.0)
        if number:
            log.add("RESTART_START", dataset=number, name=f"ckpt.{number}")
            log.add("RESTART_SUCCESS", 1, dataset=number, name=f"ckpt.{number}")
        for i in range(4):
            log.checkpoint(4 * number + i + 1, HOSTILE if i == 1 else "", flush=i % 2 == 1)
        log.add("COMPUTE_END", 10, seconds=10.0)
        log.add("CHECKPOINT_END", 3, dataset=99, name=HOSTILE, seconds=3.0, note="no space left: " + "x" * 300)
        log.add("COMPUTE_START")
        log.add("FLUSH_FAIL", 1, dataset=98, name="late", seconds=1.0, note=HOSTILE)
        log.time_s += 30
        if number + 1 < runs:
            log.add("RUN_END", note=f"run {number + 1}: lost {HOSTILE}", seconds=100.0)
    log.add("HALT", note="JOB_HALTED: " + HOSTILE)
    log.add("SHOULD_EXIT")
    log.add("FINALIZE")
    return log
