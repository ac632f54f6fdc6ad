"""Where the package and the command are; and what was skipped makes all of it count as skipped."""

import sys
from pathlib import Path

import pytest

SKIPPED = 77  # SKIP_RETURN_CODE
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cairn", type=Path, required=True, help="the command")


class Skips:
    """Tests, or files of them, that were."""

    def __init__(self) -> None:
        self.any = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.any = self.any or report.skipped

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.any = self.any or report.skipped

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.any and session.exitstatus == 0:
            session.exitstatus = SKIPPED


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Skips())


@pytest.fixture
def cairn(request: pytest.FixtureRequest) -> Path:
    return request.config.getoption("--cairn").resolve()
