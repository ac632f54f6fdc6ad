"""cairn report: what the logs of jobs tell, as a page and as figures for monitoring."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from cairn.job_log import NAME, read_log
from cairn.native import Native, Trouble
from cairn.reporting import metrics
from cairn.reporting.history import History, history_of
from cairn.reporting.page import Unread, count_text, page_of


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="cairn report", description=__doc__.partition(": ")[2],
                                   epilog="Exit codes: 0 done, 1 no log could be read, or a file not written, "
                                          "2 wrong usage.")
    add = made.add_argument
    add("log", nargs="*", metavar="LOG", help="a log.json that the library has written")
    add("-p", "--prefix", action="append", default=[], metavar="DIR",
        help="a prefix directory, for the log in it; several may be given (with neither: SCR_PREFIX)")
    add("-o", "--output", default="report.html", metavar="FILE", help="the page (report.html)")
    add("--metrics", metavar="FILE", help="also write figures in OpenMetrics")
    return made


def logs_of(options: argparse.Namespace, native_path: Path) -> Dict[Path, str]:
    """Each once, with the name that it has on the page."""
    prefixes = options.prefix
    if not prefixes and not options.log:
        prefixes = [Native(native_path, None, dict(os.environ)).prefix]
    found = {Path(prefix).resolve() / ".cairn" / NAME: str(Path(prefix).resolve()) for prefix in prefixes}
    for log in options.log:
        found.setdefault(Path(log).resolve(), str(Path(log).resolve()))
    return found


def read_all(logs: Dict[Path, str]) -> Tuple[List[History], List[Unread]]:
    """What there is, and what cannot be read."""
    histories: List[History] = []
    unread: List[Unread] = []
    for path, name in logs.items():
        try:
            log = read_log(path)
        except OSError as error:
            unread.append(Unread(str(path), f"{error.strerror}; CAIRN_LOG_JSON=1 makes the library write it"))
        else:
            histories.append(history_of(name, log.entries, log.damaged))
    return histories, unread


def write(path: Path, text: str) -> None:
    """As a whole: somebody may be reading the one before."""
    new = path.with_name(path.name + ".tmp")
    try:
        new.write_text(text, encoding="utf-8", errors="replace")
        new.replace(path)
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from error


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        histories, unread = read_all(logs_of(options, native_path))
        for one in unread:
            print(f"cairn: warning: {one.source}: {one.reason}", file=sys.stderr)
        if not histories:
            raise Trouble("no log could be read; nothing was written")
        write(Path(options.output), page_of(histories, unread, time.time()))
        if options.metrics:
            write(Path(options.metrics), metrics.text_of(histories))
    except Trouble as trouble:
        print(f"cairn: error: {trouble}", file=sys.stderr)
        return 1
    runs = sum(len(history.runs) for history in histories)
    print(f"{options.output}: {count_text(runs, 'run')} of {count_text(len(histories), 'job')}")
    return 0
