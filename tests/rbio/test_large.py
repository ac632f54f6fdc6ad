"""A rank with more than 2 GiB: counts of MPI are 32 bits, those of rbIO are not."""

from typing import List

import pytest

from steps import Steps

# The second one takes 2 GiB of memory, and the third one on each of two ranks.
LARGE = [("mode=collective files=1", ["n0", "n0"], False), ("", ["n0", "n0"], False), ("group=2", ["n0", "n1"], True)]


@pytest.mark.parametrize("options, placement, is_for_soak", LARGE,
                         ids=["collective", "shared memory", "between nodes"])
def test_more_than_two_gibibytes_of_a_rank_come_back(
        steps: Steps, options: str, placement: List[str], is_for_soak: bool, request: pytest.FixtureRequest) -> None:
    """Zeros take no place on disk."""
    if is_for_soak and not request.config.getoption("all_moments"):
        pytest.skip("takes much memory: only with --all-moments")
    holes = steps.interference_always("1-1", HOLES="1")
    steps.run(placement, "large", "write", steps.directory, options, settings=holes)
    part = steps.directory / "step.1" / "part.0.rbio"
    assert part.stat().st_size > 2 << 30
    assert part.stat().st_blocks * 512 < 64 << 20
    steps.run(["n0"], "large", "restore", steps.directory, "")
