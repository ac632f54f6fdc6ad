"""What all commands have in common: the style of their errors, and how they end when their output cannot be written."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NoReturn, Sequence

from cairn.colour import coloured
from cairn.help_text import help_of, summaries

FAILURE, USAGE = 1, 2
CLOSED_PIPE = 128 + signal.SIGPIPE  # as a shell reports a program that the signal has ended
INTERRUPTED = 128 + signal.SIGINT
STANDARD_OUTPUT = "-"  # in place of the name of a file

Main = Callable[[Sequence[str], Path], int]


class VersionWanted(Exception):
    """Instead of what else is on the command line."""


class ShowVersion(argparse.Action):
    """The native command knows it."""

    def __call__(self, *_: object) -> NoReturn:
        raise VersionWanted


class Parser(argparse.ArgumentParser):
    """Its help and its errors look like those of the native commands. `description` adds to the summary of the table."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog=prog, add_help=False, **more)
        self.add_argument("-h", "--help", action="help", help="Show this help")
        self.add_argument("-V", "--version", action=ShowVersion, nargs=0, help="Show the version")

    def format_help(self) -> str:
        return help_of(self, summaries()[self.prog.removeprefix("cairn ").replace("_", "-")])

    def error(self, message: str) -> NoReturn:
        report(f'{self.prog}: {message}; see "{self.prog} --help"')
        raise SystemExit(USAGE)


def report(error: object) -> None:
    """An error, for people."""
    print(f"cairn: {coloured('error:', 'red', sys.stderr)} {error}", file=sys.stderr)


def text_of(error: OSError) -> str:
    """Without its number. Only the output is written without a name."""
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    is_write = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
    return f"the output cannot be written: {error.strerror}" if is_write else str(error.strerror or error)


def exit_code_of(main: Main, arguments: Sequence[str], native_path: Path) -> int:
    """Of a command. Its output is written by then, or it is known that it cannot be."""
    try:
        code = _run(main, arguments, native_path)
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        _discard_output()
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        _discard_output()
        report(text_of(error))
        return FAILURE
    return code


def _run(main: Main, arguments: Sequence[str], native_path: Path) -> int:
    try:
        return main(arguments, native_path)
    except VersionWanted:
        return subprocess.run([native_path, "--version"], check=False).returncode
    except SystemExit as end:  # of argparse
        return end.code if isinstance(end.code, int) else 0


def _discard_output() -> None:
    """What is still in the buffers would fail again when Python ends, and print a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, AttributeError):
        os.dup2(nowhere, sys.stdout.fileno())
