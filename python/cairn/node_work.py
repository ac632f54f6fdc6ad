"""Commands of Cairn on nodes: how they are spelled, run with a progress line, and how their answers are read."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any, Callable, Dict, Mapping, Optional

from cairn.long_work import LongWork
from cairn.native import Native
from cairn.progress_bar import ProgressLine
from cairn.roles import Answer, RemoteExecution

HERE = "this node"  # where commands run that concern the prefix directory only


class NodeWork:
    """Of one prefix directory."""

    def __init__(self, native: Native, settings: Mapping[str, str], why_stop: Callable[[], str] = lambda: "",
                 tick: Callable[[], None] = lambda: None) -> None:
        """`settings`: of the commands. `why_stop` is asked repeatedly, and ends all work by a text; `tick` is called as
        often."""
        self._native, self._settings, self._why_stop, self._tick = native, settings, why_stop, tick

    def command(self, name: str, *arguments: str) -> str:
        """As a shell takes it."""
        settings = [f"{key}={value}" for key, value in sorted(self._settings.items())]
        return shlex.join(["env", *settings, str(self._native.path), name, "--prefix", self._native.prefix, *arguments])

    def run(self, remote: RemoteExecution, commands: Mapping[str, str],
            text: Callable[[float, Mapping[str, int]], str]) -> Dict[str, Answer]:
        """`text`: what a terminal shows after so many seconds, in which the nodes have done so much."""
        def tick() -> None:
            self._tick()
            line.tick()
        work = LongWork(remote, self._why_stop, tick)
        with ProgressLine(sys.stderr, lambda seconds: text(seconds, work.done)) as line:
            return work.run(commands)


def first_json(text: str) -> Optional[Dict[str, Any]]:
    """The first JSON object in output that may hold warnings too; none if it has only errors."""
    decoder, at = json.JSONDecoder(), 0
    for line in text.splitlines(keepends=True):
        if line.startswith("{"):
            try:
                found: Dict[str, Any] = decoder.raw_decode(text, at)[0]
                return found if set(found) != {"errors"} else None
            except ValueError:
                pass
        at += len(line)
    return None


def last_line(answer: Answer) -> str:
    """Of the output of a command: an error comes after the warnings."""
    return (answer.text.strip().splitlines() or [f"exit {answer.code}"])[-1]
