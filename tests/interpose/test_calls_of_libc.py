"""Each call of libc that takes a path is wrapped, or is here with the reason why not. A call that a new libc has, and that
its headers declare in the usual way, is found: the next release of a compiler may call it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Dict, Iterator, Set, Tuple

# What the guide lists as not served (docs/guides/unmodified-programs.md).
IN_GUIDE = {"fts_open", "fts64_open", "getdents64", "getdirentries", "getdirentries64", "wordexp", "inotify_add_watch",
            "posix_spawn_file_actions_addopen", "name_to_handle_at", "mkstemp", "mkstemp64", "mkostemp", "mkostemp64",
            "mkstemps", "mkstemps64", "mkostemps", "mkostemps64"}
NOT_WRAPPED: Dict[str, str] = {
    "it names no file": "fnmatch getenv secure_getenv setenv unsetenv setdomainname sethostname setlogin basename "
                        "glob_pattern_p",
    "only directories, which are in their plain places": "mkdtemp chroot posix_spawn_file_actions_addchdir_np bindtextdomain",
    "it makes up a name, and opens nothing": "mktemp tempnam tmpnam tmpnam_r",
    "programs and their libraries are no checkpoint files":
        "execl execle execlp execv execve execveat execvp execvpe posix_spawn posix_spawnp dlopen dlmopen",
    "files of the system": "acct catopen getttynam setmntent swapoff swapon utmpname utmpxname updwtmp updwtmpx quotactl revoke "
                           "shm_open shm_unlink sem_open sem_unlink mq_open mq_unlink",
    "mounts, which need an administrator": "mount umount umount2 mount_setattr move_mount open_tree fspick fanotify_mark",
    "it shows a text": "error_at_line __assert __assert_fail __assert_perror_fail",
    "a key, which is the same for each process that finds the file in its place": "ftok",
    "no program has called these names since libc 2.1": "_IO_fopen __statfs",
}
PATH_NAMES = {"file", "filename", "fname", "path", "pathname", "from", "to", "old", "new", "dir", "dirname", "template", "pattern",
              "special_file", "special", "cat_name", "wtmp_file", "wtmpx_file", "from_pathname", "to_pathname", "tty"}
# Their headers declare these without the names of parameters, with another type, or with one that says nothing.
WITHOUT_NAMES = {"fts_open", "fts64_open", "getdents64", "getdirentries", "getdirentries64", "wordexp", "tmpnam", "tmpnam_r"}
# Where a `name` is that of a file.
OF_FILES = {"unistd.h", "fcntl.h", "fcntl-linux.h", "stdlib.h", "dirent.h", "stat.h", "inotify.h", "mman.h", "semaphore.h", "mqueue.h"}
HEADERS = """assert dirent dlfcn err error fcntl fnmatch fstab fts ftw glob libintl locale mntent mqueue nl_types semaphore
spawn stdio stdlib string sys/acct sys/fanotify sys/file sys/inotify sys/ipc sys/mman sys/mount sys/quota sys/shm sys/stat
sys/statfs sys/statvfs sys/swap sys/time sys/types sys/vfs sys/xattr ttyent unistd utime utmp utmpx wchar wordexp""".split()


def exported(library: Path) -> Set[str]:
    lines = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r" [TWi] (\w+)", lines))


def declarations() -> Iterator[Tuple[str, str]]:
    """Each with the name of its header."""
    source = "".join(f"#if __has_include(<{name}.h>)\n#include <{name}.h>\n#endif\n" for name in HEADERS)
    text = subprocess.run([os.environ.get("CC", "cc"), "-E", "-D_GNU_SOURCE", "-xc", "-"], input=source, stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    for part in re.split(r'^# \d+ "', text, flags=re.MULTILINE)[1:]:
        header, _, body = part.partition('"')
        body = re.sub(r"^[ \d]*$", "", body, flags=re.MULTILINE)
        for declaration in re.split(r"[;{}]", body):
            yield Path(header).name, " ".join(declaration.split())


def calls_with_paths() -> Set[str]:
    found = set(WITHOUT_NAMES)
    for header, declaration in declarations():
        function = re.search(r"\b(\w+) ?\(", declaration)
        parameters = re.findall(r"\bconst char ?\*(?: ?__restrict(?:__)?| ?restrict)? ?_*(\w+)", declaration)
        parameters += re.findall(r"\bchar ?\*_*(template)\b", declaration)
        is_file = [name for name in parameters if name in PATH_NAMES or (name == "name" and header in OF_FILES)]
        if function and is_file:
            found.add(function[1])
    return found


def other_names(calls: Set[str], of_libc: Set[str]) -> Set[str]:
    """`__open`, `__open_2`, `__xmknod`, `__fxstatat` and `_IO_fopen` of these."""
    found = set()
    for name in of_libc:
        inner = re.fullmatch(r"(?:__|_IO_)(\w+?)(?:_2|_chk)?", name)
        if inner and (inner[1] in calls or inner[1].replace("x", "", 1) in calls):
            found.add(name)
    return found


def test_each_call_of_libc_that_takes_a_path_is_wrapped_or_has_a_reason(library: Path, build: Path) -> None:
    linked = subprocess.run(["ldd", build / "tests/interpose/interpose_table"], stdout=subprocess.PIPE, text=True, check=True).stdout
    libc = re.search(r"libc\.so\.6 => (\S+)", linked)
    assert libc, linked
    of_libc, wrapped = exported(Path(libc[1])), exported(library)
    reasons = IN_GUIDE.union(*(names.split() for names in NOT_WRAPPED.values()))
    calls = calls_with_paths() & of_libc
    calls |= other_names(calls - reasons, of_libc)
    assert len(calls) > 120, "the headers were not understood"
    assert calls - wrapped - reasons == set(), "wrap these calls, or say why not"
    assert reasons & wrapped == set(), "these are wrapped"


def test_the_guide_names_the_calls_that_are_not_served() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/unmodified-programs.md").read_text(encoding="utf-8")
    for name in ("fts", "getdents64", "wordexp", "inotify", "posix_spawn_file_actions_addopen", "name_to_handle_at", "mkstemp"):
        assert f"`{name}`" in guide, name
