"""cairn prerun: prepares a prefix directory, for scripts that launch their program themselves."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any, Dict, Sequence

from cairn.commands import for_scripts
from cairn.commands.run import job_of
from cairn.halting import PASSING
from cairn.native import Trouble


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = for_scripts.parser(
        "cairn prerun", "Call it before the first launch of an allocation: it removes what earlier runs have "
        "recorded of their end.",
        "Exit codes: 0 done, 1 it could not be done, 2 wrong usage.")
    made.add_argument("--export", action="store_true",
                      help="Print what the program's environment should have, for eval in a shell; --json: as JSON")
    return made


def prepare(options: argparse.Namespace, native_path: Path) -> Dict[str, Any]:
    """Prepares the directory. Returns additions to the program's environment."""
    native, manager, _ = for_scripts.here(options.prefix, native_path)
    directory = Path(native.prefix) / ".cairn"
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise Trouble(f"{directory}: {error.strerror}; the prefix directory (SCR_PREFIX, --prefix) must exist and be "
                      "writable") from error
    reason = native.halt().reason
    if reason in PASSING:
        native.take_back(reason)
    found = {"SCR_PREFIX": native.prefix, "SCR_JOB_ID": job_of(native, manager)}
    end_time_s = for_scripts.end_time_of(native, manager)
    if end_time_s is not None:
        found["SCR_END_TIME"] = str(int(end_time_s))
    return found


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    found = prepare(options, native_path)
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.export:
        print("\n".join(f"export {key}={shlex.quote(value)}" for key, value in found.items()))
    return 0


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), trouble=1)
