"""Datasets that an earlier scavenge copied, and that are not published yet: the next `cairn run` publishes them first."""

from __future__ import annotations

import math
import shlex
import sys
import time
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional

from cairn.account import dataset_text, time_text
from cairn.long_work import TEMPORARY, LongWork
from cairn.native import Native
from cairn.node_work import HERE, first_json, last_line
from cairn.progress_bar import ProgressLine
from cairn.resources.local import Here
from cairn.roles import Answer
from cairn.scavenge import MARGIN_S
from cairn.state_file import is_over


class Unpublished:
    """The unpublished datasets of one prefix directory."""

    def __init__(self, native: Native, last: Optional[Dict[str, Any]], say: Callable[[str], None], why_stop: Callable[[], str],
                 tick: Callable[[], None]) -> None:
        """`last`: what the last `cairn run` recorded in run.json, with its `account`. `tick` is called repeatedly."""
        self._native, self._last, self._say = native, last, say
        self._asked_to_stop, self._tick = why_stop, tick

    def publish(self, end_time: Callable[[], Optional[float]]) -> None:
        """Rebuilds and publishes what a restart could use. On any trouble the copies stay where they are, and the job goes
        on without them. `end_time`: of the allocation, in seconds since 1970."""
        try:
            if self._native.settings["SCR_ENABLE"] != "0" and self._native.can_make_whole():
                self._say("an earlier scavenge copied datasets that are not published yet: they are rebuilt and published first")
                end_s = end_time()
                self._report(self._rebuild(math.inf if end_s is None else end_s - MARGIN_S))
        except Exception as error:  # pylint: disable=broad-except
            self._say(f"the datasets of an earlier scavenge are not published: {error}; cairn rebuild tries again")

    def _report(self, answer: Answer) -> None:
        reported = first_json(answer.text)
        if reported is None:
            what = "cannot be published now" if answer.code == TEMPORARY else "could not be published"
            self._say(f"the datasets {what}: {last_line(answer)}; cairn rebuild tries again")
        for one in reported["datasets"] if reported else []:
            name = dataset_text(one["name"], one["number"])
            if one["outcome"] == "published":
                self._say(f"{name} is now in the prefix directory")
            elif one["outcome"] in ("lost", "refused", "newer", "failed"):
                self._say(f"{name} is not in the prefix directory: {one['reason']}")

    def _rebuild(self, until_s: float) -> Answer:
        environment: List[str] = []
        ended: List[str] = []
        job = self._native.job()
        left_by = job.last_run.job if job.last_run else job.job  # the job whose copies these are
        account = self._last["account"] if self._last else None
        if account and account.outcome:
            left_by, environment = account.job, ["env", f"SCR_JOB_ID={account.job}"]
        if is_over(self._last, replace(job, job=left_by)):  # otherwise the command waits for a sign of life of the last run
            ended = ["--run-ended"]
        command = shlex.join([*environment, str(self._native.path), "rebuild", "--prefix", self._native.prefix, "--json",
                              *ended])

        def why_stop() -> str:
            return "the allocation ends" if time.time() > until_s else self._asked_to_stop()

        def tick() -> None:
            self._tick()
            line.tick()
        with ProgressLine(sys.stderr, lambda seconds: f"rebuilding and publishing, {time_text(seconds)}") as line:
            return LongWork(Here(self._native.environment), why_stop, tick).run({HERE: command})[HERE]
