"""Shared by all commands: the style of errors, and the end of a command when its output cannot be written."""

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
CLOSED_PIPE = 128 + signal.SIGPIPE  # as a shell reports a program ended by the signal
INTERRUPTED = 128 + signal.SIGINT
STANDARD_OUTPUT = "-"  # in place of the name of a file

Main = Callable[[Sequence[str], Path], int]


class VersionWanted(Exception):
    """The version is requested; everything else on the command line is ignored."""


class ShowVersion(argparse.Action):
    """The native command prints the version."""

    def __call__(self, *_: object) -> NoReturn:
        raise VersionWanted


class Parser(argparse.ArgumentParser):
    """Prints help and errors like the native commands. `description` follows the summary from the table of commands."""

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
    """Prints an error to stderr."""
    print(f"cairn: {coloured('error:', 'red', sys.stderr)} {error}", file=sys.stderr)


def text_of(error: OSError) -> str:
    """The text of the error, without its number. Only errors of writing the output have no file name."""
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    is_write = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
    return f"the output cannot be written: {error.strerror}" if is_write else str(error.strerror or error)


def exit_code_of(main: Main, arguments: Sequence[str], native_path: Path) -> int:
    """Runs a command and returns its exit code. When it returns, the output has been written, or the error has been
    reported."""
    try:
        code = _run(main, arguments, native_path)
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended, as `| head` does
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
    """Without this, Python would write the buffers again at its end, and print a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, AttributeError):
        os.dup2(nowhere, sys.stdout.fileno())
