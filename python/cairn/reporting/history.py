"""The history of a job from its log: its runs, their phases and their failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Sequence

from cairn.computing import Computing, Stretch, lost_s
from cairn.job_log import AFTER, FROM_OUTSIDE, Entry
from cairn.unflushed import STATES, Unflushed

# In the order of the page, with their names on it.
PHASES = {"start": "starting", "rebuild": "rebuilding", "fetch": "fetching", "restart": "reading a restart",
          "compute": "computing", "write": "writing", "encode": "protecting", "flush": "copying to the prefix",
          "failed": "datasets that failed", "other": "not logged"}
TRANSFERS = {"WRITE": "write", "ENCODE": "encode", "FLUSH_SYNC": "flush", "FLUSH_ASYNC": "flush", "FETCH": "fetch",
             "SCAVENGE": "scavenge"}
# Operations with their events of success and of failure.
OPERATIONS = {"checkpoint": ("CHECKPOINT_END", "CHECKPOINT_END"), "output": ("OUTPUT_END", "OUTPUT_END"),
              "flush": ("FLUSH_SUCCESS", "FLUSH_FAIL"), "fetch": ("FETCH_SUCCESS", "FETCH_FAIL"),
              "rebuild": ("REBUILD_SUCCESS", "REBUILD_FAIL"), "restart": ("RESTART_SUCCESS", "RESTART_FAIL"),
              "publish": ("PUBLISH_SUCCESS", "PUBLISH_FAIL")}
# Waits for work in the background, with what the program waited for.
WAITS = {"ASYNC_FLUSH_WAIT": "flush", "PROTECT_WAIT": "encode"}
ENDS = ("finished", "halted", "died")  # how a run has ended


class Span(NamedTuple):
    """A phase of a run."""

    phase: str
    from_s: float
    to_s: float
    name: str = ""


class Failure(NamedTuple):
    """A failure."""

    time_s: float
    what: str
    name: str
    reason: str


class Moved(NamedTuple):
    """A transfer of bytes."""

    name: str
    bytes: int
    seconds: float


@dataclass
class Outcomes:
    """The counts of success and failure of an operation."""

    good: int = 0
    bad: int = 0

    def add(self, other: "Outcomes") -> None:
        """Adds the counts of `other`."""
        self.good += other.good
        self.bad += other.bad

    @property
    def all(self) -> int:
        """The number of attempts."""
        return self.good + self.bad


@dataclass
class Run:
    """One launch of the program, according to the log."""

    number: int
    job: str
    begun_s: float
    about: str = ""  # ranks and nodes
    last_s: float = 0.0
    end: str = "open"  # "finished", "halted", "died"; open: its end was not logged
    halt: str = ""  # why it had to stop
    is_to_exit: bool = False  # SCR_Should_exit returned yes
    launch: str = ""  # how the launch ended, logged by job control
    spans: List[Span] = field(default_factory=list)
    failures: List[Failure] = field(default_factory=list)
    moved: Dict[str, List[Moved]] = field(default_factory=dict)
    outcomes: Dict[str, Outcomes] = field(default_factory=dict)
    resumed_s: float = 0.0  # when it began to compute; with a restart, its end
    regained_s: float = 0.0  # computing that it did not have to repeat
    kept_s: float = 0.0  # computing up to its newest checkpoint
    from_scratch: str = ""  # why it began from scratch, although a checkpoint existed

    def duration_s(self) -> float:
        """The time until its last sign of life."""
        return max(0.0, self.last_s - self.begun_s)

    def seconds(self) -> Dict[str, float]:
        """The time in each phase; "other" is the rest."""
        spent = {phase: 0.0 for phase in PHASES}
        for span in self.spans:
            spent[span.phase] += span.to_s - span.from_s
        spent["compute"] = max(0.0, spent["compute"] - spent["fetch"] - spent["restart"])
        spent["start"] = max(0.0, spent["start"] - spent["rebuild"])
        spent["other"] = max(0.0, self.duration_s() - sum(spent.values()))
        return spent


@dataclass
class History:
    """All runs of one log."""

    source: str
    runs: List[Run] = field(default_factory=list)
    damaged: int = 0
    newest: str = ""  # name of the last committed checkpoint
    newest_s: float = 0.0
    newest_number: int = 0
    flushed: int = 0  # datasets
    # The time that the flushed datasets spent in each state before that.
    state_seconds: Dict[str, float] = field(default_factory=lambda: {state: 0.0 for state in STATES})
    unflushed: int = 0  # datasets
    # The time that the others spent in each state until a newer checkpoint took their place, they were deleted or lost, or their
    # run ended.
    unflushed_seconds: Dict[str, float] = field(default_factory=lambda: {state: 0.0 for state in STATES})
    node_failures: List[Failure] = field(default_factory=list)

    def outcomes(self) -> Dict[str, Outcomes]:
        """The outcomes of all runs; "run" counts launches that ended or died."""
        sums = {"run": Outcomes(), **{name: Outcomes() for name in OPERATIONS}}
        for run in self.runs:
            for name, outcomes in run.outcomes.items():
                sums[name].add(outcomes)
            sums["run"].good += run.end in ("finished", "halted")
            sums["run"].bad += run.end == "died"
        return sums

    def seconds(self) -> Dict[str, float]:
        """The time in each phase, over all runs."""
        spent = {phase: 0.0 for phase in PHASES}
        for run in self.runs:
            for phase, seconds in run.seconds().items():
                spent[phase] += seconds
        return spent

    def moved(self, kind: str) -> List[Moved]:
        """The transfers, in order of time."""
        return [one for run in self.runs for one in run.moved.get(kind, [])]

    def failures(self) -> List[Failure]:
        """The failures of runs and nodes, in order of time."""
        of_runs = [one for run in self.runs for one in run.failures]
        return sorted(of_runs + self.node_failures, key=lambda one: one.time_s)

    def lost_s(self) -> float:
        """Time lost by dead runs, without the last one: repeated computing, and waiting until the next run computed."""
        stretches = [Stretch(run.end == "died", run.begun_s, run.resumed_s, run.last_s, run.regained_s, run.kept_s)
                     for run in self.runs]
        while stretches and stretches[-1].failed:
            stretches.pop()
        return lost_s(stretches, self.last_s())

    def last_s(self) -> float:
        """The time of the last sign of life; 0 if there was none."""
        return max((run.last_s for run in self.runs), default=0.0)


class Reader:
    """Converts entries to a history."""

    def __init__(self, source: str) -> None:
        self.history = History(source)
        self._computing = Computing()
        self._open: Dict[str, float] = {}  # the start of open phases: "compute", "restart", "start"
        self._unflushed = Unflushed()

    def _run(self, entry: Entry) -> Run:
        if entry.what == "START" or not self.history.runs:
            self._end_of_run()
            self._computing.begin_run()
            self._open = {"start": entry.time_s}
            self.history.runs.append(Run(len(self.history.runs) + 1, entry.job, entry.time_s,
                                         entry.note if entry.what == "START" else ""))
        run = self.history.runs[-1]
        if entry.what not in AFTER:
            run.last_s = max(run.last_s, entry.time_s)
        return run

    def _end_of_run(self, launch: str = "") -> None:
        """Ends the last run; if its end was not logged, it has died."""
        for run in self.history.runs[-1:]:
            if run.end == "open":
                run.end, run.launch = "died", launch

    def _add_job_control(self, entry: Entry) -> None:
        """Processes events of job control. A launch need not be a run, as the program may never call SCR_Init."""
        if entry.what in ("RUN_START", "RUN_END"):
            self._end_of_run(entry.note if entry.what == "RUN_END" else "")
        elif entry.what == "NODE_FAIL":
            node, _, reason = entry.note.partition(": ")
            self.history.node_failures.append(Failure(entry.time_s, "node", node, reason))

    def add(self, entry: Entry) -> None:
        """Adds an entry. Entries must come in the order of the log."""
        flushed = self._unflushed.add(entry)
        if flushed:
            self.history.flushed += 1
            add_to(self.history.state_seconds, flushed.spent(entry.time_s))
        if entry.what in FROM_OUTSIDE:
            self._add_job_control(entry)
            return
        run = self._run(entry)
        self._compute(run, entry)
        if entry.what == "COMPUTE_START":
            self._close("start", run, entry)
            self._open["compute"] = entry.time_s
        elif entry.what == "COMPUTE_END":
            self._close("compute", run, entry)
        elif entry.what in WAITS:
            self._waited(run, entry)
        elif entry.what == "RESTART_START":
            self._open["restart"] = entry.time_s
        elif entry.what == "HALT":
            run.halt = entry.note
        elif entry.what == "SHOULD_EXIT":
            run.is_to_exit = True
        elif entry.what == "FINALIZE":
            run.end = "halted" if run.is_to_exit else "finished"
            self._close("compute", run, entry)
        elif entry.what in TRANSFERS:
            kind = TRANSFERS[entry.what]
            run.moved.setdefault(kind, []).append(Moved(entry.name, entry.bytes, entry.seconds))
            # The others have events with their times. Writing ends when protecting begins.
            if kind in ("write", "encode"):
                self._span(kind, run, entry)
        else:
            self._judge(run, entry)

    def _compute(self, run: Run, entry: Entry) -> None:
        """Updates the computing of the run, and the part that checkpoints have saved."""
        computing = self._computing
        computing.add(entry)
        if computing.from_scratch and not run.from_scratch:
            run.failures.append(Failure(entry.time_s, "began from scratch", "", computing.from_scratch))
        run.resumed_s, run.from_scratch = computing.began_s, computing.from_scratch
        run.regained_s, run.kept_s = computing.regained_s, computing.kept_s

    def _waited(self, run: Run, entry: Entry) -> None:
        """The program waited for work in the background, and did not compute."""
        begun_s = entry.time_s - entry.seconds
        if "compute" in self._open:
            run.spans.append(Span("compute", self._open["compute"], max(self._open["compute"], begun_s)))
            self._open["compute"] = entry.time_s
        self._span(WAITS[entry.what], run, entry)

    def end(self) -> History:
        """The history, when all entries are added."""
        for dataset in self._unflushed.counted():
            until_s = self._unflushed.last_s if dataset.until_s is None else dataset.until_s
            self.history.unflushed += 1
            add_to(self.history.unflushed_seconds, dataset.spent(until_s))
        return self.history

    def _judge(self, run: Run, entry: Entry) -> None:
        """Processes an event of success or failure."""
        is_async = entry.what.startswith("ASYNC_")
        what = entry.what.replace("ASYNC_", "", 1) if is_async else entry.what
        for name, (well, badly) in OPERATIONS.items():
            if what not in (well, badly):
                continue
            is_bad = what == badly and (well != badly or entry.note != "")
            outcomes = run.outcomes.setdefault(name, Outcomes())
            outcomes.add(Outcomes(int(not is_bad), int(is_bad)))
            if is_bad:
                run.failures.append(Failure(entry.time_s, name, entry.name, entry.note))
            if name in ("checkpoint", "output"):
                self._committed(run, entry, is_bad)
            elif name == "restart":
                self._close("restart", run, entry)
            elif name != "publish" and not is_async:
                self._span(name, run, entry)

    def _committed(self, run: Run, entry: Entry, is_bad: bool) -> None:
        if is_bad:
            self._span("failed", run, entry)
            return
        self.history.newest_number = max(self.history.newest_number, entry.dataset or 0)
        if entry.what == "CHECKPOINT_END":
            self.history.newest, self.history.newest_s = entry.name, entry.time_s

    def _close(self, phase: str, run: Run, entry: Entry) -> None:
        since = self._open.pop(phase, None)
        if since is not None and entry.time_s >= since:
            run.spans.append(Span(phase, since, entry.time_s, entry.name))

    def _span(self, phase: str, run: Run, entry: Entry) -> None:
        """Adds a phase that ends now. The entries of writing and protecting come together, at the end of both."""
        end = entry.time_s
        if phase == "encode" and run.spans and run.spans[-1].phase == "write":
            written = run.spans.pop()
            shift = entry.seconds
            run.spans.append(Span("write", written.from_s - shift, written.to_s - shift, written.name))
        run.spans.append(Span(phase, max(run.begun_s, end - entry.seconds), end, entry.name))


def history_of(source: str, entries: Sequence[Entry], damaged: int = 0) -> History:
    """The history in the entries of one log."""
    reader = Reader(source)
    reader.history.damaged = damaged
    for entry in entries:
        reader.add(entry)
    return reader.end()


def add_to(sums: Dict[str, float], seconds: Dict[str, float]) -> None:
    """Adds the time of one dataset in each state."""
    for state, spent_s in seconds.items():
        sums[state] += spent_s


def median(values: Sequence[float]) -> Optional[float]:
    """The median; of an even number, the lower of the two in the middle."""
    return sorted(values)[(len(values) - 1) // 2] if values else None
