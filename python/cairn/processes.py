"""Processes started here. They are ended by their id only."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from cairn.on_node import started_at

LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
AT_ONCE = 256  # commands
FILES_BESIDE = 512  # open files in addition to those that are counted


def ends_with_us(by: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Returns a function that a child calls before it executes its program: if this process dies in any way, the kernel
    sends this signal to the child. (Programs that are not set-uid keep this.)"""
    parent = os.getpid()

    def in_child() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, by)
        if os.getppid() != parent:  # the parent died before prctl()
            os._exit(128 + by)  # pylint: disable=protected-access
    return in_child


# Ends when it reads a word; if the writer has ended, it waits, and kills the rest of the group.
GUARD = "read -r word || {{ sleep {patience:g}; kill -s KILL -- -{group}; }} 2> /dev/null"


def guard_of(group: int, patience_s: float) -> "subprocess.Popen[bytes]":
    """A process that kills a group `patience_s` after this process has died in any way. A word on its standard input
    prevents that."""
    return subprocess.Popen(["sh", "-c", GUARD.format(patience=patience_s, group=group)], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


class Exit(NamedTuple):
    """How a process ended: an exit code, or a signal."""

    code: int
    by_signal: bool


class Group:
    """A process with its own process group. The ids stay valid until `close`, as the process is not reaped before.
    `guard`: the process that would kill the group."""

    def __init__(self, process: "subprocess.Popen[bytes]", guard: "Optional[subprocess.Popen[bytes]]" = None) -> None:
        self._process, self._guard = process, guard
        self._exit: Optional[Exit] = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def poll(self) -> Optional[Exit]:
        """None while it runs."""
        if self._exit is None:
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if seen is not None:
                self._exit = Exit(seen.si_status, seen.si_code != os.CLD_EXITED)
        return self._exit

    def wait(self, seconds: float) -> Optional[Exit]:
        """How it ended; None if it is still running after `seconds`."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        return self.poll()

    def ask_to_end(self) -> None:
        """Sends SIGTERM to the process. Does not use Popen, which would reap a process that has just ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)

    def end(self, patience_s: float, by_itself_s: float = 0.0) -> Exit:
        """Sends SIGTERM to the process, and kills its group after `patience_s`. Before that it waits `by_itself_s`, as a
        launcher that is already aborting may crash at a signal."""
        self.wait(by_itself_s)
        self.ask_to_end()
        self.wait(patience_s)
        self.kill()
        self.wait(patience_s)
        return self.poll() or Exit(signal.SIGKILL, True)

    def kill(self) -> None:
        """Sends SIGKILL to the whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kills the rest of the group, then releases the ids."""
        self.kill()
        if self._process.stdout:
            self._process.stdout.close()
        if self._guard:
            self._guard.communicate(b"over\n")
        self._process.wait()


class Lines:
    """Reads the lines of a process's standard output as they come."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self.group, self.is_open = Group(process), True
        self.pipe, self._rest = process.stdout.fileno(), b""
        os.set_blocking(self.pipe, False)

    def news(self) -> List[str]:
        """The complete lines since the last call."""
        try:
            added = os.read(self.pipe, 65536) if self.is_open else b""
            self.is_open = bool(added)
        except BlockingIOError:
            return []
        except OSError:
            self.is_open = False
            return []
        *lines, self._rest = (self._rest + added).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]


def allow_files(count: int) -> None:
    """Allows `count` open files in addition to others. Raises OSError if the hard limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + FILES_BESIDE
    if resource.RLIM_INFINITY != hard < needed:
        raise OSError(errno.EMFILE, f"that takes {needed} open files, and ulimit -Hn allows {hard}")
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def readable(pipes: Iterable[int], seconds: float) -> List[int]:
    """Waits up to `seconds` until a pipe is readable. There may be thousands."""
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    return [pipe for pipe, _ in poll.poll(1000 * seconds)]


def kill_recorded(pid: int, start: str) -> bool:
    """Sends SIGKILL to exactly the recorded process, never to a later one with the same id."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not start or started_at(pid) != start:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def exit_codes(commands: Mapping[str, Sequence[str]], timeout_s: float) -> Dict[str, int]:
    """Runs local commands, AT_ONCE at a time, each group with the same time limit. Returns no code for those that cannot
    be started or do not end in time."""
    codes: Dict[str, int] = {}
    names = list(commands)
    for at in range(0, len(names), AT_ONCE):
        started = {}
        for name in names[at:at + AT_ONCE]:
            with suppress(OSError):
                started[name] = subprocess.Popen(list(commands[name]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                 stderr=subprocess.DEVNULL)
        end = time.monotonic() + timeout_s
        for name, process in started.items():
            try:
                codes[name] = process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return codes
