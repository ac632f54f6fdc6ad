"""The log that the library writes for programs (docs/format/log.md): what the runs of a job have done."""

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
TEXT_NAME = "log"  # the one for people
TEXT_TIME = "%Y-%m-%dT%H:%M:%S"
TEXT_FIELD = re.compile(r', (\w+)=("(?:[^"\\]|\\.)*"|[^,]*)')
IN_PREFIX = "in the prefix directory"
PIECE_BYTES = 1 << 20  # read at a time
# Codes of SCR_Init's failures that another run would meet as well: wrong settings, or a wrong MPI.
LASTING_FAILURES = ("bad_setting", "bad_argument", "differs", "untrusted", "newer_format")
# Job control adds these: they are no signs of life of the program.
FROM_OUTSIDE = ("RUN_START", "RUN_END", "NODE_FAIL", "SCAVENGE_START", "SCAVENGE_END")


@dataclass(frozen=True)
class Entry:
    """One line. `what` is the event or the transfer."""

    what: str
    time_s: float
    dataset: Optional[int] = None
    name: str = ""
    seconds: float = 0.0
    bytes: int = 0
    note: str = ""
    job: str = ""
    to: str = ""  # where the dataset is
    scheme: str = ""  # that protects it there; none in the prefix directory
    set_size: int = 0
    ranks: int = 0  # of the program, at its start; 0: not known
    code: str = ""  # the kind of a failure

    @staticmethod
    def of_line(line: str, job: Optional[str] = None) -> Optional["Entry"]:
        """None for what is not whole, or of another job than that of `job`."""
        try:
            one: Dict[str, Any] = json.loads(line)
            found = Entry(one.get("event") or one["transfer"], one["time_us"] / 1e6,
                          one.get("dataset"), one.get("name", ""), one.get("seconds", 0.0),
                          one.get("bytes", 0), one.get("note", ""), one.get("job", ""),
                          one.get("to", ""), one.get("scheme", ""), one.get("set_size", 0), one.get("ranks", 0),
                          one.get("code", ""))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None
        return found if found.is_sound() and job in (None, found.job) else None

    @staticmethod
    def of_text(line: str) -> Optional["Entry"]:
        """The same for a line of the log for people."""
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
        """Of the dataset that it tells the end of."""
        if not self.to:  # in logs of earlier versions
            return "in the cache"
        if not self.scheme:
            return IN_PREFIX
        return f"in {self.to} by {self.scheme}" + (f" over sets of {self.set_size}" if self.set_size > 1 else "")

    def is_sound(self) -> bool:
        """Whether its parts are what they should be: anybody can write into a file."""
        texts = (self.what, self.name, self.note, self.job, self.to, self.scheme, self.code)
        numbers = (self.time_s, self.seconds, self.bytes, self.dataset or 0, self.set_size, self.ranks)
        return all(isinstance(text, str) for text in texts) and all(
            isinstance(number, (int, float)) and math.isfinite(number) and 0 <= number < 2**63
            for number in numbers)


class WholeLog(NamedTuple):
    """All entries of a log, and how many lines are none."""

    entries: List[Entry]
    damaged: int


def read_log(path: Path, of_line: Callable[[str], Optional[Entry]] = Entry.of_line) -> WholeLog:
    """Raises OSError where there is none. A last line that is not whole may be on its way."""
    *lines, _ = path.read_bytes().split(b"\n")
    found = [of_line(line.decode("utf-8", "replace")) for line in lines if line.strip()]
    entries = [entry for entry in found if entry]
    return WholeLog(entries, len(found) - len(entries))


class JobLog:
    """Follows the log from where it ended when this was made (or from its beginning). One that was cut or put in place of
    another is read anew, and the lines that it had before are passed over: by what they are, as the nodes that write it
    may have other clocks than this one, and than each other."""

    def __init__(self, prefix: str, job: str, from_the_start: bool = False) -> None:
        self._path = Path(prefix) / ".cairn" / NAME
        self._job = job
        # Other jobs may have filled the log for months: most of their lines need not be decoded to be known as theirs.
        quoted = f'"{job}"'
        self._mark = quoted.encode() if json.dumps(job) == quoted else b""
        self._rest = b""
        self._file, self._offset = 0, 0
        self._known: Set[int] = set()  # hashes of the lines that were read
        if not from_the_start:
            for _ in self._added():
                pass

    def news(self) -> List[Entry]:
        """What has been added since the last call."""
        entries = (Entry.of_line(line.decode("utf-8", "replace"), self._job) for line in self._added())
        return [entry for entry in entries if entry]

    def _added(self) -> Iterator[bytes]:
        """The lines that are new, and may be this job's."""
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
COMMITS = ("CHECKPOINT_END", "OUTPUT_END")
FLUSHED = ("FLUSH_SUCCESS", "ASYNC_FLUSH_SUCCESS")


