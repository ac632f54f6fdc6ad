"""What a call costs on a path that is no checkpoint file: no system call more than without the library, and no allocation."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import Place

# Not rename: below the prefix directory it may move a directory that has files in the cache.
CALLS = ["open", "openat", "stat", "lstat", "access", "unlink", "truncate"]
ROUNDS = 50
# Under the prefix directory, which is the working directory, and outside of it.
UNMATCHED = ["/nosuch", "/etc/hostname.none", "log.17", "output/log.17", "./output/../log.17", "{prefix}/output/log.17", "../log.17"]


class Cost(NamedTuple):
    system_calls: int
    allocations: int


def cost(place: Place, program: Path, path: str, call: str, is_wrapped: bool) -> Cost:
    done = place.run(program, path.format(prefix=place.prefix), call, ROUNDS, is_wrapped=is_wrapped)
    if done.returncode == 3 and "cannot trace" in done.stderr:
        pytest.skip("this machine forbids ptrace")
    assert (done.returncode, done.stderr) == (0, ""), done
    numbers = dict(re.findall(r"(calls|allocations) (\d+)", done.stdout))
    return Cost(int(numbers["calls"]), int(numbers["allocations"]))


@pytest.fixture(scope="module")
def program(build: Path) -> Path:
    return (build / "tests/interpose/interpose_calls").resolve()


@pytest.mark.parametrize("call", CALLS)
def test_a_path_that_no_pattern_matches_costs_no_system_call_and_no_allocation(place: Place, program: Path, call: str) -> None:
    (place.prefix / "output").mkdir()
    (place.prefix / "log.17").touch()
    for path in UNMATCHED:
        plain = cost(place, program, path, call, is_wrapped=False)
        assert plain.system_calls >= ROUNDS and plain.allocations == 0, (path, plain)
        assert cost(place, program, path, call, is_wrapped=True) == plain, path


def test_a_checkpoint_file_does_cost_more(place: Place, program: Path) -> None:
    """So that the counts above count something."""
    plain, wrapped = (cost(place, program, "ckpt.17", "stat", is_wrapped) for is_wrapped in (False, True))
    assert wrapped.system_calls > plain.system_calls
