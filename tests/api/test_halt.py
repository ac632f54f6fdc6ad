"""`cairn halt` while a job runs, SCR_HALT_EXIT, and what the next run of the job makes of it."""

import json
import subprocess
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

import pytest

from cluster import Cluster, Run

NODES = ["n0", "n0", "n1", "n1"]
ENDED = "the run ends here (SCR_HALT_EXIT=1)"


class Job:
    """The scenarios of halting.cpp on one cluster, and the command `cairn`."""

    def __init__(self, cluster: Cluster, build: Path, flavour: str) -> None:
        self.cluster = cluster
        self._program = str(build / "tests" / "api" / flavour / "api_program")
        self._command = str(build / "src" / "tools" / "scr_halt")
        self._launches = 0

    def start(self, scenario: str, settings: Optional[Mapping[str, str]] = None) -> Run:
        self._launches += 1
        self._lines = self.cluster.root / f"lines.{self._launches}"
        self._lines.mkdir()
        return self.cluster.start(NODES, [self._program, scenario],
                                  {"API_LINES": str(self._lines), **(settings or {})})

    def start_and_wait(self, scenario: str, **settings: str) -> Run:
        """As soon as it is past SCR_Init."""
        run = self.start(scenario, settings)
        assert run.process.stdout and run.process.stdout.readline() == "running\n", self.printed()
        return run

    def end(self, run: Run) -> Tuple[int, List[str]]:
        """Exit code and lines on stdout since."""
        output, _ = run.process.communicate(timeout=60)
        return run.process.returncode, output.splitlines()

    def printed(self) -> str:
        """What the ranks of the last run have said on stderr."""
        return "".join(path.read_text() for path in sorted(self._lines.glob("stderr.*")))

    def logged(self) -> List[str]:
        """The events of all runs."""
        lines = (self.cluster.prefix / ".cairn" / "log.json").read_text().splitlines()
        return [json.loads(line).get("event", "") for line in lines]

    def halt(self, *options: str) -> dict:
        done = subprocess.run([self._command, "--json", *options, str(self.cluster.prefix)],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=30)
        return json.loads(done.stdout)["prefixes"][0]


@pytest.fixture
def job(cluster: Cluster, build: Path, flavour: str) -> Job:
    return Job(cluster, build, flavour)


def test_a_running_job_stops_after_its_next_checkpoint(job: Job) -> None:
    run = job.start_and_wait("until_halted")
    job.halt()
    assert job.end(run) == (0, ["stopped after 1 checkpoints", "done"]), job.printed()
    assert job.printed().count("the run should stop after its next checkpoint") == 1
    assert job.halt("--list")["reason"] == "JOB_HALTED"


@pytest.mark.any_mpi
def test_a_running_job_stops_at_once(job: Job) -> None:
    run = job.start_and_wait("until_halted")
    job.halt("--immediate")
    assert job.end(run) == (0, ["stopped after 0 checkpoints", "done"]), job.printed()
    assert "without another checkpoint" in job.printed()


@pytest.mark.any_mpi
def test_a_job_stops_after_so_many_checkpoints(job: Job) -> None:
    job.halt("--checkpoints", "3")
    run = job.start_and_wait("until_halted", SCR_CHECKPOINT_INTERVAL="2")
    assert job.end(run) == (0, ["stopped after 3 checkpoints", "done"]), job.printed()
    halted = job.halt("--list")
    assert (halted["checkpoints_left"], halted["reason"]) == (0, "NO_CHECKPOINTS_LEFT")
    job.halt("--checkpoints", "1")
    run = job.start_and_wait("until_halted", SCR_CHECKPOINT_INTERVAL="2")
    assert job.end(run) == (0, ["stopped after 1 checkpoints", "done"]), job.printed()


@pytest.mark.parametrize("options, lines", [([], ["checkpoint"]), (["--immediate"], [])])
def test_a_program_that_does_not_ask_is_ended(job: Job, options: List[str], lines: List[str]
                                              ) -> None:
    run = job.start_and_wait("until_ended", SCR_HALT_EXIT="1", CAIRN_LOG_JSON="1")
    job.halt(*options)
    assert job.end(run) == (0, lines), job.printed()
    assert job.printed().count(ENDED) == 1
    assert job.logged().count("SHOULD_EXIT") == 1, "else cairn run takes it for one that finished by itself"


@pytest.mark.any_mpi
def test_a_late_failure_of_protection_keeps_no_program_from_halting(job: Job) -> None:
    job.halt("--checkpoints", "2")
    run = job.start_and_wait("ended_after_late_failure", SCR_HALT_EXIT="1", CAIRN_PROTECT="behind")
    assert job.end(run) == (0, []), job.printed()
    assert "has no effect" not in job.printed()
    assert "has changed after the call that completed it" in job.printed()
    assert job.printed().count(ENDED) == 1


@pytest.mark.any_mpi
def test_a_job_that_was_halted_is_ended_by_init_until_that_is_taken_back(job: Job) -> None:
    job.halt()
    assert job.end(job.start("until_ended", {"SCR_HALT_EXIT": "1"})) == (0, [])
    assert ENDED in job.printed() and "cairn halt --remove" in job.printed()
    job.halt("--remove")
    run = job.start_and_wait("until_halted")
    job.halt()
    assert job.end(run)[0] == 0


@pytest.mark.any_mpi
def test_a_prefix_directory_that_nobody_halts_is_not_written(job: Job) -> None:
    run = job.start_and_wait("until_halted", SCR_CHECKPOINT_INTERVAL="1", SCR_FLUSH="0")
    run.end()
    assert not (job.cluster.prefix / ".cairn" / "halt").exists()


@pytest.mark.any_mpi
def test_two_jobs_that_copy_nothing_to_their_prefix_directory_run_there_together(job: Job) -> None:
    job.start_and_wait("until_halted", SCR_FLUSH="0", SCR_JOB_ID="ended").end()
    runs = [job.start_and_wait("until_halted", SCR_FLUSH="0", SCR_JOB_ID=name) for name in ("ended", "another")]
    job.halt("--immediate")
    assert [job.end(run)[0] for run in runs] == [0, 0], job.printed()
    assert "waiting up to" not in job.printed(), "a note about a run is no reason to own the directory"


@pytest.mark.any_mpi
def test_a_failed_init_is_logged_with_the_kind_of_failure(job: Job) -> None:
    run = job.start_and_wait("until_halted", CAIRN_LOG_JSON="1")
    assert job.end(job.start("until_halted", {"CAIRN_LOG_JSON": "1"}))[0] != 0
    lines = map(json.loads, (job.cluster.prefix / ".cairn" / "log.json").read_text().splitlines())
    failed = [line for line in lines if line.get("event") == "INIT_FAIL"]
    assert [line["code"] for line in failed] == ["busy"] and "alive" in failed[0]["note"], failed
    job.halt("--immediate")
    assert job.end(run)[0] == 0
