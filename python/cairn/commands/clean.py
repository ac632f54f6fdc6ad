"""cairn clean: removes leftovers of dead jobs in the caches of this node, and never those of live jobs."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, TextIO

from cairn.account import count_text, size_text, time_text
from cairn.command_line import Parser, report
from cairn.native import Native, Trouble, cache_folders, check_prefix
from cairn.resources import manager_of
from cairn.resources.local import MEMORY, left_by_the_dead
from cairn.state_file import read_state
from cairn.wrapping import CACHE_NAME, cache_of, files_waiting

FOLDER = "cairn."  # then the job's id, a dot and the id of its prefix directory
PREFIX_ID = re.compile(r"\.[0-9a-f]{16}$")
KEPT, REMOVED, REMOVABLE, FAILED = "kept", "removed", "removable", "failed"
SILENT_S = 600.0  # a `cairn run` without a sign of life for this time is dead; it gives none while it tests nodes


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="cairn clean",
        description="It never removes those of a live job. Without --remove it only lists them.",
        epilog="Exit codes: 0 done, 1 something could not be removed, 2 wrong usage.")
    add = made.add_argument
    add("--remove", action="store_true", help="Remove what would be removed")
    add("--job", action="append", default=[], metavar="ID", help="Only those of this job, of any age; may be repeated")
    add("--of", metavar="DIRECTORY", help="Only those for this prefix directory, of any age: those that have "
        "its id, and those without a recorded id that were last used from this path")
    add("--older-than", type=float, default=24.0, metavar="HOURS",
        help="Only those to which no process has written for this time (24)")
    add("--cache", action="append", default=[], metavar="DIR",
        help="Look here, in place of the directories that the settings name; may be repeated")
    add("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX: the caches of a cairn run "
        "that is active there are kept, also those without a note of their prefix directory")
    add("--json", action="store_true", help="Print JSON")
    return made


@dataclass(frozen=True)
class Left:
    """The directory of a job in a cache."""

    path: Path
    job: str  # empty for the directory of a wrapped program or a mount, which has the files of any job
    bytes: int
    newest_s: float


class Known(NamedTuple):
    """Facts to find caches that are still needed."""

    own: Optional[str]  # the job of this allocation
    prefix: str
    of_id: str  # the id of the prefix directory of --of; empty if it has none


def is_of_wrapped(path: Path) -> bool:
    """Whether a wrapped program or a mount has its files there."""
    return CACHE_NAME.match(path.name) is not None


def check_named(of: str, caches: Sequence[Path]) -> None:
    """Raises Trouble unless the directory of --of exists, or a cache has recorded its path."""
    if os.path.isdir(of) or any(text_in(path / "prefix") == os.path.abspath(of) or is_of_wrapped(path) and is_wrapped_for(path, of)
                                for path in caches):
        return
    raise Trouble(f"--of: {of} is not a directory, and no cache here was last used from that path; name an existing prefix "
                  "directory, or a job by --job")


def known_of(native: Native, of: Optional[str]) -> Known:
    """The facts in the settings."""
    of_id = native.prefix_id(of) if of and os.path.isdir(of) else ""
    return Known(native.chosen("SCR_JOB_ID") or manager_of(native.environment).job_id(), native.prefix, of_id)


def text_in(path: Path) -> str:
    """The text of a note of the last run; empty if it does not exist."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def is_wrapped_for(path: Path, prefix: str) -> bool:
    """Whether a wrapped program or a mount has used the directory for this prefix directory. Its name has a checksum of the path."""
    return path.name == os.path.basename(cache_of("", "", prefix)) or text_in(path / "prefix") == os.path.realpath(prefix)


def why_not_for(path: Path, prefix: str, prefix_id: str) -> str:
    """Why the directory of a job does not belong to this prefix directory, empty if it does. If the note has an id, the
    same path proves nothing, as the prefix directory may have been moved."""
    if is_of_wrapped(path):
        return "" if is_wrapped_for(path, prefix) else "for another prefix directory"
    try:
        noted, is_here = text_in(path / "prefix.id"), text_in(path / "prefix") == os.path.abspath(prefix)
    except (OSError, ValueError) as error:
        return f"cannot be read: {error}; name it by --job"
    if prefix_id and (noted or path.name).endswith(prefix_id) or not noted and is_here:
        return ""
    if is_here:
        return f"for the prefix directory with id {noted}, which was at this path and may have been moved; name it by --job"
    return "for another prefix directory"


def prefix_of(path: Path, known: Known) -> str:
    """The prefix directory in which the job may work, from the note of its last run."""
    try:
        return (path / "prefix").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return known.prefix


