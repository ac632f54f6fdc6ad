"""cairn report: reports from the logs of jobs, as a page and as metrics."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from cairn.command_line import STANDARD_OUTPUT, Parser, report
from cairn.job_log import NAME, read_log
from cairn.native import Native, Trouble, check_prefix
from cairn.reporting import metrics
from cairn.reporting.history import ENDS, History, history_of
from cairn.account import count_text
from cairn.output_file import write
from cairn.reporting.page import Unread, page_of


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(prog="cairn report",
                  epilog="Exit codes: 0 done, 1 no log could be read, a prefix directory does not exist, or a file "
                         "could not be written, 2 wrong usage.")
    add = made.add_argument
    add("log", nargs="*", metavar="LOG", help="A log.json that the library has written")
    add("-p", "--prefix", action="append", default=[], metavar="DIR",
        help="A prefix directory, for the log in it; several may be given (with neither: SCR_PREFIX)")
    add("-o", "--output", default="report.html", metavar="FILE", help="The page (report.html); - is the standard output")
    add("--metrics", metavar="FILE", help="Also write figures in OpenMetrics; - is the standard output")
    add("--json", action="store_true", help="Print JSON")
    return made


def prefixes_of(options: argparse.Namespace, native_path: Path) -> List[str]:
    """The prefix directories of the command line, or the one of the settings."""
    if options.prefix or options.log:
        named: List[str] = options.prefix
        return named
    return [Native(native_path, None, dict(os.environ)).prefix]


def logs_of(options: argparse.Namespace, prefixes: Sequence[str]) -> Dict[Path, str]:
    """Each log once, with its name on the page."""
    found = {Path(prefix).resolve() / ".cairn" / NAME: str(Path(prefix).resolve()) for prefix in prefixes}
    for log in options.log:
        found.setdefault(Path(log).resolve(), str(Path(log).resolve()))
    return found


def read_all(logs: Dict[Path, str]) -> Tuple[List[History], List[Unread]]:
    """The logs that can be read, and those that cannot."""
    histories: List[History] = []
    unread: List[Unread] = []
    for path, name in logs.items():
        try:
            log = read_log(path)
        except OSError as error:
            remedy = "; CAIRN_LOG_JSON=1 makes the library write it" if isinstance(error, FileNotFoundError) else ""
            unread.append(Unread(str(path), f"{error.strerror}{remedy}"))
            continue
        if log.damaged and not log.entries:
            unread.append(Unread(str(path), "no line of it is an entry of a log; name a log.json that the library has written"))
        else:
            histories.append(history_of(name, log.entries, log.damaged))
    return histories, unread


def existing(prefixes: Sequence[str]) -> Tuple[List[str], List[Unread]]:
    """The prefix directories that exist, and the others, which it reports."""
    found, missing = [], []
    for prefix in prefixes:
        try:
            check_prefix(prefix)
            found.append(prefix)
        except Trouble as trouble:
            report(trouble)
            missing.append(Unread(prefix, "this prefix directory could not be read"))
    return found, missing


def facts_of(history: History) -> Dict[str, Any]:
    """The facts of one job, for --json."""
    return {"log": history.source, "runs": len(history.runs), "ends": {end: sum(run.end == end for run in history.runs) for end in ENDS},
            "newest": history.newest, "newest_s": history.newest_s,
            "operations": {name: {"good": one.good, "bad": one.bad} for name, one in history.outcomes().items()},
            "seconds": history.seconds(), "lost_s": history.lost_s(), "damaged_lines": history.damaged,
            "failures": [one._asdict() for one in history.failures()]}


def show(options: argparse.Namespace, histories: Sequence[History], unread: Sequence[Unread]) -> None:
    """Prints what was written."""
    if options.json:
        print(json.dumps({"page": options.output, "metrics": options.metrics, "jobs": [facts_of(one) for one in histories],
                          "unread": [one._asdict() for one in unread]}, indent=2))
        return
    runs = sum(len(history.runs) for history in histories)
    where = "standard output" if options.output == STANDARD_OUTPUT else options.output
    summary = f"{where}: {count_text(runs, 'run')} of {count_text(len(histories), 'job')}"
    print(summary, file=sys.stderr if STANDARD_OUTPUT in (options.output, options.metrics) else sys.stdout)


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    made = parser()
    options = made.parse_args(list(arguments))
    if [options.output, options.metrics, STANDARD_OUTPUT if options.json else ""].count(STANDARD_OUTPUT) > 1:
        made.error("only one of --output, --metrics and --json can be the standard output; give a file")
    try:
        named = prefixes_of(options, native_path)
        prefixes, missing = existing(named)
        logs = logs_of(options, prefixes)
        if not logs:
            return 1
        histories, unread = read_all(logs)
        for one in unread:
            print(f"cairn: warning: {one.source}: {one.reason}", file=sys.stderr)
        if not histories:
            raise Trouble("no log could be read; nothing was written")
        write(options.output, page_of(histories, missing + unread, time.time()))
        if options.metrics:
            write(options.metrics, metrics.text_of(histories))
    except Trouble as trouble:
        report(trouble)
        return 1
    show(options, histories, missing + unread)
    return 1 if missing else 0
