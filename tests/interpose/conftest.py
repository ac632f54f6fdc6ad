"""A prefix directory, a cache, and programs that run between them with the preloaded library."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import pytest

PATTERN = r"ckpt\.(?<step>\d+)$"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", required=True, help="the build folder")


@pytest.fixture(scope="session")
def build(pytestconfig: pytest.Config) -> Path:
    return Path(pytestconfig.getoption("--build"))


@pytest.fixture(scope="session")
def library(build: Path) -> Path:
    return build / "lib/libcairn-interpose.so"


@dataclass
class Place:
    """Where a program runs."""

    prefix: Path
    cache: Path
    library: Path
    patterns: Sequence[str] = (PATTERN,)
    more: Dict[str, str] = field(default_factory=dict)

    def environment(self) -> Dict[str, str]:
        return {**os.environ, "LC_ALL": "C", "LD_PRELOAD": str(self.library), "CAIRN_WRAP_PREFIX": str(self.prefix),
                "CAIRN_WRAP_CACHE": str(self.cache), "CAIRN_WRAP_PATTERNS": "\n".join(self.patterns),
                "CAIRN_WRAP_FREE_PERCENT": "0", **self.more}

    def run(self, *command: object, is_wrapped: bool = True, cwd: "Path | None" = None) -> "subprocess.CompletedProcess[str]":
        environment = self.environment() if is_wrapped else {**os.environ, "LC_ALL": "C"}
        return subprocess.run([str(word) for word in command], cwd=cwd or self.prefix, env=environment, text=True,
                              capture_output=True, timeout=120, check=False)

    def shell(self, script: str) -> str:
        """The output of a script that runs wrapped. It must end well and be silent otherwise."""
        done = self.run("bash", "-c", script)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def python(self, program: str) -> str:
        done = self.run("/usr/bin/python3", "-B", "-c", program)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def cached(self) -> List[str]:
        """The files in the cache, from the prefix directory on."""
        root = self.cache / "files"
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def plain(self) -> List[str]:
        return sorted(path.relative_to(self.prefix).as_posix() for path in self.prefix.rglob("*") if path.is_file())

    def hold(self) -> "Held":
        """Keeps processes from being the last of the node, as a process that runs on does."""
        return Held(self.cache)


class Held:
    def __init__(self, cache: Path) -> None:
        cache.mkdir(mode=0o700, exist_ok=True)
        self.lock = os.open(cache / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> "Held":
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.lock)


@pytest.fixture
def place(library: Path) -> Iterator[Place]:
    """In memory, as syncs of a disk would take most of the time."""
    root = Path(tempfile.mkdtemp(prefix="interpose.", dir="/dev/shm")).resolve()
    (root / "run").mkdir()
    yield Place(root / "run", root / "cache", library)
    shutil.rmtree(root, ignore_errors=True)
