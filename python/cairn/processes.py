"""Processes that were started here, ended by their id and by nothing else."""

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
FILES_BESIDE = 512  # open at a time, beside those that are counted


def ends_with_us(by: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """For a child to call before it becomes its program: should this process die, however that happens, the
    child gets this signal. (Of the kernel's; it is kept by programs that are not set-uid.)"""
    parent = os.getpid()

    def in_child() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, by)
        if os.getppid() != parent:  # it has died before
            os._exit(128 + by)  # pylint: disable=protected-access
    return in_child


# Ends at a word; where nobody is left to say it, waits a while, and kills what is left of the group.
GUARD = "read -r word || {{ sleep {patience:g}; kill -s KILL -- -{group}; }} 2> /dev/null"


def guard_of(group: int, patience_s: float) -> "subprocess.Popen[bytes]":
    """A process that kills a group so long after this process has died, however that happens. A word to its standard
    input, and it does not."""
    return subprocess.Popen(["sh", "-c", GUARD.format(patience=patience_s, group=group)], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


class Exit(NamedTuple):
    """How a process ended: an exit code, or a signal."""

    code: int
    by_signal: bool


class Group:
    """A process that leads a group of its own. Its id stays its own, and its group's, until `close`:
    the process is looked at without being reaped. `guard`: what else would kill it."""

    def __init__(self, process: "subprocess.Popen[bytes]", guard: "Optional[subprocess.Popen[bytes]]" = None) -> None:
        self._process, self._guard = process, guard
        self._exit: Optional[Exit] = None

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def poll(self) -> Optional[Exit]:
        """None while it runs."""
        if self._exit is None:
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if seen is not None:
                self._exit = Exit(seen.si_status, seen.si_code != os.CLD_EXITED)
        return self._exit

    def wait(self, seconds: float) -> Optional[Exit]:
        """Its end, None if that does not come in time."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        return self.poll()

    def ask_to_end(self) -> None:
        """SIGTERM to the process, if it runs. Not by Popen, which would reap it first if it has just ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)

    def end(self, patience_s: float, by_itself_s: float = 0.0) -> Exit:
        """The process is asked to end (SIGTERM), after a while its group is killed. `by_itself_s`: what it gets to end in
        before it is asked: a launcher that is aborting already may crash at a signal."""
        self.wait(by_itself_s)
        self.ask_to_end()
        self.wait(patience_s)
        self.kill()
        self.wait(patience_s)
        return self.poll() or Exit(signal.SIGKILL, True)

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kills what is left of the group, then gives the ids back."""
        self.kill()
        if self._process.stdout:
            self._process.stdout.close()
        if self._guard:
            self._guard.communicate(b"over\n")
        self._process.wait()


class Lines:
    """The lines that a process writes to its standard output, as they come."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self.group, self.is_open = Group(process), True
        self.pipe, self._rest = process.stdout.fileno(), b""
        os.set_blocking(self.pipe, False)

    def news(self) -> List[str]:
        """Whole lines that have come since the last call."""
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
    """So many files may be open then, and others. Raises OSError where the hard limit forbids that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + FILES_BESIDE
    if resource.RLIM_INFINITY != hard < needed:
        raise OSError(errno.EMFILE, f"that takes {needed} open files, and ulimit -Hn allows {hard}")
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def readable(pipes: Iterable[int], seconds: float) -> List[int]:
    """Waits so long for any of them, of which there may be thousands."""
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    return [pipe for pipe, _ in poll.poll(1000 * seconds)]


def kill_recorded(pid: int, start: str) -> bool:
    """SIGKILL to exactly the process recorded, never to a later one of the same id."""
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
    """Of commands here, AT_ONCE of them at a time, which have so long together. None of those that cannot be started,
    or do not end in time."""
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
