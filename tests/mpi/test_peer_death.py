"""A rank is killed, and the launcher does not notice: its child is a shell, which stays."""

import os
import re
import subprocess
import time
from typing import List, Tuple

import pytest

RANKS = 4
# Longer than any test waits. It takes the place of the shell, so that the launcher ends it with the job.
HIDE_DEATH = '"$@"; code=$?; echo ended with $code; [ $code -le 128 ] || exec sleep 60; exit $code'
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(program: str, launch: List[str], *arguments: str) -> Tuple[int, str, float]:
    """Exit code, output and the time it took."""
    begin = time.monotonic()
    done = subprocess.run([*launch, str(RANKS), "sh", "-c", HIDE_DEATH, "sh", program, *arguments],
                          env={**os.environ, **AS_ROOT}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=50, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begin


@pytest.mark.parametrize("victim", [0, 2])
def test_others_notice_within_a_second_and_go_on_computing(program: str, launch: List[str], victim: int) -> None:
    # The program itself checks the second. The end of the first survivor ends the job.
    _, output, _ = run(program, launch, "go-on", str(victim))
    survivors = [line for line in output.splitlines() if "goes on" in line]
    assert survivors, output
    assert all(f"rank {victim} (process" in line for line in survivors), output
    assert "does not hold" not in output, output


@pytest.mark.parametrize("how", ["end-job", "end-plain"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_collective_call_ends_with_an_error_that_names_the_rank(program: str, launch: List[str], how: str,
                                                                  victim: int) -> None:
    code, output, took_s = run(program, launch, how, str(victim))
    assert code != 0, output
    assert "cairn: error:" in output, output
    assert f"rank {victim} (process" in output, output
    assert took_s < 20, output


@pytest.mark.parametrize("victim", [0, 2])
def test_lost_connections_end_no_job(program: str, launch: List[str], victim: int) -> None:
    code, output, _ = run(program, launch, "lose", str(victim))
    assert code == 0, output
    lines = [line for line in output.splitlines() if "goes on" in line]
    assert len(lines) == RANKS, output
    assert all("has lost its connection to" in line for line in lines), output


def test_without_the_network_the_call_would_not_end(program: str, launch: List[str]) -> None:
    """Otherwise the test above shows nothing."""
    job = subprocess.Popen([*launch, str(RANKS), "sh", "-c", HIDE_DEATH, "sh", program, "wait", "2"],
                           env={**os.environ, **AS_ROOT}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(timeout=5)
    finally:
        job.terminate()
        job.wait(timeout=30)


def test_a_program_that_does_not_close_the_queue_has_its_tasks_done(program: str, launch: List[str]) -> None:
    code, output, _ = run(program, launch, "skip-close", "0")
    assert code == 0, output


@pytest.mark.parametrize("how", ["exit", "exit-busy"])
def test_exit_keeps_its_code_and_does_not_wait_for_a_task(program: str, launch: List[str], how: str) -> None:
    _, output, took_s = run(program, launch, how, "37")
    codes = re.findall(r"ended with (\d+)", output)
    # The launcher may kill those that have not come so far.
    assert "37" in codes and set(codes) <= {"37", "137"}, output
    if how == "exit-busy":
        assert output.count("the task has stopped") >= codes.count("37"), output
    assert took_s < 20, output


def test_an_abort_keeps_its_code_and_does_not_wait_for_a_task(program: str, launch: List[str]) -> None:
    code, output, took_s = run(program, launch, "abort", "37")
    assert code == 37, output
    assert took_s < 20, output
