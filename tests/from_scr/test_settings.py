"""Settings as SCR's users write them: in the environment, in files, in the program."""

from pathlib import Path
from typing import List

import pytest

from conftest import Job

CHECKPOINT = ["checkpoint=ckpt.%s", "write=ckpt.%s/rank_%%r", "complete"]


def checkpoint(name: str) -> List[str]:
    return [word % name if "%s" in word else word for word in CHECKPOINT]


def datasets_in_cache(job: Job, base: Path) -> List[str]:
    return sorted({path.name.split(".")[1] for path in base.glob("*/cairn.*/dataset.*")})


@pytest.mark.parametrize("by", ["environment", "program"])
def test_a_relative_prefix_begins_at_the_working_directory(job: Job, by: str) -> None:
    (job.prefix / "run").mkdir()
    calls = ["init", *checkpoint("1"), "finalize"]
    if by == "environment":
        outcome = job.run(2, calls, {"SCR_PREFIX": "run"})
    else:
        outcome = job.run(2, ["config=SCR_PREFIX=run", *calls], {"SCR_PREFIX": ""})
    assert outcome.codes("init") == [0, 0], outcome.log
    # Names of files are relative to the working directory as well, so they lie outside.
    assert set(outcome.codes("write")) != {0}
    outcome = job.run(2, ["init", *checkpoint("1")[:1], "write=run/ckpt.1/rank_%r", "complete", "finalize"],
                      {"SCR_PREFIX": "run"})
    assert outcome.codes("complete") == [0, 0], outcome.log
    assert (job.prefix / "run" / "ckpt.1" / "rank_1").read_text() == "run/ckpt.1/rank_1 of rank 1\n"


def test_the_program_sets_the_cache(job: Job) -> None:
    base = job.cluster.root / "elsewhere"
    base.mkdir(mode=0o700)
    calls = ["config=SCR_CACHE_SIZE=2", f"config=SCR_CACHE_BASE={base}/%n", "config=SCR_LOG_ENABLE=1",
             "config=SCR_LOG_SYSLOG_ENABLE=0", "config=SCR_JOB_NAME=mine", "config=SCR_WATCHDOG_TIMEOUT=60", "init",
             "config=SCR_CACHE_SIZE", *checkpoint("1"), *checkpoint("2"), *checkpoint("3"), "finalize"]
    outcome = job.run(2, calls, {"SCR_CACHE_BASE": "", "SCR_FLUSH": "0"})
    assert outcome.of("config")[-1].answer == "2", outcome.log
    assert datasets_in_cache(job, base / "n0") == ["2", "3"]
    assert "cannot be set" not in outcome.log
    log = (job.prefix / ".cairn" / "log").read_text()
    assert "ckpt.3" in log and "job name mine" in log


def test_blanks_around_the_equals_sign(job: Job) -> None:
    (job.prefix / ".scrconf").write_text("SCR_CACHE_SIZE = 3  # datasets\nSCR_FLUSH= 0\n")
    outcome = job.run(1, ["config=SCR_CHECKPOINT_INTERVAL = 2", "init", "config=SCR_CACHE_SIZE", "config=SCR_FLUSH",
                          "need", "need", "finalize"])
    assert [call.answer for call in outcome.of("config")] == ["NULL", "3", "0"], outcome.log
    assert [call.answer for call in outcome.of("need")] == ["0", "1"]


def test_variables_in_the_environment_are_replaced(job: Job) -> None:
    (job.prefix / "sub").mkdir()
    settings = {"SUB": "sub", "SCR_PREFIX": f"{job.prefix}/$SUB"}
    outcome = job.run(1, ["init", "config=SCR_PREFIX", "finalize"], settings)
    assert outcome.answer("config") == f"{job.prefix}/sub", outcome.log
    assert not list(job.prefix.glob("*$*"))


def test_a_variable_that_is_not_set_makes_no_path(job: Job) -> None:
    outcome = job.run(1, ["init"], {"SCR_PREFIX": f"{job.prefix}/$NOT_SET/run"})
    assert outcome.codes("init") != [0] and "$NOT_SET" in outcome.log and "SCR_PREFIX" in outcome.log


def test_a_configuration_file_that_is_missing_is_a_warning(job: Job) -> None:
    outcome = job.run(1, ["init", "finalize"], {"SCR_CONF_FILE": "/nowhere/scr.conf"})
    assert outcome.codes("init") == [0] and "/nowhere/scr.conf" in outcome.log


def test_a_cache_of_no_dataset_keeps_one(job: Job) -> None:
    outcome = job.run(1, ["init", "config=SCR_CACHE_SIZE", *checkpoint("1"), "finalize"], {"SCR_CACHE_SIZE": "0"})
    assert outcome.answer("config") == "1" and "SCR_CACHE_SIZE=0" in outcome.log
    assert outcome.codes("complete") == [0]


def test_environment_and_file_answer_before_init(job: Job) -> None:
    (job.prefix / ".scrconf").write_text("SCR_SET_SIZE=4\nCKPT=0 TYPE=RS\n")
    outcome = job.run(1, ["config=SCR_FLUSH", "config=SCR_SET_SIZE", "config=SCR_DEBUG=1", "config=SCR_DEBUG"],
                      {"SCR_FLUSH": "7"})
    assert [call.answer for call in outcome.of("config")] == ["7", "4", "NULL", "1"], outcome.log


def test_the_version_is_in_the_header_as_scr_has_it(job: Job) -> None:
    assert job.run(1, ["version"]).codes("version") == [0]


def test_a_store_that_no_checkpoint_uses_may_be_missing(job: Job) -> None:
    (job.prefix / ".scrconf").write_text("STORE=/proc/nowhere COUNT=1\n")
    outcome = job.run(2, ["init", *checkpoint("1"), "finalize"])
    assert outcome.codes("complete") == [0, 0] and "/proc/nowhere" in outcome.log, outcome.log


def test_a_store_that_a_checkpoint_uses_must_be_there(job: Job) -> None:
    (job.prefix / ".scrconf").write_text("SCR_COPY_TYPE=FILE\nSTORE=/proc/nowhere COUNT=1\nCKPT=0 STORE=/proc/nowhere\n")
    outcome = job.run(2, ["init"])
    assert 0 not in outcome.codes("init") and "/proc/nowhere" in outcome.log, outcome.log
