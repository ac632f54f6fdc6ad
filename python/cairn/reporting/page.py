"""The page: one HTML file that contains its style and pictures, and needs no network and no script."""

from __future__ import annotations

import time
from html import escape
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from cairn.account import count_text, size_text, time_text
from cairn.reporting.charts import binned, columns, lane, meter, share_bar
from cairn.reporting.history import PHASES, Failure, History, Moved, Outcomes, Run, median
from cairn.reporting.style import CSS
from cairn.unflushed import STATES

RUNS_SHOWN = 30
FAILURES_SHOWN = 50
COLUMNS = 150
OPERATION_TEXTS = {"run": "runs came to their end", "checkpoint": "checkpoints were committed",
                   "output": "outputs were committed", "rebuild": "datasets were rebuilt or moved",
                   "flush": "copies to the prefix directory", "fetch": "copies from the prefix directory",
                   "restart": "restarts were taken by the program",
                   "publish": "datasets were brought to the prefix directory after the job"}
MOVED_TEXTS = {"write": "written by the program", "encode": "protected in the caches",
               "flush": "to the prefix directory", "fetch": "from the prefix directory",
               "scavenge": "saved from the nodes of dead jobs"}
END_TEXTS = {"finished": "came to its end", "halted": "stopped as asked", "died": "died",
             "open": "no end was logged"}


class Unread(NamedTuple):
    """A log that could not be read."""

    source: str
    reason: str


