"""What the small commands have in common that scripts call which launch their program themselves."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional

from cairn.command_line import Parser, report, text_of
from cairn.hosts import expand
from cairn.native import Native, Trouble
from cairn.resources import manager_of
from cairn.roles import ResourceManager


def parser(prog: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """With the options that all have. `-v` stands in scripts that were written for SCR."""
    made = Parser(prog=prog, description=description, epilog=epilog)
    made.add_argument("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    made.add_argument("--json", action="store_true", help="Print JSON")
    made.add_argument("-v", "--verbose", dest="verbose", action="store_true", help=argparse.SUPPRESS)
    return made


class Here(NamedTuple):
    """Where the script runs."""

    native: Native
    manager: ResourceManager
    listed: Optional[str]  # hosts, where not the manager tells them

    def nodes(self) -> List[str]:
        """All of the allocation; raises Trouble if they are not known."""
        return expand(self.listed) if self.listed else self.manager.nodes()


def here(prefix: Optional[str], native_path: Path, listed: Optional[str] = None) -> Here:
    """`listed`: in place of SCR_NODELIST."""
    environment = dict(os.environ)
    native = Native(native_path, prefix, environment)
    listed = listed or native.chosen("SCR_NODELIST")
    return Here(native, manager_of(environment, None, listed, native.settings["CAIRN_REMOTE"]), listed)


def end_time_of(native: Native, manager: ResourceManager) -> Optional[float]:
    """When the allocation ends, in seconds since 1970: by SCR_END_TIME, else by the manager's word; None: not known."""
    chosen = native.number("SCR_END_TIME")
    if chosen:
        return chosen
    left_s = manager.seconds_left(time.time())
    return None if left_s is None else time.time() + left_s


class EndTime:
    """The same, asked for again as long as it is not known: a manager may be too busy to answer."""

    def __init__(self, native: Native, manager: ResourceManager) -> None:
        self._native, self._manager = native, manager
        self._known_s: Optional[float] = None

    def ask(self) -> Optional[float]:
        """Seconds since 1970; None: not known."""
        if self._known_s is None:
            self._known_s = end_time_of(self._native, self._manager)
        return self._known_s


def told(answer: Callable[[], int], trouble: int) -> int:
    """The exit code that `answer` returns, or `trouble` after its message."""
    try:
        return answer()
    except Trouble as found:
        report(found)
    except BrokenPipeError:
        raise
    except OSError as error:
        report(text_of(error))
    return trouble
