"""Programs that do what is hard to serve, and jobs that end or begin in an unusual way."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAUSE = "pause=150"  # a few rounds of the agreement
FORTRAN = Path(__file__).resolve().parents[1] / "apps" / "steps.f90"
TWO_EACH = ["n0", "n0", "n1", "n1", "n2", "n2"]
WITHOUT = "the program runs without checkpoints of Cairn"
SPOILED = {"append": 1, "overwrite": 2, "truncate": 3, "ftruncate": 4, "empty": 5}


@pytest.mark.any_mpi
def test_two_ranks_on_each_node_survive_the_loss_of_one(job):
    first = job.run(5, "die=4", PAUSE, nodes=TWO_EACH)
    assert first.code != 0 and first.started_from == 0, first
    nodes = job.lose("n1", TWO_EACH)
    second = job.run(5, PAUSE, nodes=nodes)
    assert second.code == 0 and second.started_from in (2, 3), second
    assert job.cached("n0") == [f"out/state.{step}.{rank}" for step in (4, 5) for rank in (0, 1)]
    third = job.run(6, nodes=nodes)
    assert (third.code, third.started_from) == (0, 5), third


@pytest.mark.any_mpi
@pytest.mark.parametrize("how", SPOILED)
def test_a_program_that_changes_the_file_from_which_it_started_does_not_change_the_checkpoint(job, how):
    """All ranks do, so that no redundancy could repair it."""
    assert job.run(3, PAUSE, SCR_FLUSH="0").code == 0
    spoiled = job.run(5, f"spoil={SPOILED[how]}", SCR_FLUSH="0")
    assert spoiled.code != 0 and spoiled.started_from == 3, spoiled
    outcome = job.run(4, SCR_FLUSH="0")
    assert (outcome.code, outcome.started_from) == (0, 3), outcome
    assert "rebuilt" not in outcome.log and "damaged" not in outcome.log, outcome


def test_with_another_number_of_ranks_the_program_finds_its_plain_files(job):
    assert job.run(3, PAUSE).code == 0
    outcome = job.run(4, nodes=["n0", "n1", "n2"])
    assert (outcome.code, outcome.started_from) == (0, 3), outcome
    assert outcome.log.count(WITHOUT) == 1 and "4 ranks" in outcome.log, outcome
    assert set(job.plain()) == {f"state.3.{rank}" for rank in range(4)} | {f"state.4.{rank}" for rank in range(3)}


@pytest.mark.any_mpi
def test_with_scr_enable_0_the_program_runs_as_without_cairn(job):
    outcome = job.run(3, SCR_ENABLE="0")
    assert (outcome.code, outcome.started_from) == (0, 0), outcome
    assert outcome.log.count(WITHOUT) == 1 and "SCR_ENABLE=0" in outcome.log, outcome
    assert job.cached("n0") == [] and not job.has_had_job("n0")
    assert job.plain() == [f"state.{step}.{rank}" for step in (1, 2, 3) for rank in range(4)]
    assert job.run(4, SCR_ENABLE="0").started_from == 3


@pytest.mark.any_mpi
def test_a_job_whose_processes_are_all_killed_in_a_step_goes_on_from_the_one_before(job):
    first = job.run(5, "die_all=4", PAUSE)
    assert first.code != 0 and first.started_from == 0, first
    outcome = job.run(5, PAUSE)
    assert outcome.code == 0 and outcome.started_from in (2, 3), outcome
    assert job.run(6).started_from == 5


def later_lines(outcome):
    return [line for line in outcome.log.splitlines() if "is of a later step" in line]


@pytest.mark.parametrize("knows", ["Cairn", "MPI"])
def test_ranks_that_finalize_after_another_has_died_leave_no_part_of_a_step_where_programs_list(job, knows):
    """Rank 1 is killed in step 4, or ends without it. The others write a second file when they know."""
    how = ["die=4"] if knows == "Cairn" else ["none=1"]
    first = job.run_beside_a_death(5, "two", "survive=4", *how, PAUSE, **({} if knows == "Cairn" else {"BARRIER_FAILS": "1"}))
    assert ("no step becomes a checkpoint any more" in first.log) == (knows == "Cairn"), first
    assert first.log.count("wrapped/files that are in no checkpoint stay there") == (3 if knows == "Cairn" else 0), first
    assert knows == "MPI" or "waits for all ranks" not in first.log, "for a dead rank an MPI waits for ever"
    for node in ("n0", "n2", "n3"):
        rank = node[1]
        assert job.has_unfinished_job(node) and {f"out/state.4.{rank}", f"out/field.4.{rank}"} <= set(job.cached(node)), first
    if knows == "MPI":
        return  # Cairn has all ranks, so the step is a checkpoint
    assert not any(".4." in name for name in job.plain()), first
    nodes = job.lose("n1")
    second = job.run(5, "two", PAUSE, nodes=nodes)
    assert second.code == 0 and second.started_from in (2, 3) and not later_lines(second), second
    assert job.run(6, "two").started_from == 5


def test_files_stay_in_the_cache_if_a_rank_dies_while_the_others_finalize(job):
    first = job.run_beside_a_death(2, PAUSE, DIES_IN_BARRIER="1")
    assert first.log.count("files that are in no checkpoint stay there") == 3, first
    assert all(job.has_unfinished_job(node) for node in ("n0", "n2", "n3")) and not job.plain(), first


def test_what_ranks_that_finalize_after_a_death_have_written_is_kept_where_there_is_no_checkpoint(job):
    first = job.run_beside_a_death(5, "two", "die=1", "survive=1", PAUSE)
    assert "no step becomes a checkpoint any more" in first.log and not job.plain(), first
    second = job.run(0, "two", nodes=job.lose("n1"))
    assert (second.code, second.started_from) == (0, 0), second
    assert job.plain() == [f"{kind}.1.{rank}" for kind in ("field", "state") for rank in (0, 2, 3)]


@pytest.mark.any_mpi
def test_one_line_names_a_later_step_of_which_files_are_missing(job):
    assert job.run(3, PAUSE).code == 0
    (job.cluster.prefix / "out" / "state.4.1").write_text("of a job that died")
    second = job.run(3)
    assert (second.code, second.started_from) == (0, 3), second
    (line,) = later_lines(second)
    assert "/out/state.4.1 is" in line and "in place of out/state.3.0:" in line, line


@pytest.mark.any_mpi
def test_step_numbers_that_go_back_lose_no_byte(job):
    outcome = job.run(4, "back=3", PAUSE)
    assert (outcome.code, outcome.started_from) == (0, 0), outcome
    assert "cannot become a checkpoint" in outcome.log, outcome
    job.lose("n1")
    assert (outcome := job.run(5, PAUSE)).started_from == 4, outcome


@pytest.mark.any_mpi
@pytest.mark.parametrize("end", [[], ["die"]], ids=["finalized", "killed"])
def test_renamed_directories_and_linked_files_lose_no_byte(job, end):
    pattern = r"r\d+/(new|\d+)/state\.(?<step>\d+)\.\d+$"
    program = str(job.programs / "directories")
    first = job.run_other([program, "3", "150", *end], pattern)
    assert "0 wrong" in first.output and (first.code == 0) == (not end), first
    lines = [line for line in first.log.splitlines() if "cairn: warning" in line and "without farewell" not in line]
    assert 0 < len(lines) <= 3 and all("cannot become a checkpoint" in line for line in lines), first
    second = job.run_other([program, "4", "150"], pattern)
    assert second.code == 0 and "0 wrong" in second.output, second


def test_a_buffered_message_reaches_its_receiver_after_its_sender_has_called_mpi_finalize(job):
    outcome = job.run(2, "bsend", PAUSE)
    assert outcome.code == 0 and "the message has come" in outcome.output, outcome
    assert job.run(3).started_from == 2


def test_a_program_with_the_module_mpi_f08_begins_and_ends_its_job(job, tmp_path):
    compiler = shutil.which(f"mpifort.{job.flavour}")
    if compiler is None:
        pytest.skip("there is no Fortran compiler for this MPI")
    source = tmp_path / "steps.f90"
    source.write_text(FORTRAN.read_text().replace("use mpi\n", "use mpi_f08\n"))
    built = subprocess.run([compiler, "-o", tmp_path / "steps", source], stderr=subprocess.PIPE, text=True, check=False)
    if "mpi_f08" in built.stderr and "Cannot open module file" in built.stderr:
        pytest.skip("this MPI has no module mpi_f08 for this compiler")
    assert built.returncode == 0, built.stderr
    pattern = r"(text|bin)\.(?<step>\d+)\.\d+$"
    first = job.run_other([str(tmp_path / "steps"), "3"], pattern)
    assert (first.code, first.started_from) == (0, 0), first
    assert job.has_had_job("n0") and not job.has_unfinished_job("n0")
    assert (job.cluster.prefix / "text.3.0").exists(), "MPI_Finalize copies the newest step"
    for node in ("n0", "n1", "n2", "n3"):
        job.lose(node)
    second = job.run_other([str(tmp_path / "steps"), "4"], pattern)
    assert (second.code, second.started_from) == (0, 3), second
    assert "WRONG" not in second.output, second


@pytest.mark.parametrize("place", ["preload_before", "preload"])
def test_another_library_that_wraps_the_same_calls_works_too(job, place):
    """As profilers do. It sees the program's calls, or those of Cairn, on each rank."""
    other = {place: [str(job.other_library)], "OTHER_PRINTS": "1"}
    first = job.run(5, "die=4", "rename", PAUSE, **other)
    assert first.code != 0 and first.started_from == 0, first
    nodes = job.lose("n1")
    second = job.run(6, "rename", PAUSE, nodes=nodes, **other)
    assert second.code == 0 and second.started_from in (2, 3), second
    assert "rebuilt rank 1" in second.log, second
    counts = [[int(number) for number in re.findall(r"\d+", line)] for line in (second.output + second.log).splitlines()
              if line.startswith("other: ")]
    steps = 6 - second.started_from
    # Each file is renamed once. Cairn renames a redirected file by a call of the kernel, which no library sees.
    of_ranks = [count for count in counts if count[3] == (steps if place == "preload_before" else 0)]
    assert len(of_ranks) == 4, second
    for opened, _, closed, _ in of_ranks:
        assert opened >= steps + 1 and closed >= steps + 1, second
    assert job.cached("n0") == ["out/state.5.0", "out/state.6.0"]