def why_it_may_go_on(left: Left, known: Known) -> str:
    """Why the job may go on: its `cairn run` may be alive, and between two runs no process holds the locks of the caches.
    Empty if it is not alive."""
    prefix = prefix_of(left.path, known)
    try:
        state = read_state(prefix, SILENT_S)
    except Trouble as trouble:
        return f"its cairn run may be alive: {trouble}; repair or remove that file"
    if state and state["alive"] and left.job in ("", state["account"].job):
        return f"of the job of the cairn run that is active in {prefix}"
    return ""


def bytes_and_newest(folder: Path) -> "tuple[int, float]":
    """The size and newest time of everything below a directory. Does not follow links."""
    total, newest = 0, folder.lstat().st_mtime
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(where, name))
            except OSError:
                continue
            total += found.st_size
            newest = max(newest, found.st_mtime)
    return total, newest


def job_of(path: Path) -> str:
    """The job of a directory in a cache; empty if it is of no job."""
    return "" if is_of_wrapped(path) else PREFIX_ID.sub("", path.name[len(FOLDER):])


def left_in(path: Path) -> Left:
    """The facts about the directory."""
    return Left(path, job_of(path), *bytes_and_newest(path))


def is_ours(path: Path) -> bool:
    """True for a real directory of this user. Links and directories of other users are neither followed nor removed."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def folders_in(base: Path, user: str) -> Iterator[Path]:
    """The directories of this user's jobs in a cache; %n in its path stands for any node simulated here."""
    for parent in sorted(Path("/").glob(str(base.absolute())[1:].replace("%n", "*"))) if "%n" in str(base) else [base]:
        for path in sorted((parent / user).glob("cairn*")):
            if not (path.name.startswith(FOLDER) or is_of_wrapped(path)):
                continue
            try:
                if is_ours(parent / user) and is_ours(path):
                    yield path
            except OSError:
                continue