@dataclass
class Transfers:
    """What was moved, and how long that took."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def add(self, entry: Entry) -> None:
        """Counts one more."""
        self.count += 1
        self.bytes += entry.bytes
        self.seconds += entry.seconds


@dataclass
class Progress:
    """What the log tells of the runs it was read of."""

    newest: int = 0  # number of the newest dataset ever committed
    newest_name: str = ""  # of the last checkpoint that was committed
    newest_s: float = 0.0  # when
    newest_cost_s: float = 0.0
    newest_protection: str = ""  # where it is, and by which scheme
    commits: int = 0
    spent_s: float = 0.0  # in all of them, from their starts on
    failed: int = 0
    restarts: int = 0
    restarted_from: str = ""
    computing_since_s: float = 0.0  # of this run: when it went on computing; 0: not yet
    rebuilt_s: float = 0.0  # in this run
    finalized: Optional[bool] = None  # this run has called SCR_Finalize; None: no run has called even SCR_Init
    ranks: int = 0  # of this run, by its SCR_Init; 0: not known
    init_failure: str = ""  # of this run: why SCR_Init failed
    init_fails_again: bool = False  # in each run, unless the user changes something
    told_to_exit: bool = False  # this run: SCR_Should_exit said yes
    computes: bool = False  # this run: its SCR_Init has worked, and it has not called SCR_Finalize
    written: Transfers = field(default_factory=Transfers)
    flushed: Transfers = field(default_factory=Transfers)
    fetched: Transfers = field(default_factory=Transfers)
    writing: Optional[Entry] = None  # the transfer of a dataset of which it is not known yet where it is

    def begin_run(self) -> None:
        """Forgets what is known of one run only. Of a program that has once called SCR_Init it is known that a run
        without SCR_Finalize has not come to its end."""
        self.finalized = None if self.finalized is None else False
        self.restarted_from = self.init_failure = ""
        self.init_fails_again = self.computes = self.told_to_exit = False
        self.ranks = 0
        self.computing_since_s = self.rebuilt_s = 0.0

    def add(self, entry: Entry) -> None:
        """One entry more."""
        if entry.what in COMMITS:
            self._ended(entry)
        elif entry.what in ("START", "COMPUTE_START", "INIT_FAIL", "FINALIZE"):
            self._has_come_to(entry)
        elif entry.what in ("CHECKPOINT", "OUTPUT"):
            self.writing = entry
        elif entry.what in ("FLUSH_SYNC", "FLUSH_ASYNC"):
            self.flushed.add(entry)
        elif entry.what in FLUSHED and entry.name == self.newest_name:
            self.newest_protection = f"{self.newest_protection.partition(AND_PREFIX)[0]}{AND_PREFIX}"
        elif entry.what == "FETCH":
            self.fetched.add(entry)
        elif entry.what == "REBUILD_SUCCESS":
            self.rebuilt_s += entry.seconds
        elif entry.what == "RESTART_SUCCESS":
            self.restarts += 1
            self.restarted_from = entry.name
            self.computing_since_s = entry.time_s
        elif entry.what == "SHOULD_EXIT":
            self.told_to_exit = True
        elif entry.what == "CURRENT":  # by the program's own means
            self.restarted_from = self.restarted_from or entry.name

    def _has_come_to(self, entry: Entry) -> None:
        """A run that computes holds the caches: the SCR_Init of a program that somebody else starts meanwhile fails, and
        is no news of this run."""
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
        """Why the processes of this run did not work together; empty where nothing says so."""
        if self.ranks == 1 and (ranks_asked or 1) > 1:
            return (f"the launcher was asked for {ranks_asked} ranks, and the program has one: each process is a program of "
                    "its own, and they overwrite each other's checkpoints; start the program with the launcher of the MPI "
                    "that it is built for")
        return ""

    def _ended(self, entry: Entry) -> None:
        writing, self.writing = self.writing, None
        if entry.note:
            self.failed += 1
            return
        if writing:
            (self.flushed if entry.protection() == IN_PREFIX else self.written).add(writing)
        self.commits += 1
        self.spent_s += entry.seconds
        self.newest = max(self.newest, entry.dataset or 0)
        if entry.what == "CHECKPOINT_END":
            self.newest_name, self.newest_s = entry.name, entry.time_s
            self.newest_cost_s, self.newest_protection = entry.seconds, entry.protection()
