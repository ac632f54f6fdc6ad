"""cairn down-nodes: which nodes of the allocation are not fit for a run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Dict, Sequence

from cairn.commands import for_scripts
from cairn.commands.run import tests_for
from cairn.hosts import fold
from cairn.native import check_prefix
from cairn.node_tests import unfit

NONE, SOME, TROUBLE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    """The command line. What is not shown stands in scripts that were written for SCR."""
    made = for_scripts.parser(
        "cairn down-nodes", "It tests the nodes as cairn run does, and prints those that are not fit as a list of hosts.",
        "Exit codes: 0 all are fit, 1 some are not, 2 wrong usage, or the nodes are not known.")
    add = made.add_argument
    add("nodes", nargs="?", metavar="HOSTS", help="The nodes; those of the allocation if not given")
    add("-d", "--down", metavar="HOSTS", help="Nodes that are known to be down; they are not tested")
    add("-r", "--reason", action="store_true", help="Print one node in a line, with the reason")
    add("-j", "--joblauncher", dest="launcher", help=argparse.SUPPRESS)
    add("-f", "--free", action="store_true", help=argparse.SUPPRESS)
    add("-l", "--log", action="store_true", help=argparse.SUPPRESS)
    add("-s", "--secs", help=argparse.SUPPRESS)
    return made


def down_nodes(options: argparse.Namespace, native_path: Path) -> Dict[str, str]:
    """Each with the reason."""
    if options.prefix:
        check_prefix(options.prefix)
    here = for_scripts.here(options.prefix, native_path, options.nodes)
    return unfit(tests_for(here.native, here.manager, options.down, lambda text: print(f"cairn: {text}", file=sys.stderr)),
                 here.nodes())


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
    return for_scripts.told(lambda: answer(options, native_path), TROUBLE)
