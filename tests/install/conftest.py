"""What CMake tells the install tests: the build folder, and how each MPI flavour launches."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", required=True, help="the build folder to install from")
    parser.addoption("--launch", action="append", default=[],
                     help="FLAVOUR=COMMAND up to and including -np; the primary flavour first")


def launchers(config: pytest.Config) -> dict:
    return {flavour: command.split()
            for flavour, _, command in (text.partition("=") for text in config.getoption("--launch"))}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", launchers(metafunc.config))


@pytest.fixture(scope="session")
def launch(pytestconfig: pytest.Config) -> dict:
    return launchers(pytestconfig)


@pytest.fixture(scope="session")
def primary(launch: dict) -> str:
    return next(iter(launch))
