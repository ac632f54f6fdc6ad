"""When the halt file keeps a run from being started."""

from typing import Optional

import pytest

from cairn.halting import Halt, halt_seconds_of, why_stop

NOW = 1_000_000


@pytest.mark.parametrize("halt, before, stops", [
    (Halt(), None, None),
    (Halt(reason="JOB_HALTED"), None, "JOB_HALTED"),
    (Halt(reason="JOB_HALTED"), "JOB_HALTED", "JOB_HALTED"),  # the user's stays in force
    (Halt(reason="lunch"), None, "lunch"),
    (Halt(checkpoints_left=1), "", None),
    (Halt(checkpoints_left=0), None, "NO_CHECKPOINTS_LEFT"),
    (Halt(exit_before_s=NOW + 61), None, None),
    (Halt(exit_before_s=NOW + 60), None, "EXIT_BEFORE_TIME"),     # less SCR_HALT_SECONDS
    (Halt(exit_before_s=NOW + 30, halt_seconds=29), None, None),  # that of the file goes before
    (Halt(exit_after_s=NOW + 1), None, None),
    (Halt(exit_after_s=NOW), None, "EXIT_AFTER_TIME"),
    # The library's word: of an earlier allocation, of the last run, or left from before it.
    (Halt(reason="TIME_LIMIT"), None, None),
    (Halt(reason="TIME_LIMIT"), "", "TIME_LIMIT"),
    (Halt(reason="TIME_LIMIT"), "TIME_LIMIT", None),
    # A signal's is of the allocation that got it, whoever finds it.
    (Halt(reason="SIGNAL_RECEIVED"), None, None),
    (Halt(reason="SIGNAL_RECEIVED", checkpoints_left=0), None, "NO_CHECKPOINTS_LEFT"),
    (Halt(reason="SIGNAL_RECEIVED"), "", "SIGNAL_RECEIVED"),
    (Halt(reason="SCR_FINALIZE_CALLED"), None, None),
    (Halt(reason="SCR_FINALIZE_CALLED"), "", None),
])
def test_what_stops_a_job(halt: Halt, before: Optional[str], stops: Optional[str]) -> None:
    why = why_stop(halt, NOW, 60, before)
    assert (why or "").split(":")[0] == (stops or "")


@pytest.mark.parametrize("in_file, setting, seconds", [(None, 60, 60), (600, 60, 600), (0, 60, 0), (600, 0, 600)])
def test_the_halt_file_goes_before_the_setting(in_file: Optional[int], setting: int, seconds: int) -> None:
    assert halt_seconds_of(Halt(halt_seconds=in_file), setting) == seconds
