"""What keeps libcairn-interpose out of a program, and which other libraries are preloaded beside it. No program is started, and no
library is loaded: the files show it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Iterator, List, Mapping, NamedTuple, Optional, Set

from cairn.wrapping import LIBRARY, is_static

# Of the calls that the library wraps, those that a tool wraps if it wraps any.
CALLS = ("open", "open64", "openat", "fopen", "fopen64", "rename", "unlink", "stat", "readdir", "MPI_Init", "MPI_Init_thread",
         "MPI_Finalize")
DYNAMIC_SYMBOLS = 11  # the type of that section of an ELF file
SCRIPTS_MOST = 4  # interpreters that are scripts themselves


class Remark(NamedTuple):
    """What is so, and what to do."""

    what: str
    remedy: str


def interpreter_of(path: str) -> str:
    """The program that the kernel starts for a file: that itself, or the interpreter of a script."""
    for _ in range(SCRIPTS_MOST):
        try:
            with open(path, "rb") as file:
                words = file.readline(256).decode(errors="replace")
        except OSError:
            return path
        if not words.startswith("#!"):
            return path
        found = words[2:].split()
        if found and os.path.basename(found[0]) == "env":
            found = [shutil.which(word) or word for word in found[1:] if "=" not in word and not word.startswith("-")]
        if not found:
            return path
        path = found[0]
    return path


def has_more_rights(path: str) -> bool:
    """Whether the kernel gives the process more rights than the user has: then the loader preloads nothing."""
    with suppress(OSError):
        if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return True
        return bool(os.getxattr(path, "security.capability"))
    return False


def obstacle(program: str) -> Optional[Remark]:
    """Why the library of cairn wrap cannot be in this program; None if there is no sign of that."""
    path = shutil.which(program) or os.path.abspath(program)
    started = interpreter_of(path)
    name = program if started == path else f"{started}, the interpreter of {program},"
    if is_static(started):
        return Remark(f"{name} is statically linked: cairn wrap cannot preload its library into it, so the program's files would "
                      "stay in their places", "write its checkpoints to a mount of crfs --scr, link it dynamically, or use the calls of scr.h in it")
    if has_more_rights(started):
        return Remark(f"{name} has more rights than its user (set-user-ID, set-group-ID or capabilities): the loader preloads nothing "
                      "into it, so cairn wrap does not work", "start a copy without these rights, or use the calls of scr.h in it")
    return None


def preloaded(environment: Mapping[str, str], system: Path = Path("/etc/ld.so.preload")) -> List[str]:
    """The libraries that the loader puts into each program, first those of LD_PRELOAD."""
    text = ""
    with suppress(OSError):
        text = re.sub(r"#.*", "", system.read_text(encoding="utf-8", errors="replace"))
    return [name for name in re.split(r"[\s:]+", f"{environment.get('LD_PRELOAD', '')} {text}") if name]


def find_library(name: str, environment: Mapping[str, str]) -> Optional[Path]:
    """As the loader finds it; a name without a slash in its usual directories."""
    if "/" in name:
        return Path(name) if os.path.isfile(name) else None
    usual = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"]
    several = sysconfig.get_config_var("MULTIARCH")
    usual += [f"/lib/{several}", f"/usr/lib/{several}"] if several else []
    folders = [*environment.get("LD_LIBRARY_PATH", "").split(":"), *usual]
    return next((Path(folder) / name for folder in folders if folder and os.path.isfile(os.path.join(folder, name))), None)


def defined_in(library: Path) -> Set[str]:
    """The names that an ELF file of 64 bits defines for others; empty if it cannot be read."""
    try:
        data = library.read_bytes()
        if data[:5] != b"\x7fELF\x02":
            return set()
        order = "<" if data[5] == 1 else ">"
        (begin,), (size, count) = struct.unpack_from(f"{order}Q", data, 40), struct.unpack_from(f"{order}HH", data, 58)
        sections = [struct.unpack_from(f"{order}IIQQQQII", data, begin + size * i) for i in range(count)]
        found: Set[str] = set()
        for _, kind, _, _, offset, length, link, _ in sections:
            if kind != DYNAMIC_SYMBOLS:
                continue
            names = sections[link][4]
            for at in range(offset, offset + length, 24):
                name, _, _, section = struct.unpack_from(f"{order}IBBH", data, at)
                if section:
                    found.add(data[names + name:data.index(b"\0", names + name)].decode(errors="replace"))
        return found
    except (OSError, struct.error, ValueError, IndexError):
        return set()


def remarks_on_preloaded(environment: Mapping[str, str], system: Path = Path("/etc/ld.so.preload")) -> Iterator[Remark]:
    """On each library that is preloaded already."""
    for name in preloaded(environment, system):
        path = find_library(name, environment)
        if os.path.basename(name) == LIBRARY:
            yield Remark(f"{name} is preloaded already: programs that are started from here are wrapped",
                         "remove it from LD_PRELOAD, unless this is meant; cairn wrap sets it itself")
        elif path is None:
            yield Remark(f"the preloaded library {name} is not found: the loader prints an error for each program that starts",
                         "correct LD_PRELOAD")
        elif both := [call for call in CALLS if call in defined_in(path)]:
            yield Remark(f"the preloaded library {name} wraps calls that cairn wrap wraps too ({', '.join(both)}); cairn wrap puts it before "
                         "its own library, so that it sees the names that the program uses",
                         "nothing to do if it goes on to the next library (dlsym with RTLD_NEXT), as tools that measure do; one that "
                         "makes system calls itself keeps files out of the cache: remove it from LD_PRELOAD then")
        else:
            yield Remark(f"the preloaded library {name} wraps no call that cairn wrap wraps", "nothing to do")
