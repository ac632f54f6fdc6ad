"""What was scavenged of an earlier job and nobody has made whole yet: the next `cairn run` begins with that."""

from __future__ import annotations

import math
import shlex
import sys
import time
from typing import Callable, List, Optional

from cairn.account import Account, time_text
from cairn.long_work import TEMPORARY, LongWork
from cairn.native import Native
from cairn.progress_bar import ProgressLine
from cairn.resources.local import Here
from cairn.roles import Answer
from cairn.scavenge import HERE, MARGIN_S, first_json, last_line


class Unpublished:
    """Of one prefix directory."""

    def __init__(self, native: Native, last: Optional[Account], say: Callable[[str], None], why_stop: Callable[[], str],
                 tick: Callable[[], None]) -> None:
        """`last`: what the last `cairn run` there has told of itself. `tick` is called again and again."""
        self._native, self._last, self._say = native, last, say
        self._asked_to_stop, self._tick = why_stop, tick

    def publish(self, end_time: Callable[[], Optional[float]]) -> None:
        """Makes whole, and publishes, what a restart could take. What cannot be had now stays where it is, and the job goes
        on without, whatever has happened. `end_time`: of the allocation, in seconds since 1970."""
        try:
            if self._native.settings["SCR_ENABLE"] != "0" and self._native.can_make_whole():
                self._say("something was scavenged of an earlier job, and is not published: it is made whole first")
                end_s = end_time()
                self._tell(self._rebuild(math.inf if end_s is None else end_s - MARGIN_S))
        except Exception as error:  # pylint: disable=broad-except
            self._say(f"what was scavenged of an earlier job was not looked at: {error}; cairn rebuild tries it again")

    def _tell(self, answer: Answer) -> None:
        told = first_json(answer.text)
        if told is None:
            when = "not now" if answer.code == TEMPORARY else "that has failed"
            self._say(f"{when}: {last_line(answer)}; cairn rebuild tries it again")
        for one in told["datasets"] if told else []:
            name = f"{one['name'] or 'without a name'} (dataset {one['number']})"
            if one["outcome"] == "published":
                self._say(f"{name} is in the prefix directory now")
            elif one["outcome"] in ("lost", "refused", "newer", "failed"):
                self._say(f"{name} is not in the prefix directory: {one['reason']}")

    def _rebuild(self, until_s: float) -> Answer:
        environment: List[str] = []
        ended: List[str] = []
        if self._last is not None and self._last.outcome:  # else the command waits for a sign of the last run's life
            environment, ended = ["env", f"SCR_JOB_ID={self._last.job}"], ["--run-ended"]
        command = shlex.join([*environment, str(self._native.path), "rebuild", "--prefix", self._native.prefix, "--json",
                              *ended])

        def why_stop() -> str:
            return "the allocation ends" if time.time() > until_s else self._asked_to_stop()

        def tick() -> None:
            self._tick()
            line.tick()
        with ProgressLine(sys.stderr, lambda seconds: f"is made whole and published, {time_text(seconds)}") as line:
            return LongWork(Here(self._native.environment), why_stop, tick).run({HERE: command})[HERE]
