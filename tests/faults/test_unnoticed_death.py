"""One rank is killed inside a call, as for lack of memory, and the launcher does not notice: the others do not wait for
ever, and say which rank it was."""

from typing import Dict

import pytest

from checkpointing import FULL, NEWEST, Job
from cluster import why_no_other_machine

STRIKER = 5
BEHIND = {"CAIRN_PROTECT": "behind"}
IN_COMPLETE = {"kill_at": "complete", "kill_step": NEWEST + 1, "kill_nth": 1, "kill_operation": "rename:record"}
# The call of the others waits until the checkpoint before is protected. A death at some time after this call began could
# find the others outside Cairn, in a call of MPI that nothing ends.
BEFORE_START = {"kill_at": "before-start", "kill_step": NEWEST + 2}


@pytest.mark.each_mpi
@pytest.mark.parametrize("settings, moment", [({}, IN_COMPLETE), (BEHIND, IN_COMPLETE), (BEHIND, BEFORE_START)],
                         ids=["now", "behind", "behind the program"])
def test_the_others_end_with_an_error_that_names_the_rank(job: Job, settings: Dict[str, str],
                                                          moment: Dict[str, object]) -> None:
    others_name_the_rank(job, settings, moment)


@pytest.mark.each_mpi
def test_a_rank_that_is_alone_on_its_machine_is_named_too(job: Job) -> None:
    if why := why_no_other_machine():
        pytest.skip(f"NOT TESTED: a rank on another machine, because {why}")
    job.alone_on_machine = STRIKER
    others_name_the_rank(job, {}, IN_COMPLETE)


def others_name_the_rank(job: Job, settings: Dict[str, str], moment: Dict[str, object]) -> None:
    """Then all restart from what they had prepared."""
    job.launcher_notices_deaths = False
    outcome = job.launch(FULL, settings, checkpoints=2, kill_striker=STRIKER, kill_ranks=STRIKER, **moment)
    outcome.killed()
    assert "cairn: error:" in outcome.log and f"rank {STRIKER} (process" in outcome.log, outcome.log
    job.launcher_notices_deaths = True
    assert job.launch(FULL, settings).restarted_from() == NEWEST + 1, "all had prepared it"
