"""A day of production by simulation, against the closed form."""

from math import exp, sqrt
from statistics import mean, stdev
from typing import List, NamedTuple

import pytest

from cairn.policy import Kind, Policy
from production import BEGIN_S, LAST_S, Course, Day, day_of

SEEDS = range(1, 201)
FOREVER = 10**9  # failures at one point that are put up with
SPARES = 100
WANTED = 4
NODES = [f"n{i}" for i in range(WANTED + SPARES)]
DAY_S = 86400.0


class Expected(NamedTuple):
    """Of many such jobs, the mean."""

    wall_s: float
    failures: float
    lost_s: float


def expected(course: Course) -> Expected:
    """The time to solution T of a job that takes n segments of tau seconds, each followed by a checkpoint of delta, with
    a restart of R after each failure, where failures are a Poisson process of mean distance M that also strikes
    checkpoints and restarts:

        T = n M exp(R / M) (exp((tau + delta) / M) - 1)

    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
    Systems 22 (2006) 303-312, there with n = T_s / tau. It is exact: a segment that is not struck takes
    L = tau + delta; one that is takes a time of mean M (exp((R + L) / M) - 1) more, until R + L go by without a
    failure. By Wald's equation there are T / M failures. All time but n L is lost to them.
    """
    m, length = course.mtbf_s, course.segment_s + course.dump_s
    wall_s = course.segments * m * exp((course.restart_s + course.notice_s) / m) * (exp(length / m) - 1)
    return Expected(wall_s, wall_s / m, wall_s - course.segments * length)


class Measured(NamedTuple):
    mean: float
    error: float  # of the mean


def measured(values: List[float]) -> Measured:
    return Measured(mean(values), stdev(values) / sqrt(len(values)))


def agrees(found: Measured, wanted: float, tolerance: float) -> bool:
    """Within the tolerance, which must be more than chance makes: three times the error of the mean."""
    assert 3 * found.error <= tolerance * wanted, "more seeds are needed to tell"
    return abs(found.mean - wanted) <= tolerance * wanted


# 115 segments of ten minutes, an MTBF of an hour: about a day, of which 19 hours are computing.
PRODUCTION = Course(segments=115)
POLICY = Policy(runs_max=-1, nodes_wanted=WANTED, nodes_min=WANTED, failures_max=FOREVER)


def days(course: Course, policy: Policy = POLICY) -> List[Day]:
    return [day_of(course, seed, policy, NODES) for seed in SEEDS]


@pytest.mark.parametrize("node_share", [1.0, 0.3])
def test_a_day_of_production_takes_the_time_of_the_closed_form(node_share: float) -> None:
    course = Course(segments=115, node_share=node_share)
    wanted = expected(course)
    assert abs(wanted.wall_s - DAY_S) < 0.01 * DAY_S
    done = days(course)
    assert all(day.action.kind == Kind.SUCCESS and day.world.committed == 115 for day in done)
    assert agrees(measured([day.wall_s() for day in done]), wanted.wall_s, 0.02)
    runs = measured([float(len(day.account.runs)) for day in done])
    assert agrees(runs, 1 + wanted.failures, 0.06)
    assert agrees(measured([day.account.lost_s(day.world.now) for day in done]), wanted.lost_s, 0.08)
    spares = measured([float(SPARES - day.account.spares()) for day in done])
    assert agrees(spares, node_share * wanted.failures, 0.15)
    for day in done:  # and each of them exactly
        assert len(day.account.failures()) == len(day.account.runs) - 1
        assert SPARES - day.account.spares() == len(day.world.dead) == len(day.account.unfit)
        assert abs(day.account.lost_s(day.world.now) - (day.wall_s() - 115 * 660)) < 1e-3


def test_a_loss_that_is_noticed_late_is_not_within_the_tolerance() -> None:
    """So the comparison can fail: a minute for each failure shows."""
    late = Course(segments=115, notice_s=60.0)
    lost = measured([day.account.lost_s(day.world.now) for day in days(late)])
    assert not agrees(lost, expected(PRODUCTION).lost_s, 0.08)
    assert agrees(lost, expected(late).lost_s, 0.08)


