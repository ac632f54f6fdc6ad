"""Colour on a terminal, like that of the native commands (src/base/colour.cpp)."""

from __future__ import annotations

import os
from typing import Mapping, TextIO

CODES = {"red": 31, "yellow": 33, "green": 32}


def is_wanted(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Follows https://no-color.org: no colour if NO_COLOR has a value."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Returns the unchanged text if the stream has no colour."""
    return f"\033[{CODES[colour]}m{text}\033[0m" if is_wanted(stream.isatty(), os.environ) else text
