"""cairn clean: removes what dead jobs have left in the caches of this node, never a live one's."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Sequence, TextIO

from cairn.account import size_text, time_text
from cairn.native import Native, Trouble, cache_folders
from cairn.resources import manager_of
from cairn.resources.local import MEMORY, left_by_the_dead
from cairn.state_file import read_state

FOLDER = "cairn."
SILENT_S = 600.0  # a `cairn run` that has told nothing for so long is dead; while it tests nodes it tells nothing


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="cairn clean", description="Removes what dead jobs have left in the caches of this node, never a live "
        "one's. Without --remove it only tells what there is.",
        epilog="Exit codes: 0 done, 1 something could not be removed, 2 wrong usage.")
    add = made.add_argument
    add("--remove", action="store_true", help="do it")
    add("--job", action="append", default=[], metavar="ID", help="only this job's, however young; may be repeated")
    add("--older-than", type=float, default=24.0, metavar="HOURS",
        help="only of jobs that have written nothing for so long (24)")
    add("--cache", action="append", default=[], metavar="FOLDER",
        help="look here, in place of the folders that the settings name; may be repeated")
    add("-p", "--prefix", metavar="FOLDER", help="a prefix directory, in place of SCR_PREFIX, for jobs that have not written "
        "down theirs beside their caches: the job of a cairn run that works there is kept, also between two runs")
    return made


@dataclass(frozen=True)
class Left:
    """The folder of a job in a cache."""

    path: Path
    job: str
    bytes: int
    newest_s: float


class Known(NamedTuple):
    """Of what may go on."""

    own: Optional[str]  # the job of this allocation
    prefix: str


def known_of(native: Native) -> Known:
    """As the settings tell."""
    return Known(native.chosen("SCR_JOB_ID") or manager_of(native.environment).job_id(), native.prefix)


def prefix_of(path: Path, known: Known) -> str:
    """The prefix directory where the folder's job may work: its last run has written that down."""
    try:
        return (path / "prefix").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return known.prefix


def why_it_may_go_on(left: Left, known: Known) -> str:
    """By its `cairn run`: between two runs nobody holds the locks of the caches. Empty: that is not alive."""
    prefix = prefix_of(left.path, known)
    try:
        state = read_state(prefix, SILENT_S)
    except Trouble as trouble:
        return f"may go on: it cannot be seen whether its cairn run lives: {trouble}; mend or remove that file"
    if state and state["alive"] and state["account"].job == left.job:
        return f"is the job of the cairn run that works in {prefix}"
    return ""


def bytes_and_newest(folder: Path) -> "tuple[int, float]":
    """Of all below it; links are not followed."""
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


def is_ours(path: Path) -> bool:
    """A real folder of this user: nothing that somebody else has put there is followed or removed."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def folders_in(base: Path, user: str) -> Iterator[Path]:
    """Those of this user's jobs in a cache; %n in its path stands for any node simulated here."""
    for parent in sorted(Path("/").glob(str(base.absolute())[1:].replace("%n", "*"))) if "%n" in str(base) else [base]:
        for path in sorted((parent / user).glob(FOLDER + "*")):
            try:
                if is_ours(parent / user) and is_ours(path):
                    yield path
            except OSError:
                continue


def take_lock(path: Path, make: bool) -> TextIO:
    """The lock that a run of the job holds; BlockingIOError where one does. One that is not there is made
    only if the folder is to go, so that to look changes nothing."""
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


def why_kept(left: Left, options: argparse.Namespace, known: Known, now_s: float) -> str:
    """Why it is not to be removed, empty if it is."""
    if options.job and left.job not in options.job:
        return "is another job's"
    if not options.job and left.job == known.own:
        return "is the job of this allocation; name it by --job"
    if not options.job and now_s - left.newest_s < options.older_than * 3600:
        return f"was written to less than {options.older_than:g} h ago"
    return why_it_may_go_on(left, known)


def clean(path: Path, options: argparse.Namespace, known: Known) -> bool:
    """Does it, or tells; False if it failed."""
    try:
        with take_lock(path, options.remove):
            now_s = time.time()
            left = Left(path, path.name[len(FOLDER):], *bytes_and_newest(path))
            what = f"{path}: {size_text(left.bytes)}, {time_text(now_s - left.newest_s)} old"
            kept = why_kept(left, options, known, now_s)
            if not kept and options.remove:
                shutil.rmtree(path)
                print(f"{what}: removed")
            else:
                print(f"{what}: " + (f"kept, it {kept}" if kept else "would be removed by --remove"))
    except BlockingIOError:
        print(f"{path}: kept, a run of the job is alive")
    except OSError as error:
        print(f"cairn: error: {path}: {error.strerror}", file=sys.stderr)
        return False
    return True


def clean_simulated(options: argparse.Namespace, bases: Sequence[Path]) -> bool:
    """What a `cairn run` that was killed has left of nodes that it has simulated; False if that failed."""
    done = True
    for path in left_by_the_dead(bases):
        try:
            if not is_ours(path):
                continue
            what = f"{path}: {size_text(bytes_and_newest(path)[0])} of nodes that were simulated"
            if options.remove:
                shutil.rmtree(path)
            print(f"{what}: " + ("removed" if options.remove else "would be removed by --remove"))
        except OSError as error:
            print(f"cairn: error: {path}: {error.strerror}", file=sys.stderr)
            done = False
    return done


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        native = Native(native_path, options.prefix, dict(os.environ))
        known = known_of(native)
        user = native.settings["SCR_USER_NAME"]
    except Trouble as trouble:
        print(f"cairn: error: {trouble}", file=sys.stderr)
        return 1
    bases: List[str] = options.cache or cache_folders(native.settings)
    found = [path for base in bases for path in folders_in(Path(base), user)]
    if not found:
        print(f"nothing of {user}'s jobs is in {', '.join(bases)}")
    done = [clean(path, options, known) for path in found]
    if not options.job and not options.cache:
        done.append(clean_simulated(options, [MEMORY, Path(tempfile.gettempdir())]))
    return 0 if all(done) else 1
