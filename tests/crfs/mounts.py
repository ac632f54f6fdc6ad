"""File systems of user processes, mounted for a test: CRFS, and slowfs, which can be slow, fail and record."""

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

PATIENCE_S = 60
NEW_MOUNT_NAMESPACE = 0x20000  # of <sched.h>
MOUNT_RECURSIVE, MOUNT_PRIVATE = 1 << 14, 1 << 18  # of <sys/mount.h>


class Mount:
    """A daemon in the foreground and what it shows at `path`."""

    def __init__(self, command: List[str], backing: Path, path: Path, environment: Dict[str, str]) -> None:
        self.backing, self.path = backing, path
        self._exit_is_logged = False  # to the test, whose business it is then
        self._told = path.with_suffix(".told")
        path.mkdir(exist_ok=True)
        with self._told.open("ab") as told:
            self.process = subprocess.Popen(command, stdout=told, stderr=told, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **environment})
        deadline = time.monotonic() + PATIENCE_S
        while not is_mount(path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self._take_away()
                raise RuntimeError(f"{command} did not mount:\n{self.said()}")
            time.sleep(0.005)

    def said(self) -> str:
        """What the daemon has printed."""
        return self._told.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        """The exit status of the daemon, which must be about to end."""
        status = self.process.wait(PATIENCE_S)
        self._exit_is_logged = True
        return status

    def unmount(self) -> int:
        """As a user does it, when nothing is open; the exit status of the daemon."""
        subprocess.run(["fusermount3", "-u", str(self.path)], check=True, timeout=PATIENCE_S)
        return self.wait()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to the daemon; the mount stays, and nobody serves it."""
        self.process.kill()
        self.wait()

    def die(self) -> None:
        """The same, and the mount is taken away as an administrator would."""
        self.kill()
        detach(self.path)

    def end(self) -> None:
        """Whatever the test has left is cleaned up. Fails where the daemon did, and no test has asked how it ended,
        or where a sanitizer found something."""
        self._take_away()
        said = self.said()
        assert "Sanitizer:" not in said and "runtime error:" not in said, said
        assert self._exit_is_logged or self.process.returncode == 0, (
            f"{self.process.args} ended with {self.process.returncode}:\n{said}")

    def _take_away(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            detach(self.path)
            # What a test has left open would keep the mount.
            for number in (0, signal.SIGTERM, signal.SIGKILL):
                self.process.send_signal(number)
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(5)
                    break
        detach(self.path)

    def stats(self) -> Dict[str, Any]:
        """Of CRFS only: the counters of the live mount."""
        return json.loads(os.getxattr(self.path, "user.crfs.stats"))

    def set(self, setting: str, value: str = "") -> None:
        """Of slowfs only: `setting` is an option without its dashes, or "clear"."""
        os.setxattr(self.path, f"user.slowfs.{setting}", value.encode())

    def counts(self) -> Dict[str, int]:
        """Of slowfs only: the requests so far, by kind."""
        return json.loads(os.getxattr(self.path, "user.slowfs.counts"))


def run(*command: object, cwd: Path, patience_s: int = 300, env: Optional[Dict[str, str]] = None) -> str:
    """What a program that must succeed prints."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=patience_s, env={**os.environ, "LC_ALL": "C", **(env or {})})
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}"
    return done.stdout


def other_kernel(build: Path, **what: str) -> Dict[str, str]:
    """The environment of a CRFS that believes to be on another kernel: see other_kernel.c."""
    return preloaded(build, "other_kernel", **what)


def other_node(build: Path, **what: str) -> Dict[str, str]:
    """The environment of a CRFS whose backing folder is other nodes' too: see other_node.c."""
    return preloaded(build, "other_node", **what)


def preloaded(build: Path, name: str, **what: str) -> Dict[str, str]:
    return {"LD_PRELOAD": str(build / f"tests/crfs/{name}.so"), "ASAN_OPTIONS": "verify_asan_link_order=0",
            **{f"{name.upper()}_{setting}": value for setting, value in what.items()}}


def keep_mounts_to_ourselves() -> None:
    """No other process of the machine that makes itself a mount namespace takes our mounts into it, where they would
    live on after an unmount. And what a killed test has mounted goes with its processes. Does nothing without root."""
    libc = ctypes.CDLL(None)
    if os.geteuid() == 0 and libc.unshare(NEW_MOUNT_NAMESPACE) == 0:
        libc.mount(b"none", b"/", None, MOUNT_RECURSIVE | MOUNT_PRIVATE, None)


def is_mount(path: Path) -> bool:
    """Asks the kernel, not the daemon, which may be dead or stand still."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == str(path) for line in mounts)


def detach(path: Path) -> None:
    subprocess.run(["fusermount3", "-u", "-z", "-q", str(path)], stderr=subprocess.DEVNULL, timeout=PATIENCE_S)


class Workshop:
    """Makes mounts in a folder of its own, and takes all away at the end.

    With `plain`, slowfs without its faults takes the place of CRFS: the suites must pass on it too, but for
    what only CRFS does. `mode` is that of CRFS where a mount does not say.
    """

    def __init__(self, build: Path, plain: bool = False, parent: Optional[Path] = None,
                 mode: str = "auto") -> None:
        self.build, self.plain, self.mode = build, plain, mode
        self._folder = tempfile.TemporaryDirectory(prefix="cairn-crfs-", dir=parent or "/dev/shm")
        self.folder = Path(self._folder.name)
        self._mounts: List[Mount] = []
        self._disks: List[Path] = []

    def new_folder(self, name: str) -> Path:
        folder = self.folder / f"{name}{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        folder.chmod(0o755)
        return folder

    def small_disk(self, size: int, disk: Optional[Path] = None) -> Path:
        """A file system in memory of so many bytes; only root can mount it."""
        disk = disk or self.new_folder("disk")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=True)
        self._disks.append(disk)
        return disk

    def slowfs(self, *options: str, backing: Optional[Path] = None, path: Optional[Path] = None) -> Mount:
        command = [str(self.build / "tests/crfs/slowfs")]
        return self._mount(command, backing, options, path)

    def crfs(self, *options: str, backing: Optional[Path] = None, path: Optional[Path] = None,
             environment: Optional[Dict[str, str]] = None) -> Mount:
        if self.plain:
            return self.slowfs(backing=backing)
        command = [str(self.build / "src/crfs/crfs"), "--foreground"]
        if not {"--mode", "--icpp2011"} & set(options):
            command += ["--mode", self.mode]
        return self._mount(command, backing, options, path, environment)

    def _mount(self, command: List[str], backing: Optional[Path], options: Sequence[object],
               path: Optional[Path] = None, environment: Optional[Dict[str, str]] = None) -> Mount:
        backing = backing or self.new_folder("backing")
        path = path or self.new_folder("mount")
        backing.mkdir(exist_ok=True)
        mount = Mount([*command, *map(str, options), str(backing), str(path)], backing, path, environment or {})
        self._mounts.append(mount)
        return mount

    def close(self) -> None:
        # CRFS before the slow file system below it.
        failed: List[str] = []
        for mount in reversed(self._mounts):
            try:
                mount.end()
            except AssertionError as error:
                failed.append(str(error))
        for disk in reversed(self._disks):
            subprocess.run(["umount", str(disk)], check=True)
        self._folder.cleanup()
        assert not failed, "\n".join(failed)
