"""scr_env: facts about a job for scripts written for SCR."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Callable, Dict, Sequence

from cairn.commands import for_scripts
from cairn.hosts import fold
from cairn.native import check_prefix

DONE, TROUBLE = 0, 1


def parser() -> argparse.ArgumentParser:
    """The command line. Without a fact: all of them, as JSON."""
    made = for_scripts.parser(
        "scr_env", "Each fact that is named is on a line of its own; without a name, all are printed as JSON.",
        "Exit codes: 0 done, 1 a fact is not known, 2 wrong usage.")
    for letter, name, text in (("u", "user", "The user's name in paths"), ("j", "jobid", "The job's id in paths"),
                               ("e", "endtime", "The end of the allocation in seconds since 1970; 0: not known"),
                               ("n", "nodes", "The nodes of the allocation, as a list of hosts"),
                               ("d", "down", "Those of them that the resource manager reports as down"),
                               ("r", "runnodes", "The number of nodes of the last run; 0: no run is known")):
        made.add_argument(f"-{letter}", f"--{name}", dest="facts", action="append_const", const=name, help=text)
    return made


def facts_of(here: for_scripts.Here) -> Dict[str, Callable[[], object]]:
    """The facts by name, in SCR's order. Each is computed only if needed, as the resource manager may be slow."""
    def runnodes() -> int:
        run = here.native.job().last_run
        return len(run.nodes) if run else 0

    return {"user": lambda: here.native.settings["SCR_USER_NAME"],
            "jobid": lambda: here.native.settings["SCR_JOB_ID"],
            "endtime": lambda: int(for_scripts.end_time_of(here.native, here.manager) or 0),
            "nodes": lambda: fold(here.nodes()),
            "down": lambda: fold(sorted(here.manager.down(here.nodes()))),
            "runnodes": runnodes}


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    if options.prefix:
        check_prefix(options.prefix)
    facts = facts_of(for_scripts.here(options.prefix, native_path))
    found = {name: facts[name]() for name in options.facts or facts}
    if options.json or not options.facts:
        print(json.dumps(found, indent=2))
    else:
        print("".join(f"{value}\n" for value in found.values()), end="")
    return DONE


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), TROUBLE)
