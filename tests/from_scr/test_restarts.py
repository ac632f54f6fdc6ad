"""What SCR's settings and calls make a restart begin from."""

from typing import List

import pytest

from conftest import Job

RESTART = ["init", "have", "start_restart"]


def checkpoint(number: int) -> List[str]:
    return [f"checkpoint=ckpt.{number}", f"write=ckpt.{number}/rank_%r", "complete"]


def listed(job: Job) -> str:
    return job.cairn("index", "list").stdout


def text(number: int, rank: int) -> str:
    return f"ckpt.{number}/rank_{rank} of rank {rank}\n"


# --- SCR_Current before SCR_Have_restart asks for a checkpoint ---

@pytest.mark.parametrize("flush", ["0", "1"])
def test_the_checkpoint_that_scr_current_names_is_offered(job: Job, flush: str) -> None:
    settings = {"SCR_FLUSH": flush, "SCR_CACHE_SIZE": "3"}
    job.run(4, ["init", *checkpoint(1), *checkpoint(2), *checkpoint(3), "finalize"], settings)
    outcome = job.run(4, ["init", "current=ckpt.2", "have", "start_restart", "read=ckpt.2/rank_%r",
                          "complete_restart", "have", "finalize"], settings)
    assert [call.answer for call in outcome.of("have")] == ["1 ckpt.2", "0"], outcome.log
    assert set(outcome.codes("read")) == {0}


def test_a_checkpoint_that_only_the_prefix_directory_has_is_offered_when_named(job: Job) -> None:
    settings = {"SCR_FLUSH": "1"}
    job.run(4, ["init", *checkpoint(1), *checkpoint(2), "finalize"], settings)
    outcome = job.run(4, ["init", "current=ckpt.1", "have", "start_restart", "read=ckpt.1/rank_%r",
                          "complete_restart", "finalize"], settings)
    assert outcome.answer("have") == "1 ckpt.1" and set(outcome.codes("read")) == {0}, outcome.log


def test_an_output_that_is_a_checkpoint_too_does_not_come_before_the_one_named(job: Job) -> None:
    both = ["config=SCR_FLUSH=0", "init", *checkpoint(1), "output_checkpoint=ckpt.2", "write=ckpt.2/rank_%r", "complete",
            "finalize"]
    settings = {"SCR_CACHE_SIZE": "2"}
    job.run(2, both, settings)
    outcome = job.run(2, ["init", "current=ckpt.1", "have", "finalize"], settings)
    assert outcome.answer("have") == "1 ckpt.1", outcome.log


def test_a_program_that_only_declares_where_it_went_on_is_offered_nothing_by_itself(job: Job) -> None:
    job.run(2, ["init", *checkpoint(1), *checkpoint(2), "finalize"], {"SCR_FLUSH": "1"})
    outcome = job.run(2, ["init", "current=ckpt.1", *checkpoint(3), "have", "finalize"], {"SCR_FLUSH": "1"})
    assert outcome.answer("have") == "0" and outcome.codes("complete") == [0, 0], outcome.log


# --- files that all ranks read ---

@pytest.mark.parametrize("settings", [{"SCR_GLOBAL_RESTART": "1"}, {"SCR_FETCH_BYPASS": "1", "SCR_CACHE_PURGE": "1"},
                                      {"SCR_CACHE_BYPASS": "1"}])
def test_each_rank_reads_the_header_that_rank_0_wrote(job: Job, settings: dict) -> None:
    bypass = {key: value for key, value in settings.items() if key == "SCR_CACHE_BYPASS"}
    job.run(4, ["init", "checkpoint=c", "0/write=c/header", "write=c/rank_%r", "complete", "finalize"],
            {"SCR_FLUSH": "1", **bypass})
    outcome = job.run(4, [*RESTART, "read=c/header", "read=c/rank_%r", "complete_restart", "finalize"], settings)
    assert outcome.codes("read") == [0] * 8, outcome.log
    copies = {path.name: path.read_text() for path in job.cluster.root.glob("out.2/read.*")}
    assert {copies[f"read.{rank}.c_header"] for rank in range(4)} == {"c/header of rank 0\n"}


# --- another number of ranks, by SCR's recipe ---

RECIPE = {"SCR_FLUSH_ON_RESTART": "1", "SCR_FETCH": "0"}


