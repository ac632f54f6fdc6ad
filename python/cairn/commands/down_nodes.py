"""cairn down-nodes: lists the nodes of the allocation that are not fit for a run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence

from cairn.commands import for_scripts
from cairn.commands.run import LOGGED, job_of, tests_for
from cairn.event_log import EventLog
from cairn.hosts import fold
from cairn.native import check_prefix
from cairn.node_tests import EXCLUDED, unfit

NONE, SOME, TROUBLE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    """The command line. Hidden options are for scripts written for SCR."""
    made = for_scripts.parser(
        "cairn down-nodes", "It tests the nodes as cairn run does, and prints those that are not fit as a list of hosts.",
        "Exit codes: 0 all are fit, 1 some are not, 2 wrong usage, or the nodes are not known.")
    add = made.add_argument
    add("nodes", nargs="?", metavar="HOSTS", help="The nodes; those of the allocation if not given")
    add("-d", "--down", metavar="HOSTS", help="Nodes that are known to be down; they are not tested")
    add("-r", "--reason", action="store_true", help="Print one node in a line, with the reason")
    add("-j", "--joblauncher", dest="launcher", help=argparse.SUPPRESS)
    add("-f", "--free", action="store_true", help=argparse.SUPPRESS)
    add("-l", "--log", action="store_true", help="Write the nodes into the log of the job, each as NODE_FAIL")
    add("-s", "--secs", type=float, help=argparse.SUPPRESS)
    return made


def say(text: str) -> None:
    """Prints a message to stderr, as the list is on stdout."""
    print(f"cairn: {text}", file=sys.stderr)


def down_nodes(options: argparse.Namespace, native_path: Path) -> Dict[str, str]:
    """The nodes that are not fit, each with the reason."""
    if options.prefix:
        check_prefix(options.prefix)
    here = for_scripts.here(options.prefix, native_path, options.nodes)
    found = unfit(tests_for(here.native, here.manager, options.down, say), here.nodes())
    if options.log:
        log(found, here, options.secs)
    return found


def log(found: Mapping[str, str], here: for_scripts.Here, seconds: Optional[float]) -> None:
    """Logs the nodes as cairn run does, without those that the user has excluded. `seconds`: the duration of the run,
    from the script."""
    environment = {**LOGGED, **os.environ, "SCR_JOB_ID": job_of(here.native, here.manager)}
    with EventLog(here.native, environment, say) as events:
        for node, reason in found.items():
            if reason != EXCLUDED:
                events.happened("NODE_FAIL", f"{node}: {reason}", seconds)


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    found = down_nodes(options, native_path)
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.reason:
        print("".join(f"{node}: {why}\n" for node, why in found.items()), end="")
    elif found:
        print(fold(list(found)))
    return SOME if found else NONE


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), TROUBLE)
