"""Processes are killed in the middle of a call; the next run finds the newest committed checkpoint
and is never offered a partial one. Some moments of each call: test_sampled_kills.py draws others, and
src/session/session_crash_test.cpp has each operation.

Rank 2, on node n1, is the striker: it dies in the middle of a change to a file, and takes all ranks
or the other rank of its node with it.
"""

from functools import lru_cache
from pathlib import Path
from typing import Callable, Tuple

import pytest

from checkpointing import FULL, NEWEST, Job, Outcome, in_turn, ranks_on, with_spares

NODE = "n1"
STRIKER, _ = ranks_on(NODE)
WHO = {"all": "all", "node": ",".join(map(str, ranks_on(NODE)))}
FRACTIONS = (0.1, 0.45, 0.8)

# A moment: the call, which changes count, and the how manieth of them.
Moment = Tuple[str, str, int]
IN_START = [("start", "mkdir", 3)]
IN_ENCODE = [("complete", "pwrite:parity.1", 4)]
IN_PREPARE = [("complete", "pwrite:record.new", 1)]
IN_COMMIT = [("complete", "rename:record", 1)]
# With room for one dataset two are evicted: what is too much already when the new one begins, and the last one when it is
# committed.
IN_EVICT_AT_START = [("start", "unlink:record", 1), ("start", "rmdir:rank.2", 1)]
IN_EVICT = [("complete", "unlink:record", 1), ("complete", "unlink:rank.2", 1), ("complete", "rmdir:rank.2", 1)]


def kill_in(job: Job, moment: Moment, who: str, keep: int) -> None:
    """Kills a run in its first checkpoint; stores have room for `keep`."""
    call, operation, nth = moment
    death = job.launch(FULL, {"SCR_CACHE_SIZE": str(keep)}, checkpoints=1, kill_at=call,
                       kill_step=NEWEST + 1, kill_striker=STRIKER, kill_ranks=WHO[who],
                       kill_nth=nth, kill_operation=operation).killed()
    wanted, _, name = operation.partition(":")
    assert (death.call, death.step, death.what) == (call, NEWEST + 1, wanted)
    assert death.where.endswith(name)


def restart(job: Job, who: str) -> Outcome:
    """Starts again, on the spare if the node's storage went with its processes."""
    if who == "node":
        job.lose(NODE)
    outcome = job.launch(with_spares(NODE) if who == "node" else FULL)
    assert outcome.restarted_from() > 0, outcome.log
    assert outcome.report["offered"] == [outcome.report["restart"]]
    return outcome


@pytest.mark.parametrize("scheme, point, who", in_turn(["before-writes", "between-writes", "after-writes"], WHO))
def test_killed_while_the_program_writes(job: Job, point: str, who: str) -> None:
    death = job.launch(FULL, checkpoints=1, kill_at=point, kill_step=NEWEST + 1,
                       kill_striker=STRIKER, kill_ranks=WHO[who]).killed()
    assert (death.call, death.step) == (point, NEWEST + 1)
    assert restart(job, who).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, moment, who", in_turn(IN_START + IN_ENCODE + IN_PREPARE, WHO))
def test_killed_before_commit(job: Job, moment: Moment, who: str) -> None:
    """A store for one dataset must not give up the old one too early."""
    kill_in(job, moment, who, keep=1)
    assert restart(job, who).restarted_from() == NEWEST


@pytest.mark.each_mpi
@pytest.mark.parametrize("scheme, moment, who", in_turn(IN_COMMIT, WHO))
def test_killed_in_commit(job: Job, moment: Moment, who: str) -> None:
    """The others may have renamed their records by then, which commits it for all."""
    kill_in(job, moment, who, keep=1)
    assert restart(job, who).restarted_from() in (NEWEST, NEWEST + 1)


@pytest.mark.parametrize("scheme, moment, who", in_turn(IN_EVICT_AT_START, WHO))
def test_killed_in_evict_at_start(job: Job, moment: Moment, who: str) -> None:
    """The newest dataset stays until the new one is committed."""
    kill_in(job, moment, who, keep=1)
    assert restart(job, who).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, moment, who", in_turn(IN_EVICT, WHO))
def test_killed_in_evict(job: Job, moment: Moment, who: str) -> None:
    """Old datasets are evicted when the new one is committed everywhere."""
    kill_in(job, moment, who, keep=1)
    assert restart(job, who).restarted_from() == NEWEST + 1


InitChanges = Callable[[str, str, bool], int]


@pytest.fixture(scope="session")
def init_changes(build: Path, written: Callable[[str, str], Job]) -> InitChanges:
    """init_changes(flavour, scheme, moves): how many changes the striker makes, when left alone, in an Init that
    rebuilds its node or moves all ranks."""
    @lru_cache(maxsize=None)
    def of(flavour: str, scheme: str, moves: bool) -> int:
        with Job(build, flavour, scheme) as job:
            job.copy(written(flavour, scheme)).lose(*([] if moves else [NODE]))
            outcome = job.launch(FULL[::-1] if moves else with_spares(NODE))
        changes: int = outcome.report["effort"]["init"]["changes"][STRIKER]
        assert changes > 10
        return changes

    return of


@pytest.mark.parametrize("scheme, fraction, who", in_turn(FRACTIONS, ["all", "spare"]))
def test_killed_in_init_while_rebuilding(job: Job, flavour: str, init_changes: InitChanges, fraction: float,
                                         who: str) -> None:
    """A second failure during move and rebuild loses nothing."""
    job.lose(NODE)
    job.launch(with_spares(NODE), kill_at="init", kill_striker=STRIKER,
               kill_ranks=WHO["all" if who == "all" else "node"],
               kill_nth=round(init_changes(flavour, job.scheme, False) * fraction)).killed()
    where = with_spares(NODE)
    if who == "spare":
        job.lose("m1")
        where = ["another" if node == "m1" else node for node in where]
    assert job.launch(where).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, fraction", in_turn(FRACTIONS))
def test_killed_in_init_while_moving(job: Job, flavour: str, init_changes: InitChanges, fraction: float) -> None:
    """Every rank is on another node than before, so that everything moves."""
    job.launch(FULL[::-1], kill_at="init", kill_striker=STRIKER, kill_ranks="all",
               kill_nth=round(init_changes(flavour, job.scheme, True) * fraction)).killed()
    assert job.launch(FULL).restarted_from() == NEWEST


@pytest.mark.parametrize("scheme, lost", in_turn(["n1", "n2"]))
def test_killed_when_files_are_moved_and_records_are_not(job: Job, lost: str) -> None:
    """The striker moves from n1 to n2; whichever is lost then, the sources are still there."""
    death = job.launch(FULL[::-1], kill_at="init", kill_striker=STRIKER, kill_ranks="all",
                       kill_nth=1, kill_operation="pwrite:record.tmp").killed()
    assert f"dataset.{NEWEST}." in death.where
    job.lose(lost)
    assert job.launch(with_spares(lost)).restarted_from() == NEWEST


@pytest.mark.each_mpi
def test_killed_in_complete_then_again_in_init(job: Job) -> None:
    """The second run dies as it brings in order what the first one left."""
    kill_in(job, IN_COMMIT[0], "all", keep=2)
    job.launch(FULL, kill_at="init", kill_striker=STRIKER, kill_ranks="all", kill_nth=1,
               kill_operation="unlink:record.new").killed()
    assert job.launch(FULL).restarted_from() in (NEWEST, NEWEST + 1)
