from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--build", required=True, type=Path, help="a configured build folder")


@pytest.fixture
def build(request):
    return request.config.getoption("--build")
