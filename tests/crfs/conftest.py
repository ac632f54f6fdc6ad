"""Options and fixtures of the suites over a mount of CRFS."""

import os
import shutil
from pathlib import Path
from typing import Callable, Iterator

import pytest

from mounts import Mount, Workshop, keep_mounts_to_ourselves

GATHERING = ("direct", "writeback")
MODES = (*GATHERING, "passthrough")
SKIPPED = 77  # for CTest
NO_PASSTHROUGH = "NOT RUN: this kernel passes no files through (Linux 6.12 or later, root)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, default=Path("build/dev"), help="the build folder")
    parser.addoption("--plain", action="store_true", help="test the suites: a plain passthrough in CRFS's place")
    parser.addoption("--long", action="store_true", help="as large as the soak has them")
    parser.addoption("--seeds", type=seeds_of, default=range(1, 2), metavar="FROM:TO",
                     help="what is random is drawn from these, the last one excluded")


def seeds_of(text: str) -> range:
    """"3:5" are 3 and 4."""
    first, _, end = text.partition(":")
    return range(int(first), int(end))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "crfs_only: a plain passthrough cannot pass it")
    config.addinivalue_line("markers", "gathers: about what is gathered, so not for files that are left to the kernel")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3"):
        pytest.exit("SKIPPED: no FUSE here (/dev/fuse, fusermount3)", SKIPPED)
    keep_mounts_to_ourselves()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that a program was missing for has not passed: it counts as skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    missing = any("NOT RUN" in str(report.longrepr) for report in reporter.stats.get("skipped", []))
    if exitstatus == 0 and missing:
        session.exitstatus = SKIPPED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = {name for mark in metafunc.definition.iter_markers("parametrize")
             for name in mark.args[0].replace(" ", "").split(",")}
    for name, values in (("seed", metafunc.config.getoption("seeds")), ("mode", MODES), ("gathering", GATHERING)):
        if name in metafunc.fixturenames and name not in given:
            metafunc.parametrize(name, values)
    if "mounted" in metafunc.fixturenames and not {"writer", "command"} & set(metafunc.fixturenames) \
            and not any(metafunc.definition.iter_markers("gathers")):
        metafunc.parametrize("mounted", ("direct", "passthrough"), indirect=True)


@pytest.fixture(autouse=True)
def _left_out(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("plain") and request.node.get_closest_marker("crfs_only"):
        pytest.skip("only CRFS does that")


@pytest.fixture(scope="session")
def kernel_passes(build: Path) -> bool:
    workshop = Workshop(build)
    try:
        mount = workshop.crfs("--mode", "passthrough")
        (mount.path / "file").write_bytes(b"1")
        return mount.stats()["passed_through"] > 0
    except RuntimeError:  # not for who is not root
        return False
    finally:
        workshop.close()


@pytest.fixture(autouse=True)
def _passed_through(request: pytest.FixtureRequest) -> None:
    """Where the kernel cannot, a test with this mode would show what "direct" does once more."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if "passthrough" in (parameters.get("mode"), parameters.get("mounted")) and not request.getfixturevalue("kernel_passes"):
        pytest.skip(NO_PASSTHROUGH)


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("long")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("build").resolve()


@pytest.fixture
def workshop(build: Path, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    # The folders of the tests are in memory, where nothing would be gathered.
    workshop = Workshop(build, request.config.getoption("plain"), mode="direct")
    yield workshop
    workshop.close()


@pytest.fixture
def needs(build: Path) -> Callable[[str], str]:
    """needs("fio"): the path of a program; the test is skipped, and says so, where it is not installed."""

    def path_of(program: str) -> str:
        # What `make soak-crfs` has built with cargo lies in the build folder.
        path = shutil.which(program, path=f"{build}/crfs-suite/bin:{os.environ['PATH']}")
        if path is None:
            pytest.skip(f"NOT RUN: {program} is not there (make soak-crfs installs what Debian and cargo have)")
        return path

    return path_of


@pytest.fixture
def mount(workshop: Workshop) -> Callable[..., Mount]:
    """mount("--pool", "1M"): CRFS with options, over a folder in memory of its own if not told otherwise."""
    return workshop.crfs


@pytest.fixture
def mounted(workshop: Workshop, request: pytest.FixtureRequest) -> Mount:
    """CRFS without options, that gathers, or does not where nothing in a test needs that."""
    return workshop.crfs("--mode", getattr(request, "param", "direct"))
