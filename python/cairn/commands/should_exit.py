"""cairn should-exit: decides whether a script should stop launching its program."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Sequence

from cairn.commands import for_scripts
from cairn.commands.run import policy_of
from cairn.halting import halt_seconds_of, why_stop
from cairn.hosts import expand
from cairn.policy import Action, Event, Kind, State, decide

STOP, GO_ON, TROUBLE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = for_scripts.parser(
        "cairn should-exit", "It decides by the halt file, the end of the allocation, the launches that are left, and "
        "the nodes that are left.",
        "Exit codes: 0 stop, 1 go on, 2 wrong usage, or it cannot be decided.")
    add = made.add_argument
    add("--down", metavar="HOSTS", help="Nodes that are not fit, as cairn down-nodes prints them")
    add("--min-nodes", type=int, metavar="N", help="Nodes that the program can run on, in place of SCR_MIN_NODES")
    add("--runs", type=int, metavar="N", default=-1, help="Launches that are left; default: any number")
    return made


def what_next(options: argparse.Namespace, native_path: Path) -> Action:
    """Decides like cairn run before a launch. The recorded reason for the end of the last run counts, as cairn prerun has
    removed older ones."""
    here = for_scripts.here(options.prefix, native_path)
    native, nodes = here.native, here.nodes()
    down = expand(options.down or "")
    policy = policy_of(options, native, options.min_nodes or native.number("SCR_MIN_NODES") or len(nodes))
    now_s = time.time()
    end_time_s = for_scripts.end_time_of(native, here.manager)
    left_s = None if end_time_s is None else end_time_s - now_s
    halt = native.halt()
    reason = why_stop(halt, now_s, policy.halt_seconds, "") or (halt.reason and f"{halt.reason}: the last run ended for this reason")
    fit = len([node for node in nodes if node not in down])
    return decide(policy, State(0, fit, reason or None, left_s, halt_seconds=halt_seconds_of(halt, policy.halt_seconds)),
                  Event())


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    action = what_next(options, native_path)
    stops = action.kind != Kind.LAUNCH
    if options.json:
        print(json.dumps({"stop": stops, "reason": action.reason if stops else ""}, indent=2))
    elif stops:
        print(action.reason)
    return STOP if stops else GO_ON


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), TROUBLE)
