"""The programs to run, one for each MPI, with the command that starts it."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--program", action="append", default=[], metavar="FLAVOUR:PATH:LAUNCH",
                     help="LAUNCH is the launcher and its options, separated by spaces, up to and including -np")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    programs = [given.split(":", 2) for given in metafunc.config.getoption("--program")]
    metafunc.parametrize("program,launch", [(path, launch.split()) for _, path, launch in programs],
                         ids=[flavour for flavour, _, _ in programs])