def take_lock(path: Path, make: bool) -> TextIO:
    """Takes the lock of the job's runs; raises BlockingIOError if a run holds it. Creates a missing lock file only if the
    directory may be removed, so that listing changes nothing."""
    name = path / "lock"
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    try:
        lock = open(os.open(name, flags, 0o600), "r+", encoding="utf-8")
    except FileNotFoundError:
        return open(os.devnull, encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise
    return lock


def why_it_waits(path: Path) -> str:
    """Files of a wrapped program that were not moved to their places exist nowhere else. Empty if there are none."""
    waiting = files_waiting(path) if is_of_wrapped(path) else []
    if not waiting:
        return ""
    prefix = text_in(path / "prefix") or "DIR"
    how = "a mount of crfs --scr moves them" if path.name.startswith("cairn-mount.") else f"cairn wrap --settle -p {prefix} moves them"
    return f"{count_text(len(waiting), 'file')} not moved to {prefix} yet: {how}; --of {prefix} removes them"


def why_kept(left: Left, options: argparse.Namespace, known: Known, now_s: float) -> str:
    """Why the directory must be kept, empty if it may be removed."""
    if options.job and left.job not in options.job:
        return "of another job" if left.job else "of no job; name its prefix directory by --of"
    not_for = why_not_for(left.path, options.of, known.of_id) if options.of else ""
    if not_for:
        return not_for
    is_named = options.job or options.of
    if not is_named and left.job == known.own:
        return "of the job of this allocation; name it by --job"
    if not is_named and now_s - left.newest_s < options.older_than * 3600:
        return f"used in the last {options.older_than:g} h"
    return why_it_may_go_on(left, known) or ("" if is_named else why_it_waits(left.path))


class Outcome(NamedTuple):
    """The result for one directory of caches, or of simulated nodes."""

    path: Path
    state: str  # KEPT, REMOVED, REMOVABLE or FAILED
    why: str = ""  # why it was kept, or could not be removed
    what: str = ""  # a description of its content
    size_bytes: int = 0

    def text(self) -> str:
        """A line of text."""
        about = f"{self.path}: {self.what}: " if self.what else f"{self.path}: "
        return about + {KEPT: f"kept: {self.why}", REMOVED: "removed", REMOVABLE: "would be removed by --remove"}[self.state]

    def as_json(self) -> Dict[str, Any]:
        """For programs."""
        return {"path": str(self.path), "state": self.state, "why": self.why, "bytes": self.size_bytes}


def settled(path: Path, make: Callable[[], Optional[Outcome]]) -> Optional[Outcome]:
    """The outcome, also if a live run holds the lock, or the directory cannot be read or removed."""
    try:
        return make()
    except BlockingIOError:
        return Outcome(path, KEPT, "a run of the job is alive")
    except OSError as error:
        return Outcome(path, FAILED, error.strerror or str(error))


def state_after(path: Path, kept: str, remove: bool) -> str:
    """Removes the directory if that is requested and `kept` is empty. Returns the state."""
    if kept:
        return KEPT
    if remove:
        shutil.rmtree(path)
    return REMOVED if remove else REMOVABLE


def clean(path: Path, options: argparse.Namespace, known: Known) -> Outcome:
    """Processes one directory of caches."""
    with take_lock(path, options.remove):
        now_s = time.time()
        left = left_in(path)
        what = f"{size_text(left.bytes)}, {time_text(now_s - left.newest_s)} old"
        kept = why_kept(left, options, known, now_s)
        return Outcome(path, state_after(path, kept, options.remove), kept, what, left.bytes)


def caches_in(nodes: Path, user: str) -> Iterator[Path]:
    """The caches of this user's jobs on simulated nodes."""
    return folders_in(nodes / "nodes" / "%n", user)


def why_nodes_kept(caches: Sequence[Path], options: argparse.Namespace, known: Known, now_s: float) -> str:
    """Why simulated nodes must be kept, empty if they may be removed. The reasons are those of their caches."""
    for path in caches:
        kept = why_kept(left_in(path), options, known, now_s)
        if kept:
            is_named = options.job or options.of
            return kept if is_named else f"{kept}; cairn scavenge -p {prefix_of(path, known)} saves what it holds"
    return "not known to be of that job" if (options.job or options.of) and not caches else ""


def clean_nodes(path: Path, options: argparse.Namespace, known: Known, user: str) -> Optional[Outcome]:
    """Processes one directory of simulated nodes; None if it belongs to another user."""
    if not is_ours(path):
        return None
    with ExitStack() as stack:
        caches = list(caches_in(path, user))
        for cache in caches:
            stack.enter_context(take_lock(cache, options.remove))
        kept = why_nodes_kept(caches, options, known, time.time())
        jobs = ", ".join(sorted(filter(None, {job_of(cache) for cache in caches}))) or "no job"
        size = bytes_and_newest(path)[0]
        what = f"{size_text(size)} of nodes that were simulated for {jobs}"
        return Outcome(path, state_after(path, kept, options.remove), kept, what, size)


def clean_simulated(options: argparse.Namespace, known: Known, user: str, bases: Sequence[Path]) -> Iterator[Outcome]:
    """Processes the simulated nodes that a killed `cairn run` has left."""
    for path in left_by_the_dead(bases):
        outcome = settled(path, partial(clean_nodes, path, options, known, user))
        if outcome:
            yield outcome


def report_outcomes(outcomes: Iterator[Outcome], as_json: bool) -> bool:
    """Prints each outcome at once, or all as JSON; False if one failed."""
    done = []
    for one in outcomes:
        done.append(one)
        if one.state == FAILED:
            report(f"{one.path}: {one.why}")
        elif not as_json:
            print(one.text())
    if as_json:
        print(json.dumps({"directories": [one.as_json() for one in done]}, indent=1))
    return all(one.state != FAILED for one in done)


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        if options.prefix:
            check_prefix(options.prefix)
        native = Native(native_path, options.prefix, dict(os.environ))
        known = known_of(native, options.of)
        user = native.settings["SCR_USER_NAME"]
        places = native.job().bases()
    except Trouble as trouble:
        report(trouble)
        return 1
    bases: List[str] = options.cache or sorted({*cache_folders(native.settings), *places})
    temporary = [] if options.cache else [MEMORY, Path(tempfile.gettempdir())]
    found = [path for base in bases for path in folders_in(Path(base), user)]
    try:
        if options.of:
            simulated = [path for nodes in left_by_the_dead(temporary) for path in caches_in(nodes, user)]
            check_named(options.of, [*found, *simulated])
    except (Trouble, OSError, ValueError) as trouble:
        report(trouble)
        return 1
    return 0 if report_outcomes(outcomes_of(options, known, user, bases, temporary), options.json) else 1


def outcomes_of(options: argparse.Namespace, known: Known, user: str, bases: Sequence[str], temporary: Sequence[Path]) -> Iterator[Outcome]:
    """Simulated nodes come first, as their caches may be among those of the job."""
    yield from clean_simulated(options, known, user, temporary)
    found = [path for base in bases for path in folders_in(Path(base), user)]
    if not found and not options.json:
        print(f"nothing of {user}'s jobs is in {', '.join(bases)}")
    outcomes = (settled(path, partial(clean, path, options, known)) for path in found)
    yield from filter(None, outcomes)
