"""The state of a job as text: for `cairn status`, and for the account at the end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence

from cairn.computing import Stretch, lost_s
from cairn.folding import folded, who_text
from cairn.job_log import Progress, Transfers
from cairn.policy import How

NOTICEABLE_S = 0.001  # a shorter loss is not reported
# The settings with which SCR_Need_checkpoint requests checkpoints.
CADENCE = ("SCR_CHECKPOINT_INTERVAL", "SCR_CHECKPOINT_SECONDS", "SCR_CHECKPOINT_OVERHEAD")


@dataclass
class Run:
    """One launch. Times are seconds since 1970; 0: it has not happened."""

    number: int
    nodes: List[str]
    begun_s: float
    struck_s: float = 0.0  # when a simulated node was killed
    noticed_s: float = 0.0  # when cairn run detected the failure: the launcher ended, or a node was found dead
    ended_s: float = 0.0
    computing_s: float = 0.0  # when it began to compute; with a restart, its end
    rebuilt_s: float = 0.0  # how long it rebuilt lost data
    restarted_from: str = ""
    from_scratch: str = ""  # why it began from scratch, although a checkpoint existed
    how: str = ""
    failed: bool = False
    nodes_lost: Dict[str, str] = field(default_factory=dict)
    newest_s: float = 0.0  # when its last dataset was committed
    regained_s: float = 0.0  # computing that it did not have to repeat
    kept_s: float = 0.0  # computing up to its newest checkpoint

    def stretch(self) -> Stretch:
        """The computing of this run."""
        return Stretch(self.failed, self.begun_s, self.computing_s, self.ended_s, self.regained_s, self.kept_s)


@dataclass
class Account:
    """All runs under one `cairn run`."""

    manager: str = ""
    launcher: str = ""
    job: str = ""
    nodes: List[str] = field(default_factory=list)
    wanted: int = 0
    unfit: Dict[str, str] = field(default_factory=dict)
    begun_s: float = 0.0
    runs: List[Run] = field(default_factory=list)
    outcome: str = ""
    reason: str = ""
    scavenged: str = ""  # the result of the scavenge at the end

    def failures(self) -> List[Run]:
        """Runs that died."""
        return [run for run in self.runs if run.failed]

    def spares(self) -> int:
        """Nodes that are fit and not needed."""
        return max(0, len(self.nodes) - len(self.unfit) - self.wanted)

    def lost_s(self, now_s: float) -> float:
        """Time lost by failures: repeated computing, and waiting until the next run computed."""
        return lost_s([run.stretch() for run in self.runs], now_s)

    def saved_s(self) -> float:
        """Computing of dead runs that was not repeated: without checkpoints each next run would have begun from scratch.
        Counted once for each restart."""
        return sum(following.regained_s for run, following in zip(self.runs, self.runs[1:])
                   if run.failed and following.restarted_from)

    def as_json(self) -> Dict[str, Any]:
        """For `cairn status`."""
        return asdict(self)


def account_of_json(record: Dict[str, Any]) -> Account:
    """The opposite of as_json. Ignores unknown fields."""
    runs = [Run(**{key: run[key] for key in Run.__dataclass_fields__ if key in run})
            for run in record.get("runs", [])]
    kept = {key: record[key] for key in Account.__dataclass_fields__ if key in record}
    return Account(**{**kept, "runs": runs})


def size_text(count: float) -> str:
    """Bytes with a suitable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def time_text(seconds: float) -> str:
    """A duration with a suitable unit."""
    if seconds == 0:
        return "0 s"
    if abs(seconds) < 0.9995:  # above, three digits would give 1000 ms
        return f"{seconds * 1000:.3g} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _moved(transfers: Transfers) -> str:
    rate = f", {size_text(transfers.bytes / transfers.seconds)}/s" if transfers.seconds > 0 else ""
    return f"{count_text(transfers.count, 'time')}, {size_text(transfers.bytes)} in {time_text(transfers.seconds)}{rate}"


def dataset_text(name: str, number: Optional[int]) -> str:
    """A dataset as messages name it: step.40 (dataset 7)."""
    return f"{name or 'without a name'} (dataset {number})"


def copies_text(labels: Mapping[int, str]) -> str:
    """The copies of datasets, which are labelled by their numbers, as messages name them; empty if there are none."""
    which = "copy" if len(labels) == 1 else "copies"
    return f"the {which} of {', '.join(labels[number] for number in sorted(labels))}" if labels else ""


