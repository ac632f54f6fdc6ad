"""cairn prerun: prepares a prefix directory, for scripts that launch their program themselves."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any, Dict, Sequence

from cairn.commands.run import job_of
from cairn.halting import LIBRARYS
from cairn.native import Native, Trouble
from cairn.resources import manager_of


def parser() -> argparse.ArgumentParser:
    """The command line. `-v` stands in scripts that were written for SCR."""
    made = argparse.ArgumentParser(
        prog="cairn prerun", description="Prepares a prefix directory before the first launch of an allocation, for "
        "scripts that launch their program themselves: takes back what earlier runs have recorded of their end.",
        epilog="Exit codes: 0 done, 1 it could not be done, 2 wrong usage.")
    add = made.add_argument
    add("-p", "--prefix", metavar="FOLDER", help="the prefix directory, in place of SCR_PREFIX")
    add("--export", action="store_true", help="print what the program's environment should have, for eval in a shell")
    add("--json", action="store_true", help="print the same as JSON")
    add("-v", dest="verbose", action="store_true", help=argparse.SUPPRESS)
    return made


def prepare(options: argparse.Namespace, native_path: Path) -> Dict[str, Any]:
    """Does it; what the program's environment should have."""
    environment = dict(os.environ)
    native = Native(native_path, options.prefix, environment)
    folder = Path(native.prefix) / ".cairn"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Trouble(f"{folder}: {error.strerror}; the prefix directory (SCR_PREFIX, --prefix) must exist and be "
                      "writable") from error
    if native.halt().reason in LIBRARYS:
        native.take_back_stop()
    manager = manager_of(environment, None, native.chosen("SCR_NODELIST"))
    found = {"SCR_PREFIX": native.prefix, "SCR_JOB_ID": job_of(native, manager)}
    end_time_s = native.number("SCR_END_TIME")
    left_s = None if end_time_s else manager.seconds_left(time.time())
    if end_time_s or left_s is not None:
        found["SCR_END_TIME"] = str(end_time_s or int(time.time() + (left_s or 0)))
    return found


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        found = prepare(options, native_path)
    except Trouble as trouble:
        print(f"cairn: error: {trouble}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.export:
        print("\n".join(f"export {key}={shlex.quote(value)}" for key, value in found.items()))
    return 0
