"""The state of `cairn run` for other commands: <prefix>/.cairn/run.json and the lock beside it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any, Dict, Optional, TextIO

from cairn.account import Account, account_of_json
from cairn.found_job import DIED, ENDED, RUNS, FoundJob
from cairn.life import identity, lives
from cairn.native import Trouble

BEAT_S = 5.0
DEAD_AFTER_S = 20.0


class StateFile:
    """Written by one `cairn run` at a time. A context manager."""

    def __init__(self, prefix: str) -> None:
        self._prefix = Path(prefix).absolute()
        self._folder = self._prefix / ".cairn"
        self._lock: Optional[TextIO] = None
        self._written_s = 0.0

    def __enter__(self) -> "StateFile":
        path = self._folder / "run.lock"
        try:
            self._folder.mkdir(exist_ok=True)
            self._lock = path.open("a", encoding="utf-8")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Trouble(f"{path} is locked: another cairn run works in this prefix directory; choose "
                          "another one (SCR_PREFIX, --prefix)") from error
        except OSError as error:
            if self._lock is None:
                raise Trouble(f"{path}: {error.strerror}; the prefix directory (SCR_PREFIX, --prefix) must "
                              "exist and be writable") from error
            # Some file systems have no locks.
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock:
            self._lock.close()

    def write(self, account: Account, alive: bool = True, at_once: bool = True) -> None:
        """Writes the state; unless `at_once`, only if the last write is some seconds old. Ignores errors."""
        now = time.time()
        if not at_once and now - self._written_s < BEAT_S:
            return
        self._written_s = now
        record = {"version": 1, "host": socket.gethostname(), **identity(), "alive": alive, "beat_s": now,
                  "prefix": str(self._prefix), **account.as_json()}
        new = self._folder / "run.json.tmp"
        try:
            new.write_text(json.dumps(record) + "\n", encoding="utf-8")
            new.rename(self._folder / "run.json")
        except OSError:
            pass


def read_state(prefix: str, dead_after_s: float = DEAD_AFTER_S) -> Optional[Dict[str, Any]]:
    """The state of the last `cairn run`, with its `account`; `alive` is true if it is alive. None if there was none, or
    if this directory is a copy of the one in which it worked. On the same machine its process decides, elsewhere the age
    of the file by the time of the file system, as clocks may differ."""
    path = Path(prefix) / ".cairn" / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        age_s = max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Trouble(f"{path}: {error}") from error
    if record.get("version") != 1:
        raise Trouble(f"{path} is of a newer version of Cairn")
    if _is_of_another(str(record.get("prefix", "")), prefix):
        return None
    record["account"] = account_of_json(record)
    process_lives = lives(record)
    record["alive"] = bool(record.get("alive")) and (age_s < dead_after_s if process_lives is None else process_lives)
    return record


def _is_of_another(recorded: str, prefix: str) -> bool:
    """True if another directory exists at the recorded path. If none does, this one was moved, or is mounted elsewhere
    here."""
    try:
        return bool(recorded) and not os.path.samefile(recorded, prefix)
    except OSError:
        return False


def is_of_cairn_run(state: Dict[str, Any], job: FoundJob) -> bool:
    """True if the last run belongs to the `cairn run` that wrote this state. A live program without `cairn run` has
    precedence, even if a later `cairn run` has failed in the directory."""
    run = job.last_run
    if state["alive"] or run is None or run.by_cairn_run:
        return True
    return run.state != RUNS and bool(state["account"].begun_s > run.started_s)


def is_over(state: Optional[Dict[str, Any]], job: FoundJob) -> bool:
    """True if it is certain that no run of the job is alive. The record of the last run, if it is of that job, has
    precedence over the outcome of `cairn run`, which does not cover programs started without it."""
    run = job.last_run
    if run and run.state == RUNS:
        return False
    if run and run.job == job.job and run.state in (ENDED, DIED):
        return True
    return state is not None and state["account"].job == job.job and bool(state["account"].outcome) and is_of_cairn_run(
        state, job)
