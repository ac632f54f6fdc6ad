"""A mount of crfs in a temporary folder, unmounted whatever happens.

    def test_something(mounted):             # with the default options
        (mounted.path / "file").write_bytes(b"1")
    def test_something_else(mount):          # with others; several at once if need be
        one = mount("--pool", "1M", "--close", "async")
        assert one.unmount() == 0            # the exit status of the daemon
"""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable, Iterator, List, Optional

import pytest

STARTS_WITHIN_S = 20
ENDS_WITHIN_S = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, required=True, help="the folder that CMake has built in")


def why_no_mounts() -> Optional[str]:
    """The reason why nothing can be mounted here, or None."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be used: {error.strerror}"
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        return "neither root nor fusermount3 is here"
    return None


def is_mount(path: Path) -> bool:
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == str(path) for line in mounts)


class Mount:
    """A daemon in the foreground: what it says goes to the file `told`."""

    def __init__(self, command: Path, options: List[str], backing: Path, path: Path, told: Path,
                 environment: Optional[dict] = None) -> None:
        self.backing = backing
        self.path = path
        self.told = told
        backing.mkdir(exist_ok=True)
        path.mkdir(exist_ok=True)
        with open(told, "ab") as output:
            self.process = subprocess.Popen([command, "-f", *options, backing, path], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT,
                                            env={**os.environ, **(environment or {})})
        self._wait_until_mounted()

    def _wait_until_mounted(self) -> None:
        end = time.monotonic() + STARTS_WITHIN_S
        while not is_mount(self.path):
            assert self.process.poll() is None, f"crfs ended: {self.said()}"
            assert time.monotonic() < end, f"not mounted after {STARTS_WITHIN_S} s: {self.said()}"
            time.sleep(0.01)

    def said(self) -> str:
        return self.told.read_text(encoding="utf-8", errors="replace")

    def stats(self) -> dict:
        """The statistics of the living mount."""
        return json.loads(os.getxattr(self.path, "user.crfs.stats"))

    def wait(self) -> int:
        """The exit status of the daemon, which must be about to end."""
        return self.process.wait(ENDS_WITHIN_S)

    def unmount(self) -> int:
        """The exit status of the daemon."""
        command = ["umount", self.path] if os.geteuid() == 0 else ["fusermount3", "-u", self.path]
        end = time.monotonic() + ENDS_WITHIN_S
        # What a process that has just ended had open may be busy for a moment longer.
        while subprocess.run(command, capture_output=True, check=False).returncode != 0:
            if self.process.poll() is not None:
                break
            assert time.monotonic() < end, f"{self.path} cannot be unmounted: it is busy"
            time.sleep(0.05)
        return self.wait()

    def end(self) -> None:
        """Nothing is left, in whatever state the test was."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if is_mount(self.path):
            lazily = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-uz"]
            subprocess.run([*lazily, self.path], check=False, timeout=30)


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--build").resolve()


@pytest.fixture(scope="session")
def crfs(build: Path) -> Path:
    """The command; skips where nothing can be mounted."""
    reason = why_no_mounts()
    if reason:
        pytest.skip(f"skipped: {reason}")
    command = build / "src" / "crfs" / "crfs"
    if not command.exists():
        pytest.skip("skipped: crfs was not built, as libfuse3 is not here")
    return command


@pytest.fixture
def mount(crfs: Path, tmp_path: Path) -> Iterator[Callable[..., Mount]]:
    """Mounts with options; each mount has folders of its own unless it is told otherwise."""
    mounts: List[Mount] = []

    def one(*options: object, backing: Optional[Path] = None, path: Optional[Path] = None,
            environment: Optional[dict] = None) -> Mount:
        number = len(mounts)
        mounts.append(Mount(crfs, [str(option) for option in options],
                            backing or tmp_path / f"backing{number}", path or tmp_path / f"mount{number}",
                            tmp_path / f"told{number}", environment))
        return mounts[-1]

    yield one
    for mounted in reversed(mounts):
        mounted.end()


@pytest.fixture
def mounted(mount: Callable[..., Mount]) -> Mount:
    """A mount with the default options."""
    return mount()