def count_text(number: int, word: str) -> str:
    """"1 run", "2 runs"."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _gap_text(run: Run, following: Optional[Run]) -> str:
    """Describes the time between a failure and the next computing."""
    start = run.struck_s or run.noticed_s
    if following is None or not following.computing_s:
        return f"run {run.number}: {run.how}; no run followed" if not following else (
            f"run {run.number}: {run.how}; the next run also ended before it computed")
    noticed = f"noticed after {time_text(run.noticed_s - run.struck_s)}, " if run.struck_s else ""
    rebuilt = f"rebuilt in {time_text(following.rebuilt_s)}, " if following.rebuilt_s else ""
    started = f"run {following.number} started {time_text(following.begun_s - run.noticed_s)} later, "
    return (f"run {run.number}: {run.how}; {noticed}{started}{rebuilt}computing after {time_text(following.computing_s - start)} in all")


def _from_scratch(runs: Sequence[Run]) -> List[str]:
    """Describes the last run that began from scratch."""
    began = [run for run in runs if run.from_scratch]
    more = f" (and {len(began) - 1} before it)" if len(began) > 1 else ""
    return [f"FROM SCRATCH run {run.number}{more} began from scratch: {run.from_scratch}" for run in began[-1:]]


def _checkpoints(progress: Progress) -> str:
    made = f"{progress.commits} made" if progress.commits else "none made"
    failed = f", {progress.failed} failed" if progress.failed else ""
    restarts = f", {count_text(progress.restarts, 'restart')}" if progress.restarts else ""
    name = progress.newest_checkpoint().name
    newest = f"; the newest is {name}" if name else ""
    return f"checkpoints  {made}{failed}{restarts}{newest}"


def _outputs(progress: Progress) -> List[str]:
    """Those that are no checkpoints."""
    counts = ((progress.outputs, "made"), (progress.outputs_failed, "failed"))
    parts = [f"{count} {what}" for count, what in counts if count]
    return [f"outputs      {', '.join(parts)}"] if parts else []


def _nodes(account: Account) -> str:
    """Mentions remaining spares if there are any, or if nodes were lost."""
    text = f"nodes        {account.wanted} at a time, of {len(account.nodes)}"
    if account.spares() or account.unfit:
        text += f"; {count_text(account.spares(), 'spare')} left"
    lost = ", ".join(f"{who_text(names)} ({why})" for why, names in folded(dict(sorted(account.unfit.items()))).items())
    return f"{text}; unfit: {lost}" if lost else text


def _times(account: Account, now_s: float) -> List[str]:
    lost_s, saved_s = account.lost_s(now_s), account.saved_s()
    lost = f"time lost    {time_text(lost_s)} to failures: waiting, and computing again"
    saved = f"time saved   {time_text(saved_s)} of computing that checkpoints spared from being repeated"
    return [lost] * (lost_s >= NOTICEABLE_S) + [saved] * (saved_s >= NOTICEABLE_S)


def _moves(progress: Progress) -> List[str]:
    """How much was copied, and where to."""
    moves = (("to cache    ", progress.written), ("to prefix   ", progress.flushed), ("from prefix ", progress.fetched))
    return [f"{name} {_moved(transfers)}" for name, transfers in moves if transfers.count]


def never_due(account: Account, progress: Progress, settings: Mapping[str, str]) -> str:
    """Advice if a program that uses the library made no checkpoint because no setting requests one. Empty for a run that
    hung, restarted, or whose SCR_Init failed: it may have had another reason."""
    hung = any(run.how.startswith(How.HUNG.value) for run in account.runs)
    restarted = any(run.restarted_from for run in account.runs)
    if progress.finalized is None or progress.commits or progress.init_failure or hung or restarted:
        return ""
    if any(float(settings.get(key) or 0) > 0 for key in CADENCE):
        return ""
    return (f"no checkpoint was made: SCR_Need_checkpoint says no unless one of {', '.join(CADENCE)} is set, and none is. "
            f"Set one of them, for example {CADENCE[1]}=600")


def no_calls(account: Account, progress: Progress, settings: Mapping[str, str]) -> str:
    """Advice if a program ended without using the library; "" if the library logs nothing."""
    is_silent = settings.get("SCR_ENABLE") == "0" or settings.get("CAIRN_LOG_JSON") == "0"
    if account.outcome != "success" or progress.finalized is not None or progress.init_failure or is_silent:
        return ""
    return ("no checkpoint was made: the program did not call SCR_Init, so nothing of it was protected. The tutorial shows which "
            "calls a program needs")


def summary_of(account: Account, progress: Progress, now_s: float, advice: Sequence[str] = ()) -> Dict[str, Any]:
    """The content of lines_of, for JSON."""
    moves = {"to_cache": progress.written, "to_prefix": progress.flushed, "from_prefix": progress.fetched}
    return {**account.as_json(), "ended_s": now_s, "runs_died": len(account.failures()), "spares_left": account.spares(),
            "lost_s": account.lost_s(now_s), "saved_s": account.saved_s(),
            "checkpoints": {"made": progress.commits, "failed": progress.failed, "newest": progress.newest_checkpoint().name,
                            "restarts": progress.restarts},
            "outputs": {"made": progress.outputs, "failed": progress.outputs_failed},
            "moved": {name: asdict(transfers) for name, transfers in moves.items()},
            "advice": [text for text in advice if text]}


def lines_of(account: Account, progress: Progress, now_s: float, advice: Sequence[str] = ()) -> List[str]:
    """The account in about ten lines, without zero values, followed by the advice."""
    failures = account.failures()
    died = f", of which {len(failures)} died" if failures else ""
    lines = [
        f"{account.outcome}: {account.reason}",
        f"runs         {len(account.runs)}{died}; {time_text(now_s - account.begun_s)} in all",
        _nodes(account)]
    pairs = list(zip(account.runs, [*account.runs[1:], None]))
    described = [f"failure      {_gap_text(run, following)}" for run, following in pairs if run.failed]
    lines += described[-3:]
    if len(described) > 3:
        lines.append(f"             and {len(described) - 3} before these")
    lines += [*_from_scratch(account.runs), *_times(account, now_s), _checkpoints(progress), *_outputs(progress),
              *_moves(progress)]
    lines += [f"scavenge     {account.scavenged}"] if account.scavenged else []
    return lines + [f"advice       {text}" for text in advice if text]
