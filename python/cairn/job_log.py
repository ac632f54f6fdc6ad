"""Reads the log of the library in JSON (docs/format/log.md): the events of the runs of a job."""

from __future__ import annotations

import json
import math
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

NAME = "log.json"
TEXT_NAME = "log"  # the log as text
TEXT_TIME = "%Y-%m-%dT%H:%M:%S"
TEXT_FIELD = re.compile(r', (\w+)=("(?:[^"\\]|\\.)*"|[^,]*)')
IN_PREFIX = "in the prefix directory"
PIECE_BYTES = 1 << 20  # read at a time
# Errors of SCR_Init that would recur in another run: wrong settings, or a wrong MPI.
LASTING_FAILURES = ("bad_setting", "bad_argument", "differs", "untrusted", "newer_format")
# Events of job control, which are no signs of life of the program.
FROM_OUTSIDE = ("RUN_START", "RUN_END", "NODE_FAIL", "SCAVENGE_START", "SCAVENGE_END")
# Events and transfers after the death of a job, which are none either.
AFTER = ("SCAVENGE", "PUBLISH_SUCCESS", "PUBLISH_FAIL", "DRAIN", "DRAIN_SUCCESS")


@dataclass(frozen=True)
class Entry:
    """One line. `what` is the name of the event or transfer."""

    what: str
    time_s: float
    dataset: Optional[int] = None
    name: str = ""
    seconds: float = 0.0
    bytes: int = 0
    note: str = ""
    job: str = ""
    to: str = ""  # the place of the dataset
    scheme: str = ""  # its redundancy scheme there; empty in the prefix directory
    set_size: int = 0
    ranks: int = 0  # of the program, at its start; 0: unknown
    code: str = ""  # the error code of a failure
    output: bool = False  # the dataset is an output; not known where that failed
    logged_us: int = 0  # by the clock of the node that logged it; a reader may change `time_s` to the time of another clock

    @staticmethod
    def of_line(line: str, job: Optional[str] = None) -> Optional["Entry"]:
        """None if the line is incomplete, or belongs to another job than `job`."""
        try:
            one: Dict[str, Any] = json.loads(line)
            found = Entry(one.get("event") or one["transfer"], one["time_us"] / 1e6,
                          one.get("dataset"), one.get("name", ""), one.get("seconds", 0.0),
                          one.get("bytes", 0), one.get("note", ""), one.get("job", ""),
                          one.get("to", ""), one.get("scheme", ""), one.get("set_size", 0), one.get("ranks", 0),
                          one.get("code", ""), one.get("output", False), int(one["time_us"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None
        return found if found.is_sound() and job in (None, found.job) else None

    @staticmethod
    def of_text(line: str) -> Optional["Entry"]:
        """The same for a line of the text log."""
        when, _, rest = line.partition(": ")
        try:
            fields = {key: json.loads(value) if value.startswith('"') else value
                      for key, value in TEXT_FIELD.findall(f", {rest}")}
            return Entry(fields.get("event") or fields["xfer"], time.mktime(time.strptime(when, TEXT_TIME)),
                         int(fields.get("dset", 0)) or None, fields.get("name", ""), float(fields.get("secs", 0.0)),
                         int(fields.get("bytes", 0)), fields.get("note", ""), fields.get("jobid", ""))
        except (ValueError, KeyError, OverflowError):
            return None

    @staticmethod
    def of_either(line: str) -> Optional["Entry"]:
        """The same for a line of either log."""
        return Entry.of_line(line) if line.startswith("{") else Entry.of_text(line)

    def protection(self) -> str:
        """The place and scheme of the dataset whose end this entry logs."""
        if not self.to:  # in logs of earlier versions
            return "in the cache"
        if not self.scheme:
            return IN_PREFIX
        return f"in {self.to} by {self.scheme}" + (f" over sets of {self.set_size}" if self.set_size > 1 else "")

    def is_sound(self) -> bool:
        """True if all fields have the right types and ranges: users may edit the file."""
        texts = (self.what, self.name, self.note, self.job, self.to, self.scheme, self.code)
        numbers = (self.time_s, self.seconds, self.bytes, self.dataset or 0, self.set_size, self.ranks)
        return isinstance(self.output, bool) and all(isinstance(text, str) for text in texts) and all(
            isinstance(number, (int, float)) and math.isfinite(number) and 0 <= number < 2**63
            for number in numbers)


class WholeLog(NamedTuple):
    """All entries of a log, and the number of invalid lines."""

    entries: List[Entry]
    damaged: int


def read_log(path: Path, of_line: Callable[[str], Optional[Entry]] = Entry.of_line) -> WholeLog:
    """Raises OSError if there is no log. Ignores an incomplete last line, which may be being written."""
    *lines, _ = path.read_bytes().split(b"\n")
    found = [of_line(line.decode("utf-8", "replace")) for line in lines if line.strip()]
    entries = [entry for entry in found if entry]
    return WholeLog(entries, len(found) - len(entries))


class JobLog:
    """Follows the log from its end at the time of creation (or from its beginning). If the log is truncated or replaced,
    it is read again without the known lines. These are identified by their content, as the clocks of the nodes may
    differ."""

    def __init__(self, prefix: str, job: str, from_the_start: bool = False) -> None:
        self._path = Path(prefix) / ".cairn" / NAME
        self._job = job
        # Other jobs may have filled the log for months: this mark excludes most of their lines without decoding.
        quoted = f'"{job}"'
        self._mark = quoted.encode() if json.dumps(job) == quoted else b""
        self._rest = b""
        self._file, self._offset = 0, 0
        self._known: Set[int] = set()  # hashes of the lines read so far
        if not from_the_start:
            for _ in self._added():
                pass

    def news(self) -> List[Entry]:
        """The entries added since the last call."""
        entries = (Entry.of_line(line.decode("utf-8", "replace"), self._job) for line in self._added())
        return [entry for entry in entries if entry]

    def _added(self) -> Iterator[bytes]:
        """New lines that may belong to this job."""
        with suppress(OSError), self._path.open("rb") as log:
            self._look_for_another(os.fstat(log.fileno()))
            log.seek(self._offset)
            for piece in iter(lambda: log.read(PIECE_BYTES), b""):
                self._offset += len(piece)
                *lines, self._rest = (self._rest + piece).split(b"\n")
                yield from filter(self._is_new, lines)

    def _is_new(self, line: bytes) -> bool:
        if self._mark not in line or hash(line) in self._known:
            return False
        self._known.add(hash(line))
        return True

    def _look_for_another(self, status: os.stat_result) -> None:
        is_another = self._file not in (0, status.st_ino) or status.st_size < self._offset
        self._file = status.st_ino
        if is_another:
            self._offset, self._rest = 0, b""


AND_PREFIX = f", and {IN_PREFIX}"
NOT_PROTECTED = "written, but not protected: that survives the death of processes, and not the loss of a node"
COMMITS = ("CHECKPOINT_END", "OUTPUT_END")
GOES = ("DELETE", "LOST")  # from the caches
FLUSHED = ("FLUSH_SUCCESS", "ASYNC_FLUSH_SUCCESS", "DRAIN_SUCCESS", "SETTLE_SUCCESS", "PUBLISH_SUCCESS")


@dataclass
class Transfers:
    """The size and duration of transfers."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def add(self, entry: Entry) -> None:
        """Adds one transfer."""
        self.count += 1
        self.bytes += entry.bytes
        self.seconds += entry.seconds


@dataclass
class Checkpoint:
    """A committed checkpoint."""

    name: str = ""
    committed_s: float = 0.0
    cost_s: float = 0.0
    protection: str = ""  # its place and scheme


@dataclass
class Progress:
    """The progress of the runs, according to the log."""

    newest: int = 0  # number of the newest committed dataset
    checkpoints: Dict[int, Checkpoint] = field(default_factory=dict)  # not deleted or lost, by number; the last one is the newest
    encoded: int = 0  # number of the last dataset that was protected before its end was logged
    commits: int = 0  # checkpoints, also those that are outputs too
    spent_s: float = 0.0  # total time of these
    failed: int = 0  # checkpoints
    outputs: int = 0  # committed ones that are no checkpoints
    outputs_failed: int = 0
    restarts: int = 0
    restarted_from: str = ""
    computing_since_s: float = 0.0  # when this run began to compute, after its restart; 0: not yet
    rebuilt_s: float = 0.0  # in this run
    finalized: Optional[bool] = None  # this run has called SCR_Finalize; None: no run has called SCR_Init
    ranks: int = 0  # of this run, logged by SCR_Init; 0: unknown
    init_failure: str = ""  # of this run: why SCR_Init failed
    init_fails_again: bool = False  # in each run, unless the user changes something
    is_to_exit: bool = False  # SCR_Should_exit returned yes in this run
    computes: bool = False  # SCR_Init of this run has succeeded, and SCR_Finalize was not called yet
    written: Transfers = field(default_factory=Transfers)
    flushed: Transfers = field(default_factory=Transfers)
    fetched: Transfers = field(default_factory=Transfers)
    writing: Optional[Entry] = None  # the transfer of a dataset whose place is not logged yet

    def begin_run(self) -> None:
        """Resets what concerns one run only. If the program has called SCR_Init once, a run without SCR_Finalize has not
        finished."""
        self.finalized = None if self.finalized is None else False
        self.restarted_from = self.init_failure = ""
        self.init_fails_again = self.computes = self.is_to_exit = False
        self.ranks = 0
        self.computing_since_s = self.rebuilt_s = 0.0

    def add(self, entry: Entry) -> None:
        """Adds an entry."""
        if entry.what in COMMITS:
            self._ended(entry)
        elif entry.what in ("START", "COMPUTE_START", "INIT_FAIL", "FINALIZE"):
            self._has_come_to(entry)
        elif entry.what in ("CHECKPOINT", "OUTPUT"):
            self.writing = entry
        elif entry.what == "ENCODE":
            self.encoded = entry.dataset or 0
        elif entry.what in GOES:
            self.checkpoints.pop(entry.dataset or 0, None)
        elif entry.what == "PROTECT_END" or entry.what in FLUSHED:
            self._became_safer(entry)
        elif entry.what in ("FLUSH_SYNC", "FLUSH_ASYNC"):
            self.flushed.add(entry)
        elif entry.what == "FETCH":
            self.fetched.add(entry)
        elif entry.what == "REBUILD_SUCCESS":
            self.rebuilt_s += entry.seconds
        elif entry.what == "RESTART_SUCCESS":
            self.restarts += 1
            self.restarted_from = entry.name
            self.computing_since_s = entry.time_s
        elif entry.what == "SHOULD_EXIT":
            self.is_to_exit = True
        elif entry.what == "CURRENT":  # the program has read a checkpoint without the restart calls
            self.restarted_from = self.restarted_from or entry.name

    def newest_checkpoint(self) -> Checkpoint:
        """One without a name if there is none."""
        return next(reversed(self.checkpoints.values()), Checkpoint())

    def _became_safer(self, entry: Entry) -> None:
        checkpoint = self.checkpoints.get(entry.dataset or 0)
        if checkpoint and entry.what == "PROTECT_END":
            checkpoint.protection = entry.protection()
        elif checkpoint:
            checkpoint.protection = f"{checkpoint.protection.partition(AND_PREFIX)[0]}{AND_PREFIX}"

    def _has_come_to(self, entry: Entry) -> None:
        """A computing run locks the caches. If another program is started meanwhile, its SCR_Init fails, which does not
        concern this run."""
        if entry.what == "COMPUTE_START":
            self.computing_since_s = self.computing_since_s or entry.time_s
            self.computes, self.init_failure, self.init_fails_again = True, "", False
        elif entry.what == "FINALIZE":
            self.computes, self.finalized = False, True
        elif self.computes:
            return
        elif entry.what == "START":
            self.finalized = False
            self.ranks = entry.ranks
        else:
            self.init_failure = entry.note
            self.init_fails_again = entry.code in LASTING_FAILURES

    def split_world(self, ranks_asked: Optional[int]) -> str:
        """Why the processes of this run did not work together; empty if there is no sign of that."""
        if self.ranks == 1 and (ranks_asked or 1) > 1:
            return (f"the launcher was asked for {ranks_asked} ranks, and the program has one: each process is a program of "
                    "its own, and they overwrite each other's checkpoints; start the program with the launcher of the MPI "
                    "that it is built for")
        return ""

    def _ended(self, entry: Entry) -> None:
        writing, self.writing = self.writing, None
        is_checkpoint = entry.what == "CHECKPOINT_END"
        if entry.note:
            self.failed += is_checkpoint
            self.outputs_failed += not is_checkpoint
            return
        if writing:
            (self.flushed if entry.protection() == IN_PREFIX else self.written).add(writing)
        self.newest = max(self.newest, entry.dataset or 0)
        self.outputs += not is_checkpoint
        if is_checkpoint:
            self.commits += 1
            self.spent_s += entry.seconds
            number = entry.dataset or 0
            self.checkpoints.pop(number, None)  # so that the new one is the last
            self.checkpoints[number] = Checkpoint(entry.name, entry.time_s, entry.seconds, self._protection_of(entry))

    def _protection_of(self, entry: Entry) -> str:
        """With CAIRN_PROTECT=behind a dataset has no scheme and no checksums when its end is logged."""
        is_encoded = entry.scheme != "SINGLE" or self.encoded == (entry.dataset or 0)
        return entry.protection() if is_encoded else f"in {entry.to}, {NOT_PROTECTED}"
