"""Shared by the small commands for scripts that launch their program themselves."""

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
    """A parser with the common options. `-v` is for scripts written for SCR."""
    made = Parser(prog=prog, description=description, epilog=epilog)
    made.add_argument("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    made.add_argument("--json", action="store_true", help="Print JSON")
    made.add_argument("-v", "--verbose", dest="verbose", action="store_true", help=argparse.SUPPRESS)
    return made


class Here(NamedTuple):
    """The environment of the script."""

    native: Native
    manager: ResourceManager
    listed: Optional[str]  # hosts, if they do not come from the manager

    def nodes(self) -> List[str]:
        """All nodes of the allocation; raises Trouble if they are unknown."""
        return expand(self.listed) if self.listed else self.manager.nodes()


def here(prefix: Optional[str], native_path: Path, listed: Optional[str] = None) -> Here:
    """`listed`: replaces SCR_NODELIST."""
    environment = dict(os.environ)
    native = Native(native_path, prefix, environment)
    listed = listed or native.chosen("SCR_NODELIST")
    return Here(native, manager_of(environment, None, listed, native.settings["CAIRN_REMOTE"]), listed)


def end_time_of(native: Native, manager: ResourceManager) -> Optional[float]:
    """The end of the allocation, in seconds since 1970: SCR_END_TIME, or else from the manager; None: unknown."""
    chosen = native.number("SCR_END_TIME")
    if chosen:
        return chosen
    left_s = manager.seconds_left(time.time())
    return None if left_s is None else time.time() + left_s


class EndTime:
    """The end of the allocation. Queries the manager again until it is known, as the manager may be too busy to
    answer."""

    def __init__(self, native: Native, manager: ResourceManager) -> None:
        self._native, self._manager = native, manager
        self._known_s: Optional[float] = None

    def ask(self) -> Optional[float]:
        """Seconds since 1970; None: unknown."""
        if self._known_s is None:
            self._known_s = end_time_of(self._native, self._manager)
        return self._known_s


def exit_code_of(answer: Callable[[], int], trouble: int) -> int:
    """The exit code that `answer` returns; on an error prints it and returns `trouble`."""
    try:
        return answer()
    except Trouble as found:
        report(found)
    except BrokenPipeError:
        raise
    except OSError as error:
        report(text_of(error))
    return trouble
