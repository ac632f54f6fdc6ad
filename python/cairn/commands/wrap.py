"""cairn wrap: runs a program that knows nothing of Cairn, with its checkpoint files in the cache."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from cairn.account import count_text
from cairn.command_line import Parser, report
from cairn.native import Native, Trouble, WrongUsage, check_prefix
from cairn.other_nodes import passed_on
from cairn.processes import ends_with_us
from cairn.wrapping import UNFINISHED_JOB, Forecast, cache_of, environment_of, events_in, files_waiting, is_static, library_of, lines_of, names_of

FAILURE, USAGE, NOT_FOUND = 1, 2, 127
STAYS_PLAIN = "all files stay in their plain places"  # says the library if it cannot work
SHOWN_MOST = 5


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="cairn wrap",
        description="Its checkpoint files are written to the cache of the node, and moved to the directory where the program "
        "has put them when the program ends. The files of an MPI program become checkpoints, protected across nodes; of other programs, "
        "the loss of a node loses what was not moved yet.",
        epilog="Exit codes: 0 done, 1 files could not be moved or the library cannot work, 2 wrong usage, 127 the program cannot "
        "be started; else that of the program.")
    add = made.add_argument
    add("--checkpoint", action="append", default=[], metavar="PATTERN", help="A regular expression that matches checkpoint "
        "files, with the step as (?<step>...); may be repeated. Default: SCR_CHECKPOINT_PATTERN")
    add("-p", "--prefix", metavar="DIR", help="The directory below which checkpoint files lie, in place of SCR_PREFIX")
    add("--cache", metavar="DIR", help="The node-local directory, in place of SCR_CACHE_BASE")
    add("--dry-run", action="store_true", help="Run the program with all files in their places, and print for each file what "
        "would be done and why")
    add("--all", action="store_true", help="With --dry-run: list also files that no pattern matches")
    add("--settle", action="store_true", help="Run no program, but move what an earlier one left in the cache of this node")
    add("--json", action="store_true", help="Print JSON, with --dry-run and --settle")
    add("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help="The program with its arguments; it may be a launcher")
    return made


def run(command: Sequence[str], environment: Dict[str, str]) -> int:
    """The exit code, as a shell has it. Signals are for the program; this command ends after it."""
    try:
        # Launchers hand descriptors to their ranks, and kill this process where they mean the program.
        child = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=ends_with_us(signal.SIGKILL))
    except OSError as error:
        report(f"{command[0]}: {error.strerror}")
        return NOT_FOUND
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminated = signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, terminated)
    return code if code >= 0 else 128 - code


def is_in_use(cache: Path) -> bool:
    """Whether a wrapped process of this node is alive: each shares the lock."""
    try:
        with open(cache / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Wrapped:
    """The settings of one call of the command."""

    def __init__(self, options: argparse.Namespace, native: Native, native_path: Path) -> None:
        check_prefix(native.prefix)
        self.prefix = native.prefix
        self.patterns: List[str] = options.checkpoint
        self.library = library_of(native_path)
        self.environment = environment_of(self.library, self.prefix, self.patterns, os.environ)
        if not self.patterns:
            self._use_patterns_of_scr(native, options.settle)
        base = options.cache or native.settings["SCR_CACHE_BASE"]
        on_any_node = cache_of(os.path.abspath(base), native.settings["SCR_USER_NAME"], self.prefix)
        self.cache = Path(on_any_node.replace("%n", native.settings.get("SCR_NODE_NAME") or os.uname().nodename))
        self.cached = {**self.environment, "CAIRN_WRAP_CACHE": on_any_node, "SCR_PREFIX": self.prefix}
        if options.cache:
            self.cached["SCR_CACHE_BASE"] = os.path.abspath(options.cache)
        if f"{self.cache.resolve()}/".startswith(os.path.realpath(self.prefix) + "/"):
            raise Trouble(f"the cache {self.cache} is inside of the prefix directory; name another with --cache or SCR_CACHE_BASE")

    def _use_patterns_of_scr(self, native: Native, needs_none: bool) -> None:
        pattern = native.chosen("SCR_CHECKPOINT_PATTERN")
        if pattern is None and not needs_none:
            raise WrongUsage("name the checkpoint files with --checkpoint PATTERN, or set SCR_CHECKPOINT_PATTERN")
        self.environment["SCR_CHECKPOINT_PATTERN"] = pattern or ""
        self.environment["SCR_CHECKPOINT_PATTERN_TOKEN"] = native.settings["SCR_CHECKPOINT_PATTERN_TOKEN"]

    def settle(self) -> List[str]:
        """A program that does nothing: as the last process of this node it moves the files. Returns those that stay, without
        a program that uses them: such a program moves them when it ends."""
        self.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = subprocess.run(["/bin/true"], env=self.cached, text=True,
                              stderr=subprocess.PIPE, check=False)
        if STAYS_PLAIN in done.stderr or "cannot be preloaded" in done.stderr:
            raise Trouble(done.stderr.strip().replace("libcairn-interpose: ", "", 1).replace(f"; {STAYS_PLAIN}", ""))
        sys.stderr.write(done.stderr)
        left = files_waiting(self.cache)
        return [] if left and is_in_use(self.cache) else left

    def redirect(self, command: Sequence[str]) -> int:
        """Files of a killed program come first, so that the new one finds them, and no newer one is lost to them."""
        if is_static(shutil.which(command[0]) or command[0]):
            raise Trouble(f"{command[0]} is statically linked: the library cannot be preloaded into it, and all its files would stay "
                          "in their plain places. Write its checkpoints to a mount of crfs --scr, or link it dynamically")
        self.report_left(self.settle())
        code = run(*passed_on(command, self.cached, str(self.library)))
        left = self.settle()
        self.report_left(left)
        return code or (FAILURE if left else 0)

    def report_left(self, left: Sequence[str]) -> None:
        if left:
            names = ", ".join(left[:SHOWN_MOST]) + (f" and {len(left) - SHOWN_MOST} more" if len(left) > SHOWN_MOST else "")
            report(f"{count_text(len(left), 'file')} in {self.cache}/files could not be moved to {self.prefix}: {names}. A process "
                   "may have them open, or the message above names the reason. \"cairn wrap --settle\" tries again")

    def forecast(self, command: Sequence[str], shows_all: bool, as_json: bool) -> int:
        """The dry run. Its report goes to stderr, as the output is the program's."""
        with tempfile.TemporaryDirectory(prefix="cairn.wrap.") as folder:
            environment = {**self.environment, "CAIRN_WRAP_LOG": folder}
            self._check(environment)
            code = run(command, environment)
            events = events_in(Path(folder))
        forecast = Forecast(events)
        notes = list(forecast.notes(self.patterns))
        if not events:
            notes.append("the program opened no file, or the library was not in it: it may be statically linked, have more rights "
                         "than its user, or run on other nodes")
        if as_json:
            print(json.dumps({"files": [one.as_json() for _, one in sorted(forecast.files.items())], "notes": notes, "exit_code": code}))
            return code
        print(f"cairn wrap would do this with the files of {command[0]} (prefix directory {names_of(self.prefix, {})[0]}):", file=sys.stderr)
        for line in lines_of(forecast, self.prefix, shows_all):
            print(line, file=sys.stderr)
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
        return code

    def _check(self, environment: Dict[str, str]) -> None:
        """A wrong pattern is found before the program starts."""
        with tempfile.TemporaryDirectory(prefix="cairn.wrap.") as folder:
            done = subprocess.run(["/bin/true"], env={**environment, "CAIRN_WRAP_LOG": folder}, text=True, stderr=subprocess.PIPE,
                                  check=False)
        if done.stderr:
            raise Trouble(done.stderr.strip().replace("libcairn-interpose: ", "", 1).replace(f"; {STAYS_PLAIN}", ""))


