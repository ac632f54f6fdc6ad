"""A run that continues from a checkpoint ends with the same bits as one that was never interrupted."""

import csv
import signal
import time

import pytest

ORDER, STEPS, EVERY = 4, 40, 10
MODES = ["threaded", "sync"]


def options(elements_per_rank, steps=STEPS):
    return ["--order", ORDER, "--elements-per-rank", elements_per_rank, "--steps", steps]


@pytest.fixture
def uninterrupted(solver):
    return solver.run_well(2, *options(8))


@pytest.mark.parametrize("mode", MODES)
def test_a_restart_gives_the_same_bits(solver, uninterrupted, mode):
    first = solver.run_well(2, *options(8, 25), "--checkpoint-every", EVERY, "--mode", mode)
    second = solver.run_well(2, *options(8), "--checkpoint-every", EVERY, "--mode", mode, "--restart")
    assert first.restored_step is None and second.restored_step == 20
    assert second.digest == uninterrupted.digest and first.digest != uninterrupted.digest
    assert second.error == uninterrupted.error


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_restart_on_another_number_of_ranks_gives_the_same_bits(solver, uninterrupted, ranks):
    solver.run_well(2, *options(8, 20), "--checkpoint-every", EVERY, "--group", 1)
    restarted = solver.run_well(ranks, *options(16 // ranks), "--restart")
    assert restarted.restored_step == 20
    assert restarted.digest == uninterrupted.digest


def test_checkpoints_do_not_change_the_result(solver, uninterrupted):
    assert solver.run_well(2, *options(8), "--checkpoint-every", 3).digest == uninterrupted.digest


def test_a_killed_run_continues_from_a_whole_checkpoint(solver, uninterrupted):
    forever = solver.start(2, *options(8, 10**7), "--checkpoint-every", EVERY, "--keep", 2)
    series = solver.directory / "nekcem.rbio"
    deadline = time.monotonic() + 30
    while not any(series.glob("step.*")):
        assert forever.poll() is None and time.monotonic() < deadline, forever.communicate()
        time.sleep(0.01)
    forever.send_signal(signal.SIGTERM)  # the launcher ends the ranks at once
    forever.communicate(timeout=30)

    newest = max(int(path.name.split(".")[1]) for path in series.glob("step.*"))
    restarted = solver.run_well(2, *options(8, newest + 15), "--restart")
    assert restarted.restored_step >= newest and restarted.restored_step % EVERY == 0
    assert restarted.digest == solver.run_well(2, *options(8, newest + 15)).digest


def test_a_restart_without_a_checkpoint_begins_at_step_0(solver, uninterrupted):
    result = solver.run_well(2, *options(8), "--restart")
    assert result.restored_step is None and "starting at step 0" in result.output
    assert result.digest == uninterrupted.digest


def test_a_checkpoint_of_another_size_is_an_error(solver):
    solver.run_well(2, *options(8, 10), "--checkpoint-every", EVERY)
    result = solver.run(2, *options(12), "--restart")
    assert result.status != 0 and "digest" not in result.output


def test_a_checkpoint_that_fails_does_not_end_the_run(solver, uninterrupted):
    result = solver.run(2, *options(8), "--checkpoint-every", EVERY, "--memory", "1KB")
    assert result.status == 3, result.log
    assert "computing goes on" in result.log
    assert result.digest == uninterrupted.digest


def test_the_profile_has_each_step_of_each_rank(solver):
    result = solver.run_well(2, *options(8), "--checkpoint-every", EVERY, "--profile", "profile.csv")
    rows = list(csv.DictReader((solver.directory / "profile.csv").open()))
    assert [(int(row["rank"]), int(row["step"])) for row in rows] == [
        (rank, step) for rank in range(2) for step in range(1, STEPS + 2)]
    assert all(float(row["compute"]) > 0 for row in rows if int(row["step"]) <= STEPS)
    assert all((float(row["checkpoint"]) > 0) == (int(row["step"]) % EVERY == 0)
               for row in rows if int(row["step"]) <= STEPS)
    for phase in ("compute", "exchange", "allreduce", "checkpoint"):
        each = [sum(float(row[phase]) for row in rows if int(row["rank"]) == rank and int(row["step"]) <= STEPS)
                for rank in range(2)]
        assert result.seconds(phase)[0] == pytest.approx(min(each), abs=2e-3)
