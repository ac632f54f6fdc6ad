"""A program that only opens, writes and closes files is protected, and restarts after a node is lost."""

from __future__ import annotations

import pytest

WAYS = [["rename"], ["two"], ["two", "order"], ["none=2"], ["keep"], ["read"]]
PAUSE = "pause=150"  # a few rounds of the agreement


@pytest.mark.parametrize("way", [[], ["thread"]], ids=["plain", "thread"])
def test_a_killed_program_goes_on_from_its_last_whole_step_on_a_spare(job, way):
    goes_on_from_its_last_whole_step(job, way)


@pytest.mark.any_mpi
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[-1])
def test_so_does_one_that_writes_its_files_in_another_way(job, way):
    goes_on_from_its_last_whole_step(job, way)


def goes_on_from_its_last_whole_step(job, way):
    first = job.run(5, "die=4", PAUSE, *way)
    assert first.code != 0 and first.started_from == 0, first
    nodes = job.lose("n1")
    second = job.run(5, PAUSE, *way, nodes=nodes)
    assert second.code == 0 and second.started_from in (2, 3), second  # step 3 may have been under way
    third = job.run(6, PAUSE, *way, nodes=nodes)
    assert (third.code, third.started_from) == (0, 5), third


def test_the_newest_step_is_in_the_prefix_directory_at_the_end(job):
    assert job.run(3, PAUSE).code == 0
    assert job.plain() == [f"state.3.{rank}" for rank in range(4)]
    for node in ("n0", "n1", "n2", "n3"):
        job.lose(node)
    outcome = job.run(4)
    assert (outcome.code, outcome.started_from) == (0, 3), outcome


def test_a_program_that_aborts_in_a_step_goes_on_from_the_one_before(job):
    first = job.run(5, "abort=3", PAUSE)
    assert first.code != 0, first
    outcome = job.run(4, PAUSE)
    assert outcome.code == 0 and outcome.started_from in (1, 2), outcome


@pytest.mark.any_mpi
def test_a_file_that_is_never_closed_sends_its_step_to_the_prefix_directory(job):
    outcome = job.run(3, "hold=3", PAUSE)
    assert outcome.code == 0 and "step.3 cannot become a checkpoint" in outcome.log, outcome
    assert (outcome := job.run(4)).started_from == 3, outcome


def test_a_program_that_ends_without_mpi_finalize_goes_on_from_a_whole_step(job):
    first = job.run(5, "exit=3", PAUSE)
    assert first.started_from == 0, first
    outcome = job.run(4, PAUSE)
    assert outcome.code == 0 and outcome.started_from in (2, 3), outcome


@pytest.mark.any_mpi
def test_a_rank_that_is_late_is_waited_for(job):
    assert job.run(4, "late=2", PAUSE).code == 0
    nodes = job.lose("n2")
    outcome = job.run(5, PAUSE, nodes=nodes)
    assert (outcome.code, outcome.started_from) == (0, 4), outcome
    assert "(step.4): rebuilt rank 2" in outcome.log, outcome


@pytest.mark.any_mpi
def test_steps_that_come_faster_than_they_can_be_looked_at_are_not_lost(job):
    assert job.run(30).code == 0
    nodes = job.lose("n3")
    outcome = job.run(31, nodes=nodes)
    assert (outcome.code, outcome.started_from) == (0, 30), outcome
    assert "(step.30): rebuilt rank 3" in outcome.log, outcome


def test_files_of_child_processes_stay_where_the_program_wants_them(job):
    """The job lives in the process that called MPI_Init, and not in its children."""
    assert job.run(3, "fork", PAUSE).code == 0
    assert job.has_had_job("n0") and job.cached("n0") == []
    outcome = job.run(4, "fork")
    assert (outcome.code, outcome.started_from) == (0, 3), outcome


@pytest.mark.any_mpi
def test_files_of_programs_that_a_rank_starts_are_not_lost(job):
    assert job.run(3, "exec", PAUSE).code == 0
    outcome = job.run(4, "exec", PAUSE)
    assert (outcome.code, outcome.started_from) == (0, 3), outcome


@pytest.mark.any_mpi
def test_a_full_cache_leaves_the_program_as_it_is_without_cairn(job):
    outcome = job.run(3, PAUSE, CAIRN_WRAP_FREE_PERCENT="100")
    assert outcome.code == 0 and job.has_had_job("n0"), outcome
    assert job.plain() == [f"state.{step}.{rank}" for step in (1, 2, 3) for rank in range(4)]
    assert job.run(4).started_from == 3


@pytest.mark.any_mpi
def test_only_two_steps_stay_in_the_cache(job):
    assert job.run(6, PAUSE).code == 0
    assert job.cached("n0") == ["out/state.5.0", "out/state.6.0"]


def test_cairn_wrap_needs_no_other_settings(job):
    first = job.run_by_command(4, "die=4", "pause=200")
    assert first.code != 0 and first.started_from == 0, first
    outcome = job.run_by_command(4, "pause=200", nodes=job.lose("n1"))
    assert outcome.code == 0 and outcome.started_from in (2, 3), outcome
    assert job.run_by_command(5).started_from == 4