def settle(wrapped: Wrapped, as_json: bool) -> int:
    """For a node on which a program has died."""
    before = files_waiting(wrapped.cache)
    left = wrapped.settle() if before else []
    moved = len(before) - len(left)
    if as_json:
        print(json.dumps({"moved": moved, "left": left, "cache": str(wrapped.cache)}))
    else:
        print(f"{count_text(moved, 'file')} moved to {wrapped.prefix}")
        wrapped.report_left(left)
        if (wrapped.cache / UNFINISHED_JOB).exists():
            print(f"{wrapped.cache}/files stays as it is: it belongs to an MPI program that did not finish. The program's next run takes "
                  "its newest checkpoint; cairn scavenge saves that without another run")
    return FAILURE if left else 0


def command_of(options: argparse.Namespace) -> List[str]:
    """The words of the program, without the "--" before them."""
    words: List[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
    if options.settle and (words or options.dry_run):
        raise WrongUsage("--settle runs no program")
    if not options.settle and not words:
        raise WrongUsage("name the program after --")
    if options.json and not (options.dry_run or options.settle):
        raise WrongUsage("--json belongs to --dry-run or --settle")
    return words


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    command: Optional[List[str]] = None
    try:
        command = command_of(options)
        wrapped = Wrapped(options, Native(native_path, options.prefix, dict(os.environ)), native_path)
        if options.settle:
            return settle(wrapped, options.json)
        if options.dry_run:
            return wrapped.forecast(command, options.all, options.json)
        return wrapped.redirect(command)
    except WrongUsage as wrong:
        report(wrong)
        return USAGE
    except Trouble as trouble:
        report(trouble)
        return FAILURE
