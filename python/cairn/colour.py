"""Colour on a terminal, as the native commands have it (src/base/colour.cpp)."""

from __future__ import annotations

import os
from typing import Mapping, TextIO

CODES = {"red": 31, "yellow": 33, "green": 32}


def is_wanted(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """By https://no-color.org: not if NO_COLOR has a value."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text as it is where the stream has no colour."""
    return f"\033[{CODES[colour]}m{text}\033[0m" if is_wanted(stream.isatty(), os.environ) else text
