"""The help of a command, in the form of the native commands (src/tools/help_text.cpp)."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import Dict, List, Sequence

COLUMNS = 80
TEXT_COLUMN = 24
TABLE = Path(__file__).with_name("commands.txt")


def summaries() -> Dict[str, str]:
    """What each command does, from the table of commands."""
    rows = [line.split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("command | ")]
    return {name: summary for _, name, _, _, summary in rows}


def wrapped(text: str, indent: int = 0) -> str:
    """Wraps text to the width of a terminal."""
    blanks = " " * indent
    return textwrap.fill(text, COLUMNS, initial_indent=blanks, subsequent_indent=blanks, break_long_words=False,
                         break_on_hyphens=False)


def _in_columns(name: str, text: str) -> str:
    right = wrapped(text, TEXT_COLUMN)
    return f"{name}\n{right}" if len(name) + 2 > TEXT_COLUMN else name.ljust(TEXT_COLUMN) + right[TEXT_COLUMN:]


def value_of(action: argparse.Action) -> str:
    """"DIR", or "{young,daly}" if these are all values; empty for a flag."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return str(action.metavar)
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()


def shown(parser: argparse.ArgumentParser, positional: bool) -> List[argparse.Action]:
    """The options, or the positional arguments, that a user may give."""
    return [action for action in parser._actions  # pylint: disable=protected-access
            if action.help != argparse.SUPPRESS and (not action.option_strings) == positional]


def _usage_of(action: argparse.Action) -> str:
    name = value_of(action) + (" ..." if action.nargs == "*" else "")
    return name if action.nargs is None else f"[{name}]"


def _section(title: str, actions: Sequence[argparse.Action]) -> List[str]:
    lines = [_in_columns("  " + " ".join(filter(None, [", ".join(action.option_strings), value_of(action)])),
                         action.help or "") for action in actions]
    return ["", f"{title}:", *lines] if lines else []


def help_of(parser: argparse.ArgumentParser, summary: str) -> str:
    """The whole output of --help."""
    usage = parser.usage or " ".join([f"{parser.prog} [options]", *map(_usage_of, shown(parser, True))])
    about = f"{summary}. {parser.description or ''}".strip()
    lines = [f"usage: {usage}", "", wrapped(about), *_section("arguments", shown(parser, True)),
             *_section("options", shown(parser, False)), "", wrapped(parser.epilog or "")]
    return "\n".join(lines) + "\n"
