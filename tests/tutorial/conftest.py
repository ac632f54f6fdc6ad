"""What CMake tells these tests: the build directory, and the MPIs that it is built for."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", required=True, help="the build directory to install from")
    parser.addoption("--flavours", required=True, help="openmpi, mpich, or both with a comma between")


def flavours(config: pytest.Config) -> list:
    return config.getoption("--flavours").split(",")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", flavours(metafunc.config))


@pytest.fixture(scope="session")
def all_flavours(pytestconfig: pytest.Config) -> list:
    return flavours(pytestconfig)