def test_when_jobs_are_given_up_is_as_expected() -> None:
    """Three crashes at one point, the first in a segment that follows a checkpoint, two after a restart."""
    course = Course(segments=20, mtbf_s=1500.0, node_share=0.0)
    policy = Policy(runs_max=-1, nodes_wanted=WANTED, nodes_min=WANTED)
    length = course.segment_s + course.dump_s
    first, again = 1 - exp(-length / course.mtbf_s), 1 - exp(-(length + course.restart_s) / course.mtbf_s)
    chance = 1 - (1 - first * again**2) ** course.segments
    ends = [day_of(course, seed, policy, NODES).action.kind for seed in range(1, 401)]
    found = ends.count(Kind.GIVEN_UP) / len(ends)
    assert set(ends) == {Kind.GIVEN_UP, Kind.SUCCESS}
    assert abs(found - chance) < 3 * sqrt(chance * (1 - chance) / len(ends)), (found, chance)


def test_a_job_that_is_longer_than_its_allocation_is_halted_and_has_got_as_far_as_expected() -> None:
    course = Course(segments=160, allocation_s=DAY_S)
    policy = Policy(-1, WANTED, WANTED, halt_seconds=LAST_S, failures_max=FOREVER)
    done = days(course, policy)
    assert all(day.action.kind == Kind.HALTED and day.action.reason.startswith("TIME_LIMIT") for day in done)
    per_segment = expected(Course(segments=1)).wall_s
    committed = measured([float(day.world.committed) for day in done])
    # It ends with the first checkpoint in the last half hour, or dies there and is not started again.
    assert agrees(committed, (DAY_S - LAST_S + per_segment / 2) / per_segment, 0.02)


def test_each_of_several_nodes_that_are_lost_at_once_gets_a_spare_of_its_own() -> None:
    """The simulated machine checks the nodes of each launch."""
    for seed in range(1, 21):
        day = day_of(Course(segments=20, nodes_at_once=1 + seed % WANTED), seed, POLICY, NODES)
        assert day.action.kind == Kind.SUCCESS and len(day.account.runs) > 1
        assert len(day.account.unfit) == (1 + seed % WANTED) * (len(day.account.runs) - 1)


def test_without_spares_a_job_that_can_goes_on_with_fewer_nodes() -> None:
    policy = Policy(-1, WANTED, 2, failures_max=FOREVER)
    day = day_of(Course(segments=20), 1, policy, NODES[:WANTED + 1])
    assert [len(run.nodes) for run in day.account.runs[:4]] == [4, 4, 3, 2], day.said


def test_spares_are_used_up_and_then_the_job_is_given_up() -> None:
    day = day_of(PRODUCTION, 1, POLICY, NODES[:WANTED + 3])
    assert day.action.kind == Kind.GIVEN_UP and "too few nodes: 3" in day.action.reason
    assert len(day.account.runs) == 4 and len(day.account.unfit) == 4


# ---- nodes that are slow, and come back ----


def test_a_slow_node_is_taken_back_before_the_job_is_given_up() -> None:
    """n4, the only spare, does not answer at the start; when it is needed it does."""
    day = day_of(Course(segments=10, mtbf_s=4000.0), 3, POLICY, NODES[:WANTED + 1], {"n4": 100.0})
    first = day.account.runs[0]
    assert first.ended_s > BEGIN_S + 100 and len(day.account.runs) >= 2, "the seed makes a node fail"
    assert "n4" in day.account.runs[1].nodes and "n4 is left out: runs no commands" in day.said
    assert any(line.startswith("n4 answers again, and is a spare now") for line in day.said)


def test_a_node_that_is_still_silent_is_asked_once() -> None:
    day = day_of(PRODUCTION, 1, POLICY, NODES[:WANTED], {"n2": 10**9})
    assert day.action.kind == Kind.GIVEN_UP and day.account.runs == []
    assert not any("answers again" in line for line in day.said)


def test_as_long_as_there_are_spares_nobody_is_asked_again() -> None:
    day = day_of(PRODUCTION, 1, POLICY, NODES, {"n0": 100.0})
    assert day.action.kind == Kind.SUCCESS and "n0" in day.account.unfit
