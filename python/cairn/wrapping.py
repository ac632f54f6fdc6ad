"""Unmodified programs under libcairn-interpose: where it is, the environment that it reads, and what a dry run has recorded."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set

from cairn.account import count_text
from cairn.native import Trouble

LIBRARY = "libcairn-interpose.so"
INTERPRETER = 3  # the kind of the part of a program that names its loader
REDIRECTED, PLAIN = "redirected", "plain"
NUMBER = r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"  # in place of a step
SOON_S = 1.0  # a step that is overwritten sooner may be no checkpoint yet
# What the library answers to an open; each leaves the file in its plain place.
REASONS = {
    "existing": "existed before, and was not emptied when it was opened",
    "missing": "does not exist",
    "special": "a link, a device, or a file with several names",
    "forbidden": "the permissions do not allow to write it",
    "directory": "a directory",
    "unmatched": "no pattern matches",
    "shared": "no rank is in its name, so all ranks may read it",
    "outside": "not below the prefix directory",
}


def library_of(native_path: Path) -> Path:
    """Beside the commands, or in the build tree."""
    for above in native_path.parents[1:4]:
        for found in sorted([*above.glob(f"lib*/{LIBRARY}"), *above.glob(f"lib/*/{LIBRARY}")]):
            return found
    raise Trouble(f"{LIBRARY} is not installed; build Cairn where libpcre2 (Debian: libpcre2-dev) is, and install it again")


def cache_of(base: str, user: str, prefix: str) -> str:
    """The same for each run of a prefix directory, so that the next one finds what a killed one has left. With %n for the name
    of the node if `base` has it."""
    digest = hashlib.sha256(os.path.realpath(prefix).encode()).hexdigest()[:16]
    return f"{base}/{user}/cairn-wrap.{digest}"


# The directories of wrapped programs and of mounts for them, beside those of the datasets.
CACHE_NAME = re.compile(r"cairn-(wrap\.[0-9a-f]{16}|mount\.[0-9a-f]{8})$")
OPEN_AT_END, ANY_JOB, UNFINISHED_JOB = "open_at_end", "job", "job.unfinished"


def files_waiting(cache: Path) -> List[str]:
    """The files that wait for their plain places, from the prefix directory on. Not those of a checkpoint, nor those of a program
    or a mount that has not finished, of which the next run takes care."""
    if (cache / UNFINISHED_JOB).exists():
        return []
    files, aside = cache / "files", cache / OPEN_AT_END
    waiting = [path.relative_to(aside).as_posix() for path in aside.rglob("*") if path.is_file()]
    if cache.name.startswith("cairn-mount."):
        return sorted(waiting)
    keeps_checkpoints = (cache / ANY_JOB).exists()
    return sorted(waiting) + sorted(path.relative_to(files).as_posix() for path in files.rglob("*")
                                    if path.is_file() and not (keeps_checkpoints and path.stat().st_nlink > 1))


def is_static(program: str) -> bool:
    """Whether it is an ELF file that asks for no loader: nothing can be preloaded into it."""
    try:
        with open(program, "rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":  # 64 bits
                return False
            order = "<" if head[5] == 1 else ">"
            (begin,), (size, count) = struct.unpack_from(f"{order}Q", head, 32), struct.unpack_from(f"{order}HH", head, 54)
            file.seek(begin)
            headers = file.read(size * count)
        kinds = {struct.unpack_from(f"{order}I", headers, at)[0] for at in range(0, len(headers), size or 1)}
    except (OSError, struct.error):
        return False
    return bool(kinds) and INTERPRETER not in kinds


def names_of(prefix: str, environment: Mapping[str, str]) -> List[str]:
    """The prefix directory without symbolic links, then the names under which a program may know it."""
    names = [os.path.realpath(prefix), os.path.abspath(prefix)]
    working = environment.get("PWD", "")
    if os.path.isabs(working) and os.path.isdir(working) and os.path.samefile(working, prefix):
        names.append(os.path.normpath(working))
    return list(dict.fromkeys(names))


def environment_of(library: Path, prefix: str, patterns: Sequence[str], environment: Mapping[str, str]) -> Dict[str, str]:
    """Other preloaded libraries come first: they then see the names that the program uses."""
    made = dict(environment)
    made["LD_PRELOAD"] = ":".join(filter(None, [environment.get("LD_PRELOAD", ""), str(library)]))
    made["CAIRN_WRAP_PREFIX"] = "\n".join(names_of(prefix, environment))
    made["CAIRN_WRAP_PATTERNS"] = "\n".join(patterns)
    for name in ("CAIRN_WRAP_LOG", "CAIRN_WRAP_CACHE"):
        made.pop(name, None)
    return made


class Event(NamedTuple):
    """A line of the log of a process."""

    time: str
    call: str
    mode: str  # of an open; for rename, what the new name is
    verdict: str
    pattern: int
    step: str
    path: str
    other: str
    process: str


def events_in(folder: Path) -> List[Event]:
    """Of all processes, in order. A line that a killed process has not finished is left out."""
    found: List[Event] = []
    for log in sorted(folder.glob("*.log")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split("\t")
            if len(words) == 8:
                found.append(Event(words[0].rjust(24, "0"), words[1], words[2], words[3], int(words[4]), *words[5:], log.stem))
    return sorted(found)


@dataclass
class Opened:
    """One file, and what would be done with it."""

    path: str
    what: str = PLAIN
    why: str = ""
    step: str = ""
    pattern: int = -1
    writers: Set[str] = field(default_factory=set)
    readers: Set[str] = field(default_factory=set)
    begun: List[float] = field(default_factory=list)  # when it was created, emptied or replaced
    sources: Set[str] = field(default_factory=set)  # the names from which it was renamed

    @property
    def is_counted(self) -> bool:
        """Whether a step of it is known only by how often its name has come."""
        return not re.fullmatch(NUMBER, self.step)

    @property
    def has_changing_sources(self) -> bool:
        """Whether it is counted, and written under another temporary name each time."""
        return self.is_counted and len(self.sources) > 1

    def as_json(self) -> Dict[str, Any]:
        return {"path": self.path, "what": self.what, "why": self.why, "step": self.step or None,
                "pattern": self.pattern if self.pattern >= 0 else None, "writers": len(self.writers), "readers": len(self.readers)}


class Forecast:
    """What the library would have done, from the events of a dry run. It keeps in mind which files would be in the cache by
    then: an open that finds such a file in its plain place would have found it there."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.files: Dict[str, Opened] = {}
        self.moved_in: List[str] = []
        self._changing: Dict[str, str] = {}  # names that come again, and the newest temporary name of each, which a pattern matches
        self._cached: Set[str] = set()
        self._linked: Set[str] = set()  # files to which a link leads
        self._below_renamed: Set[str] = set()
        for event in events:
            if event.call.startswith("rename"):
                self._rename(event)
            elif event.call in ("unlink", "unlinkat", "remove"):
                self._cached.discard(event.path)
            elif event.call in ("link", "symlink"):
                self._link(event)
            else:
                self._open(event)

    def _open(self, event: Event) -> None:
        is_written = "w" in event.mode
        if event.verdict == "missing" and not is_written and event.path not in self._cached:
            return  # most are searches along a path
        one = self.files.setdefault(event.path, Opened(event.path))
        (one.writers if is_written else one.readers).add(event.process)
        one.step, one.pattern = event.step or one.step, max(one.pattern, event.pattern)
        was_cached = event.path in self._cached
        if event.verdict == "created" or was_cached:
            self._cached.add(event.path)
            self._linked.discard(event.path)
            one.what, one.why = REDIRECTED, f"pattern {event.pattern + 1} matches"
            if "t" in event.mode or not was_cached:
                one.begun.append(float(event.time))
        elif one.what != REDIRECTED and event.path not in self._linked:
            one.why = REASONS.get(event.verdict, event.verdict)

    def _rename(self, event: Event) -> None:
        """`mode` is what the new name is, and pattern and step are of it."""
        was_cached = event.path in self._cached
        self._below_renamed.update(path for path in self._cached if path.startswith(f"{event.path}/"))
        self._cached.discard(event.path)
        self._cached.discard(event.other)
        one = self.files.pop(event.path, Opened(event.path))
        before = self.files.get(event.other, Opened(event.other))
        one.path, one.begun = event.other, [*before.begun, float(event.time)]
        one.sources = before.sources | {event.path}
        self.files[event.other] = one
        one.step, one.pattern = event.step, event.pattern
        if event.mode != "matched":
            one.what, one.why = PLAIN, "it leaves the cache by a rename, as no pattern matches this name" if was_cached else REASONS[event.mode]
            return
        one.what, one.why = REDIRECTED, f"pattern {event.pattern + 1} matches the name that it gets by a rename"
        self._cached.add(event.other)
        if not was_cached:
            self.moved_in.append(event.other)
        elif one.has_changing_sources:
            self._changing[event.other] = event.path

    def _link(self, event: Event) -> None:
        """A symbolic link to the file or its directory, or a second name: these are found without the library. `mode` is what the
        link is, and pattern and step are of it."""
        for path in [path for path in self._cached if path == event.path or path.startswith(f"{event.path}/")]:
            self._cached.discard(path)
            self._linked.add(path)
            self.files[path].what, self.files[path].why = PLAIN, f"it leaves the cache, as {os.path.basename(event.other)} is a link to it"
        if event.mode == "matched":
            link = self.files.setdefault(event.other, Opened(event.other))
            link.what, link.why, link.step, link.pattern = PLAIN, REASONS["special"], event.step, event.pattern

    def notes(self, patterns: Sequence[str]) -> Iterator[str]:
        """What the user should know before a real run."""
        redirected = [one for one in self.files.values() if one.what == REDIRECTED]
        used = {one.pattern for one in self.files.values()}
        for number, pattern in enumerate(patterns):
            if number not in used:
                yield f"pattern {number + 1} ({pattern}) matches no file that was opened; it is searched for in the path from the prefix directory on"
        for one in redirected:
            if len(one.writers) > 1:
                yield (f"{one.path}: {len(one.writers)} processes write it; on several nodes each node would have a file of its own: "
                       "do not let a pattern match files that processes of several nodes share")
        helped = [path for path in self.moved_in if not self.files.get(path, Opened(path)).has_changing_sources]
        if helped:
            yield (f"{count_text(len(helped), 'file')} would be copied into the cache by a rename; let the pattern match "
                   "the temporary name too, and nothing is copied")
        if self._linked:
            yield (f"{count_text(len(self._linked), 'file')} would leave the cache, as links lead to them. In an MPI program their steps "
                   "become no checkpoints: let the program make no links to such files")
        if self._below_renamed:
            yield (f"{count_text(len(self._below_renamed), 'file')} would be in a directory that is renamed. In an MPI program their steps "
                   "become no checkpoints: give the directory its name from the beginning")
        for path, source in self._changing.items():
            yield (f"{source} is renamed to {path}, from another name each time. In an MPI program each new name counts as a file of the "
                   "step before, so only the last step becomes a checkpoint: let no pattern match the temporary names")
        yield from self._note_on_repeated([one for one in redirected if one.is_counted and len(one.begun) > 1])
        if any(not one.step for one in redirected):
            yield "a pattern has no group (?<step>...), or it is empty; name the step, so that files of one checkpoint are known as such"

    @staticmethod
    def _note_on_repeated(again: Sequence[Opened]) -> Iterator[str]:
        if not again:
            return
        shortest, one = min((later - earlier, one.path) for one in again for earlier, later in zip(one.begun, one.begun[1:]))
        yield (f"{count_text(len(again), 'name')} {'comes' if len(again) == 1 else 'come'} again, such as {one}: each time counts as a step. "
               "If the next step overwrites all of them, the first step is no checkpoint")
        if shortest < SOON_S:
            yield (f"{one} was overwritten after {shortest:.2f} s, which is too soon: such a step may be no checkpoint. Let the program "
                   "write less often, or give each step names of its own")


def lines_of(forecast: Forecast, prefix: str, shows_all: bool) -> Iterator[str]:
    """For people: the checkpoints, then other files below the prefix directory that are written; the rest as numbers."""
    inside = os.path.realpath(prefix) + "/"
    rest: Dict[str, int] = {}
    for path, one in sorted(forecast.files.items(), key=lambda item: (item[1].what != REDIRECTED, item[0])):
        name = path[len(inside):] if path.startswith(inside) else path
        if one.what == REDIRECTED:
            step = f", step {one.step}" if one.step else ""
            yield f"  {name}: to the cache{step}: {one.why}; written by {len(one.writers)} process{'' if len(one.writers) == 1 else 'es'}"
        elif shows_all or (one.writers and path.startswith(inside)) or one.pattern >= 0:
            yield f"  {name}: stays in its place: {one.why}"
        else:
            rest[one.why] = rest.get(one.why, 0) + 1
    for why, count in sorted(rest.items()):
        yield f"  {count_text(count, 'other file')} {'stays' if count == 1 else 'stay'} in place: {why} (--all lists them)"