@pytest.mark.parametrize("flush", ["0", "1"])
@pytest.mark.parametrize("ranks", [2, 6])
def test_another_number_of_ranks_goes_on_after_scr_current(job: Job, flush: str, ranks: int) -> None:
    job.run(4, ["init", *checkpoint(1), "finalize"], {"SCR_FLUSH": flush})
    outcome = job.run(ranks, ["init", "current=ckpt.1", *checkpoint(2), "finalize"], {**RECIPE, "SCR_FLUSH": flush},
                      nodes=2)
    assert set(outcome.codes("current") + outcome.codes("complete")) == {0}, outcome.log
    for rank in range(4):
        assert (job.prefix / f"ckpt.1/rank_{rank}").read_text() == text(1, rank), "nothing of the old one is lost"
    assert job.cairn("index", "show", "ckpt.1", "--check").returncode == 0
    assert "ckpt.1" in listed(job)
    again = job.run(ranks, [*RESTART, "read=ckpt.2/rank_%r", "complete_restart", "finalize"], {"SCR_FLUSH": flush},
                    nodes=2)
    assert again.answer("have") == "1 ckpt.2" and set(again.codes("read")) == {0}, again.log


def test_without_scr_current_nothing_is_begun_in_the_place_of_the_old_number(job: Job) -> None:
    job.run(4, ["init", *checkpoint(1), "finalize"], {"SCR_FLUSH": "0"})
    outcome = job.run(2, ["init", "checkpoint=ckpt.2", "finalize"], RECIPE)
    assert 0 not in outcome.codes("checkpoint") and "4 ranks" in outcome.log


# --- SCR_FETCH=0 with bypass, flush on restart, global restart, purge ---

def test_without_fetch_a_job_goes_on_from_what_it_wrote_in_place(job: Job) -> None:
    settings = {"SCR_CACHE_BYPASS": "1", "SCR_FETCH": "0"}
    job.run(4, ["init", *checkpoint(1), *checkpoint(2), "finalize"], settings)
    outcome = job.run(4, [*RESTART, "read=ckpt.2/rank_%r", "complete_restart", "finalize"], settings)
    assert outcome.answer("have") == "1 ckpt.2" and set(outcome.codes("read")) == {0}, outcome.log
    other = job.run(4, ["init", "have", "finalize"], {**settings, "SCR_JOB_ID": "other"})
    assert other.answer("have") == "0", "another job fetches nothing"


def test_flush_on_restart_copies_all_cached_datasets(job: Job) -> None:
    job.run(4, ["init", *checkpoint(1), *checkpoint(2), *checkpoint(3), "finalize"],
            {"SCR_FLUSH": "0", "SCR_CACHE_SIZE": "3"})
    assert not (job.prefix / "ckpt.1").exists()
    job.run(4, ["init", "finalize"], {"SCR_FLUSH": "0", "SCR_CACHE_SIZE": "3", "SCR_FLUSH_ON_RESTART": "1"})
    for number in (1, 2, 3):
        assert (job.prefix / f"ckpt.{number}/rank_3").read_text() == text(number, 3)
    assert job.cairn("index", "list", "--json").stdout.count('"ckpt.') >= 3


def test_a_global_restart_without_flush_copies_nothing_at_the_end(job: Job) -> None:
    settings = {"SCR_GLOBAL_RESTART": "1", "SCR_FLUSH": "0"}
    outcome = job.run(4, ["init", "have", *checkpoint(1), "finalize"], settings)
    assert outcome.codes("finalize") == [0] * 4 and not (job.prefix / "ckpt.1").exists(), outcome.log
    # The next run needs it there.
    outcome = job.run(4, [*RESTART, "read=ckpt.1/rank_%r", "complete_restart", *checkpoint(2), "finalize"], settings)
    assert outcome.answer("have") == "1 ckpt.1" and (job.prefix / "ckpt.1/rank_0").exists(), outcome.log
    assert not (job.prefix / "ckpt.2").exists()


def test_what_was_purged_is_not_copied_again(job: Job) -> None:
    settings = {"SCR_FLUSH": "1", "SCR_CACHE_SIZE": "2"}
    job.run(4, ["init", *checkpoint(1), *checkpoint(2), "finalize"], settings)
    outcome = job.run(4, [*RESTART, "complete_restart", "finalize"], {**settings, "SCR_PREFIX_PURGE": "1"})
    assert outcome.code == 0 and not list(job.prefix.glob("ckpt.*")), outcome.log
    job.run(4, [*RESTART, "complete_restart", "finalize"], settings)
    assert not list(job.prefix.glob("ckpt.*")), "not by the next run either"


# --- one file of all ranks ---

@pytest.mark.parametrize("writers", ["", "0/"])
def test_a_file_that_all_ranks_write_needs_bypass_and_the_message_says_so(job: Job, writers: str) -> None:
    calls = ["init", "checkpoint=c", f"{writers}write=c/all", "route=c/all", "complete", "finalize"]
    outcome = job.run(4, calls)
    assert 0 not in outcome.codes("complete")
    assert "SCR_CACHE_BYPASS=1" in outcome.log and "c/all" in outcome.log, outcome.log
    outcome = job.run(4, calls, {"SCR_CACHE_BYPASS": "1"})
    assert outcome.codes("complete") == [0] * 4, outcome.log
