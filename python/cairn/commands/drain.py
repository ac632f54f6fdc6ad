"""cairn drain: finishes the copies to the prefix directory that a dead job had begun."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from cairn.command_line import FAILURE, Parser
from cairn.commands.scavenge import add_place, exit_code_of, reached
from cairn.drain import LATER, Drain, Drained
from cairn.long_work import TEMPORARY
from cairn.native import Native, Trouble
from cairn.node_work import NodeWork


def say(text: str) -> None:
    """To people."""
    print(f"cairn drain: {text}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="cairn drain", description="Each node copies the parts that it holds; the last one publishes the dataset. What "
        "the job had not begun to copy is left to cairn scavenge, which drains first.",
        epilog="Exit codes: 0 finished, or nothing to finish, 1 a copy could not be finished, 2 wrong usage, 75 try again "
               "later: a job uses the caches or the prefix directory, or the time is up.")
    add_place(made)
    made.add_argument("--json", action="store_true", help="Print JSON")
    return made


def lines_of_down(down: Mapping[str, str]) -> List[str]:
    """The nodes that are not asked, each with the reason."""
    return [f"{node} is not asked: {why}" for node, why in down.items()]


def report_of(drained: Sequence[Drained], down: Mapping[str, str]) -> Dict[str, Any]:
    """The same for programs."""
    return {"datasets": [one.as_json() for one in drained], "not_asked": dict(down)}


def drain(options: argparse.Namespace, native_path: Path) -> Tuple[List[Drained], Dict[str, str]]:
    """The whole of it, and the nodes that were not asked."""
    environment = dict(os.environ)
    native = Native(native_path, options.prefix, environment)
    with reached(options, native, environment, say) as (place, nodes, down, wish):
        for line in lines_of_down(down):
            say(line)
        remote = place.manager.remote()
        asked = [node for node in nodes if node not in down]
        if not asked:
            raise Trouble("no node can be asked")
        work = Drain(NodeWork(native, wish.settings), native, remote, say, wish.run_ended)
        drained = work.run(asked)
        work.give_names(drained)
    if not drained:
        say(f"{native.prefix} has no unfinished copies")
    return drained, down


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))

    def work() -> int:
        drained, down = drain(options, native_path)
        if options.json:
            print(json.dumps(report_of(drained, down), indent=2))
        if all(one.is_published() for one in drained):
            return 0
        return TEMPORARY if any(one.outcome == LATER for one in drained) else FAILURE
    return exit_code_of(work, "drain")
