"""The figures of jobs in OpenMetrics, for a site's monitoring (docs/format/metrics.md)."""

from __future__ import annotations

from typing import Callable, Iterable, List, NamedTuple, Sequence, Tuple

from cairn.reporting.history import ENDS, OPERATIONS, History

Sample = Tuple[Sequence[Tuple[str, str]], float]  # labels besides the log, value


class Family(NamedTuple):
    """One metric: its name, and its samples of one job."""

    name: str
    kind: str  # "counter", "gauge"
    unit: str
    about: str
    samples: Callable[[History], Iterable[Sample]]


def _by_operation(history: History) -> Iterable[Sample]:
    outcomes = history.outcomes()
    for name in OPERATIONS:
        yield [("operation", name), ("result", "success")], outcomes[name].good
        yield [("operation", name), ("result", "failure")], outcomes[name].bad


def _by_end(history: History) -> Iterable[Sample]:
    for end in ENDS:
        yield [("end", end)], sum(run.end == end for run in history.runs)


def _moved(of: Callable[..., float]) -> Callable[[History], Iterable[Sample]]:
    return lambda history: [([("transfer", kind)], sum(of(one) for one in history.moved(kind)))
                            for kind in ("write", "encode", "flush", "fetch", "scavenge")]


FAMILIES = [
    Family("cairn_runs_begun", "counter", "", "Runs that called SCR_Init.", lambda h: [([], len(h.runs))]),
    Family("cairn_runs_ended", "counter", "", "Runs by how they ended; one that died is known by cairn run or its successor.",
           _by_end),
    Family("cairn_node_failures", "counter", "", "Nodes that cairn run has left out since they failed.",
           lambda h: [([], len(h.node_failures))]),
    Family("cairn_operations", "counter", "", "What runs have done, by whether it went well.", _by_operation),
    Family("cairn_phase_seconds", "counter", "seconds", "Time of the runs by what they spent it on.",
           lambda h: [([("phase", phase)], seconds) for phase, seconds in h.seconds().items()]),
    Family("cairn_flushed_datasets", "counter", "", "Datasets that reached the prefix directory.", lambda h: [([], h.flushed)]),
    Family("cairn_dataset_state_seconds", "counter", "seconds", "Time that these datasets were in each state before that.",
           lambda h: [([("state", state)], seconds) for state, seconds in h.state_seconds.items()]),
    Family("cairn_unflushed_datasets", "gauge", "", "Datasets that did not reach the prefix directory.",
           lambda h: [([], h.unflushed)]),
    Family("cairn_unflushed_state_seconds", "gauge", "seconds",
           "Time that these were in each state, until a newer checkpoint took their place, they were deleted or lost, or their run "
           "ended.",
           lambda h: [([("state", state)], seconds) for state, seconds in h.unflushed_seconds.items()]),
    Family("cairn_transfer_bytes", "counter", "bytes", "Bytes moved, over all ranks.", _moved(lambda one: one.bytes)),
    Family("cairn_transfer_seconds", "counter", "seconds", "Time in which they were moved.",
           _moved(lambda one: one.seconds)),
    Family("cairn_lost_seconds", "counter", "seconds",
           "Time that failures have cost: computing done again, and waiting until a run computed.", lambda h: [([], h.lost_s())]),
    Family("cairn_damaged_lines", "counter", "", "Lines of the log that are no entries.", lambda h: [([], h.damaged)]),
    Family("cairn_newest_dataset", "gauge", "", "Number of the newest dataset.", lambda h: [([], h.newest_number)]),
    Family("cairn_last_checkpoint_timestamp_seconds", "gauge", "seconds",
           "When the newest checkpoint was committed, since 1970.",
           lambda h: [([], h.newest_s)] if h.newest_s else []),
    Family("cairn_last_sign_of_life_timestamp_seconds", "gauge", "seconds", "The last entry of the log, since 1970.",
           lambda h: [([], h.last_s())] if h.last_s() else []),
]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _line(family: Family, history: History, sample: Sample) -> str:
    labels, value = sample
    named = ",".join(f"{key}={_quoted(text)}" for key, text in [("log", history.source), *labels])
    return f"{family.name}{'_total' if family.kind == 'counter' else ''}{{{named}}} {_number(value)}"


def text_of(histories: Sequence[History]) -> str:
    """The whole file."""
    lines: List[str] = []
    for family in FAMILIES:
        lines += [f"# TYPE {family.name} {family.kind}"]
        lines += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
        lines += [f"# HELP {family.name} {family.about}"]
        lines += [_line(family, history, sample) for history in histories for sample in family.samples(history)]
    return "\n".join([*lines, "# EOF", ""])
