"""cairn report: what the logs of jobs contain, as a page and as figures for monitoring."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from cairn.command_line import STANDARD_OUTPUT, Parser, report
from cairn.job_log import NAME, read_log
from cairn.native import Native, Trouble, check_prefix
from cairn.reporting import metrics
from cairn.reporting.history import History, history_of
from cairn.account import count_text
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
    return made


def prefixes_of(options: argparse.Namespace, native_path: Path) -> List[str]:
    """As the user names them, or the one of the settings."""
    if options.prefix or options.log:
        named: List[str] = options.prefix
        return named
    return [Native(native_path, None, dict(os.environ)).prefix]


def logs_of(options: argparse.Namespace, prefixes: Sequence[str]) -> Dict[Path, str]:
    """Each once, with the name that it has on the page."""
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


def write(name: str, text: str) -> None:
    """A file is replaced as a whole: a program may be reading the one that was there before."""
    data, path = text.encode("utf-8", "replace"), Path(name)
    new = path.with_name(path.name + ".tmp") if path.name else path
    try:
        if name == STANDARD_OUTPUT:
            sys.stdout.buffer.write(data)
        elif path.exists() and not path.is_file():  # a pipe or /dev/null must stay what it is
            path.write_bytes(data)
        else:
            new.write_bytes(data)
            new.replace(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Trouble(f"{name}: {error.strerror}; name another file by --output or --metrics") from error


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    made = parser()
    options = made.parse_args(list(arguments))
    if options.output == options.metrics == STANDARD_OUTPUT:
        made.error("--output and --metrics cannot both be the standard output")
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
    runs = sum(len(history.runs) for history in histories)
    where = "standard output" if options.output == STANDARD_OUTPUT else options.output
    summary = f"{where}: {count_text(runs, 'run')} of {count_text(len(histories), 'job')}"
    print(summary, file=sys.stderr if STANDARD_OUTPUT in (options.output, options.metrics) else sys.stdout)
    return 1 if missing else 0