@pytest.mark.any_mpi
def test_a_file_without_a_rank_in_its_name_is_written_through_and_read_by_all_ranks(job):
    pattern = r"out/state\.(?<step>\d+)\.((?<rank>\d+)|head)$"
    first = job.run_other([str(job.program), "5", "header", "die=4", PAUSE], pattern)
    assert first.code != 0 and first.started_from == 0, first
    nodes = job.lose("n0")
    second = job.run_other([str(job.program), "5", "header", PAUSE], pattern, nodes)
    assert second.code == 0 and second.started_from in (2, 3), second  # each rank has read the header
    assert {f"state.{step}.head" for step in (1, 2, 3, 4, 5)} <= set(job.plain())
    assert job.cached("n1") == ["out/state.4.1", "out/state.5.1"] and "cannot become" not in second.log, second


@pytest.mark.any_mpi
def test_a_file_that_is_renamed_in_the_cache_is_of_its_step_under_its_last_name(job):
    pattern = r"out/state\.(?<step>\d+)\.\d+(\.part)?$"
    first = job.run_other([str(job.program), "5", "rename", "die=4", PAUSE], pattern)
    assert first.code != 0 and first.started_from == 0, first
    second = job.run_other([str(job.program), "5", "rename", PAUSE], pattern, job.lose("n1"))
    assert second.code == 0 and second.started_from in (2, 3), second
    assert "rebuilt rank 1" in second.log, second


@pytest.mark.any_mpi
def test_a_rank_whose_file_stays_in_its_place_makes_all_ranks_give_up_the_step(job):
    """A file with two names is not redirected."""
    out = job.cluster.prefix / "out"
    out.mkdir()
    (out / "state.2.1").write_text("older")
    (out / "other").hardlink_to(out / "state.2.1")
    outcome = job.run(3, PAUSE)
    assert outcome.code == 0 and "step.2 cannot become a checkpoint" in outcome.log, outcome
    assert {f"state.2.{rank}" for rank in range(4)} <= set(job.plain()), outcome
    assert job.cached("n0") == ["out/state.1.0", "out/state.3.0"], outcome
