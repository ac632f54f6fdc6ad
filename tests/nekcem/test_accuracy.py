"""The solver computes the wave that it should."""

import pytest

TIME_STEP, STEPS = 0.01, 40  # a third of a period, with a step that is stable for the orders below
# Measured, with a margin of a factor of 2.
ERROR_MAX = {2: 0.21, 4: 1.7e-3, 6: 5.7e-6}


@pytest.mark.parametrize("order", ERROR_MAX)
def test_the_error_is_below_its_bound(solver, order):
    result = solver.run_well(2, "--order", order, "--time-step", TIME_STEP, "--steps", STEPS)
    assert result.error < ERROR_MAX[order]
    assert result.largest_error < 10 * ERROR_MAX[order]


def test_the_error_falls_exponentially_with_the_order(solver):
    errors = [solver.run_well(1, "--elements-per-rank", 16, "--order", order, "--time-step", TIME_STEP,
                              "--steps", STEPS).error for order in range(2, 7)]
    assert all(higher < lower / 6 for lower, higher in zip(errors, errors[1:])), errors


def test_upwind_fluxes_only_take_energy_away(solver):
    begin, middle, end = (solver.run_well(2, "--order", 3, "--steps", steps).energy for steps in (1, 20, 100))
    assert begin > middle > end > 0.97 * begin


def test_the_result_does_not_depend_on_the_number_of_ranks(solver):
    digests = {solver.run_well(ranks, "--elements-per-rank", 16 // ranks, "--order", 4, "--steps", 20).digest
               for ranks in (1, 2, 4)}
    assert len(digests) == 1


def test_a_longer_guide_on_more_ranks_is_as_accurate(solver):
    one, four = (solver.run_well(ranks, "--elements-per-rank", 16, "--steps", 20).error for ranks in (1, 4))
    assert four == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize("options, word", [
    (["--elements-per-rank", "6"], "multiple"), (["--order", "x"], "number"), (["--speps", "3"], "--speps"),
])
def test_a_wrong_option_ends_the_program_with_a_sentence(solver, options, word):
    result = solver.run(2, *options)
    assert result.status != 0
    assert word in result.log and "usage:" in result.log