def clock_text(time_s: float) -> str:
    """Local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_s))


def share_text(part: float, whole: float) -> str:
    """A percentage. It is 100 only for the whole, and 0 only for nothing."""
    if whole <= 0:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if percent < 10 or 99 < percent < 100 else f"{percent:.0f} %"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table. Cells are HTML. The first column has the names of rows; the columns of `numbers` are aligned to the
    right."""
    def cell(tag: str, scope: str, i: int, text: str) -> str:
        shape = ' class="number"' if i in numbers else ""
        return f"<{tag}{scope}{shape}>{text}</{tag}>"

    top = "".join(cell("th", ' scope="col"', i, text) for i, text in enumerate(head))
    body = "".join("<tr>" + "".join(cell("td" if i else "th", "" if i else ' scope="row"', i, text)
                                    for i, text in enumerate(row)) + "</tr>" for row in rows)
    return (f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
            f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>")


def legend(phases: Iterable[str]) -> str:
    """The meaning of the colours."""
    items = "".join(f'<li><i class="p-{phase}"></i>{PHASES[phase]}</li>' for phase in phases)
    return f'<ul class="legend">{items}</ul>'


def section(title: str, *parts: str) -> str:
    """A section of the page with a headline."""
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>"


def rate_of(moved: Sequence[Moved]) -> str:
    """The rate of all transfers together."""
    seconds = sum(one.seconds for one in moved)
    return f"{size_text(sum(one.bytes for one in moved) / seconds)}/s" if seconds > 0 else "–"


def saving_rate(totals: "Totals") -> str:
    """The rate of writing and protecting together."""
    written = totals.moved["write"]
    seconds = sum(one.seconds for kind in ("write", "encode") for one in totals.moved[kind])
    return f"{size_text(sum(one.bytes for one in written) / seconds)}/s" if seconds > 0 else "–"


class Totals:
    """The sums over all jobs."""

    def __init__(self, histories: Sequence[History]) -> None:
        self.runs = [run for history in histories for run in history.runs]
        self.seconds = {phase: sum(history.seconds()[phase] for history in histories) for phase in PHASES}
        self.all_s = sum(self.seconds.values())
        self.lost_s = sum(history.lost_s() for history in histories)
        self.flushed = sum(history.flushed for history in histories)
        self.state_seconds = {state: sum(history.state_seconds[state] for history in histories) for state in STATES}
        self.unflushed = sum(history.unflushed for history in histories)
        self.unflushed_seconds = {state: sum(history.unflushed_seconds[state] for history in histories) for state in STATES}
        self.moved = {kind: [one for history in histories for one in history.moved(kind)] for kind in MOVED_TEXTS}
        self.outcomes: Dict[str, Outcomes] = {name: Outcomes() for name in OPERATION_TEXTS}
        for history in histories:
            for name, outcomes in history.outcomes().items():
                self.outcomes[name].add(outcomes)


def cards(totals: Totals) -> str:
    """The most important figures."""
    died = totals.outcomes["run"].bad
    checkpoints = totals.outcomes["checkpoint"]
    cost = sum(totals.seconds[phase] for phase in ("write", "encode", "flush", "failed"))
    shown = [
        (str(len(totals.runs)), f"runs, of which {died} died"),
        (str(checkpoints.good), f"checkpoints committed, {checkpoints.bad} failed"),
        (share_text(totals.seconds["compute"], totals.all_s), f"of {time_text(totals.all_s)} spent computing"),
        (share_text(cost, totals.all_s), "of the time spent on saving data"),
        (saving_rate(totals), "written and protected, over all ranks"),
        (time_text(totals.lost_s), "lost by failures: waiting, and computing again")]
    return '<ul class="cards">' + "".join(f'<li class="card"><b>{number}</b><span>{text}</span></li>'
                                          for number, text in shown) + "</ul>"


def outcome_table(outcomes: Dict[str, Outcomes]) -> str:
    """A table of attempts and successes."""
    rows = []
    for name, text in OPERATION_TEXTS.items():
        one = outcomes[name]
        failed = f'<span class="bad">{one.bad} failed</span>' if one.bad else "0 failed"
        rows.append((text, f"{one.good} of {one.all}", share_text(one.good, one.all), failed,
                     meter(one.good, one.all) if one.all else ""))
    return table("Successes over all jobs", ("what", "well", "rate", "not", ""), rows, (1, 2, 3))


def state_lines(totals: Totals) -> str:
    """How long datasets could be lost: those that came to the prefix directory, and the others."""
    lines = [(totals.flushed, totals.state_seconds, "reached the prefix directory. Before that, each was on average"),
             (totals.unflushed, totals.unflushed_seconds, "did not reach the prefix directory. Until a newer checkpoint took "
              "its place, it was deleted or lost, or its run ended, each was on average")]
    return "".join(f"<p>{count_text(count, 'dataset')} {text} {means_text(seconds, count)}.</p>"
                   for count, seconds, text in lines if count)


def means_text(seconds: Mapping[str, float], count: int) -> str:
    """The time in each state, of one of `count` datasets."""
    return ", ".join(f"{time_text(seconds[state] / count)} {text}" for state, text in STATES.items())


def time_table(totals: Totals) -> str:
    """How the time was spent."""
    rows = []
    for phase, text in PHASES.items():
        spans = [span.to_s - span.from_s for run in totals.runs for span in run.spans if span.phase == phase]
        spent = totals.seconds[phase]
        middle, most = median(spans), max(spans, default=None)
        rows.append((f'<i class="key p-{phase}"></i>{text}', str(len(spans)) if phase != "other" else "–",
                     time_text(spent), share_text(spent, totals.all_s),
                     time_text(middle) if middle is not None else "–", time_text(most) if most is not None else "–"))
    return table("Time of all runs by phase", ("phase", "times", "in all", "share", "median", "longest"), rows,
                 (1, 2, 3, 4, 5))


def rate_table(moved: Dict[str, List[Moved]]) -> str:
    """A table of transfer rates."""
    rows = []
    for kind, text in MOVED_TEXTS.items():
        timed = [one for one in moved[kind] if one.seconds > 0]
        rates = [one.bytes / one.seconds for one in timed]
        steps = binned([(rate,) for rate in rates], 40)
        picture = columns(steps, [kind], "tiny", f"rates of what was {text}, in order of time") if rates else ""
        rows.append((text, str(len(moved[kind])), size_text(sum(one.bytes for one in moved[kind])), rate_of(timed),
                     *(f"{size_text(rate)}/s" if rates else "–"
                       for rate in (min(rates, default=0), median(rates) or 0, max(rates, default=0))), picture))
    return table("Rates, over all ranks together",
                 ("bytes", "times", "in all", "mean", "slowest", "median", "fastest", "in order of time"), rows,
                 (1, 2, 3, 4, 5, 6))


def run_text(run: Run, longest_s: float) -> str:
    """The line of a run in the timeline."""
    why = run.halt or run.launch
    end = END_TEXTS[run.end] + (f" ({why})" if why else "")
    shape = {"died": "bad", "finished": "good", "halted": "good"}.get(run.end, "faint")
    spent = ", ".join(f"{PHASES[phase]} {share_text(seconds, run.duration_s())}"
                      for phase, seconds in run.seconds().items() if seconds > 0)
    marks = [(failure.time_s, f"{failure.what} {failure.name}: {failure.reason}") for failure in run.failures[:20]]
    if run.end == "died":
        marks.append((run.last_s, "died; this was its last sign of life"))
    where = "".join(
        f'<span class="mark" role="img" aria-label="{escape(text)}" title="{escape(text)}" '
        f'style="left:{min(98.5, max(1.5, 100 * (at - run.begun_s) / (longest_s or 1))):.2f}%">×</span>'
        for at, text in marks)
    return (f'<div class="run"><p><b>Run {run.number}</b><span>{clock_text(run.begun_s)}</span>'
            f'<span>{time_text(run.duration_s())}</span><span class="faint name">job {escape(run.job or "?")}, '
            f'{escape(run.about or "size not logged")}</span><span class="{shape} name">{escape(end)}</span></p>'
            f'<div class="lane">{lane(run, longest_s, f"Run {run.number}: {spent}")}{where}</div></div>')


def timeline(runs: Sequence[Run]) -> str:
    """The timelines of all runs, below each other, each from its beginning."""
    shown = runs[-RUNS_SHOWN:]
    longest = max(run.duration_s() for run in shown)
    phases = [phase for phase in PHASES if any(run.seconds()[phase] > 0 for run in shown)]
    axis = "".join(f"<span>{time_text(longest * i / 4)}</span>" for i in (0, 2, 4))
    left_out = f"The last {RUNS_SHOWN} of {len(runs)} runs. " if len(runs) > RUNS_SHOWN else ""
    return (f'<h3>Runs</h3><p class="faint">{left_out}Each from its beginning on; × is a failure.</p>'
            + "".join(run_text(run, longest) for run in shown)
            + f'<div class="axis" aria-hidden="true">{axis}</div>{legend(phases)}')


def cost_chart(history: History) -> str:
    """The time that each dataset took."""
    flushed = {one.name: one.seconds for one in history.moved("flush")}
    stacks: List[Tuple[float, ...]] = [
        (write.seconds, encode.seconds, flushed.get(write.name, 0.0))
        for write, encode in zip(history.moved("write"), history.moved("encode"))]
    if not stacks:
        return ""
    shown = binned(stacks, COLUMNS)
    highest = max(sum(stack) for stack in shown)
    merged = (f", {len(stacks)} of them in {COLUMNS} columns, each the mean of neighbours"
              if len(stacks) > COLUMNS else "")
    label = f"cost of {count_text(len(stacks), 'dataset')} in order of time, at most {time_text(highest)}"
    return (f'<h3>Cost of each dataset</h3><p class="faint">In order of time{merged}; the highest column is '
            f"{time_text(highest)}.</p>" + columns(shown, ("write", "encode", "flush"), "steps", label)
            + legend(("write", "encode", "flush")))


def failure_table(failures: Sequence[Failure]) -> str:
    """The last failures."""
    if not failures:
        return ""
    shown = failures[-FAILURES_SHOWN:]
    caption = f"The last {len(shown)} of {len(failures)} failures" if len(shown) < len(failures) else "All failures"
    rows = [(clock_text(one.time_s), escape(one.what), f'<span class="name">{escape(one.name or "–")}</span>',
             f'<span class="name">{escape(one.reason or "no reason was logged")}</span>') for one in shown]
    return "<h3>Failures</h3>" + table(caption, ("when", "what", "dataset or node", "why"), rows)


def job_section(history: History) -> str:
    """The sections of one log."""
    name = f'<span class="name">{escape(history.source)}</span>'
    failures = failure_table(history.failures())
    if not history.runs:
        return section(name, "<p>No run has logged anything here yet.</p>", failures)
    first, last = history.runs[0].begun_s, history.last_s()
    newest = (f", the newest checkpoint is <b class=\"name\">{escape(history.newest)}</b> of "
              f"{clock_text(history.newest_s)}" if history.newest_s else ", no checkpoint was committed")
    damaged = (f'<p class="bad">{count_text(history.damaged, "line")} of the log could not be read.</p>'
               if history.damaged else "")
    return section(name, f"<p>{clock_text(first)} to {clock_text(last)}: {count_text(len(history.runs), 'run')}"
                         f"{newest}.</p>{damaged}",
                   timeline(history.runs), cost_chart(history),
                   failures)


def limits(unread: Sequence[Unread]) -> str:
    """The logs that could not be read."""
    missing = "".join(f'<p class="bad name">{escape(one.source)}: {escape(one.reason)}</p>' for one in unread)
    return section("What this page cannot know", missing + (
        "<p>It is made of the logs that the library writes (CAIRN_LOG_JSON=1), by rank 0's clock. A process that dies "
        "logs nothing: cairn run logs its death, or else the next run does. It is taken to have died at its last entry, and "
        "the time since then counts as “not logged”. Without cairn run the last run may still be alive. A log is taken "
        "for that of one job at a time.</p><p>Time lost is what failures cost: from the checkpoint that the next run "
        "restarted from (or from the start, if it began from scratch) to the failure, and from there until it computed.</p>"))


def page_of(histories: Sequence[History], unread: Sequence[Unread], now_s: float) -> str:
    """The whole file."""
    totals = Totals(histories)
    body = [f"<h1>Cairn: {count_text(len(histories), 'job')}</h1>"
            f'<p class="faint">Made {clock_text(now_s)}, local time.</p>']
    if totals.runs:
        phases = {phase: seconds for phase, seconds in totals.seconds.items() if seconds > 0}
        body += [cards(totals),
                 section("Where the time went", share_bar(phases, "Time by phase; the table below has the figures"),
                         legend(phases), "<h3>Phases</h3>", time_table(totals), state_lines(totals)),
                 section("How often it went well", outcome_table(totals.outcomes)),
                 section("How fast", rate_table(totals.moved))]
    else:
        body.append(section("Nothing to show yet", (
            "<p>The logs hold no run: no program has called SCR_Init with CAIRN_LOG_JSON=1 since they were begun. "
            "cairn run sets that by itself.</p>")))
    body += [job_section(history) for history in histories] + [limits(unread)]
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>Cairn report</title><style>{CSS}</style></head><body><main>{''.join(body)}</main></body></html>\n")
