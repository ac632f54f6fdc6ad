"""What a log is read as."""

from pathlib import Path
from typing import Any, Dict

import pytest

from cairn.job_log import read_log
from cairn.reporting.history import History, history_of
from logs import Log


def history(log: Log, tmp_path: Path) -> History:
    read = read_log(log.write(tmp_path) / ".cairn" / "log.json")
    assert read.damaged == 0
    return history_of("here", read.entries)


def test_time_goes_to_the_phase_it_was_spent_in(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1)
    log.checkpoint(2, flush=True)
    log.add("FINALIZE", 5)
    made = history(log, tmp_path)
    spent = made.seconds()
    assert {phase: round(seconds, 3) for phase, seconds in spent.items() if seconds > 0.001} == {
        "start": 1.0, "compute": 25.0, "write": 2.0, "encode": 4.0, "flush": 4.0}
    assert made.runs[0].duration_s() == pytest.approx(36.0)
    spans = {span.phase: span for span in made.runs[0].spans if span.name == "ckpt.2"}
    begun = made.runs[0].begun_s
    assert [(round(span.from_s - begun, 3), round(span.to_s - begun, 3)) for span in
            (spans["write"], spans["encode"], spans["flush"])] == [(24, 25), (25, 27), (27, 31)]
    assert (made.newest, made.newest_number) == ("ckpt.2", 2)
    assert made.runs[0].end == "finished" and made.runs[0].about == "8 ranks on 4 nodes"


def test_fetching_and_reading_a_restart_are_not_computing(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add("FETCH_START", name="a")
    log.add("FETCH_SUCCESS", 3, name="a", seconds=3.0)
    log.moved("FETCH", 3.0, name="a")
    log.add("RESTART_START", name="a")
    log.add("RESTART_SUCCESS", 2, name="a")
    log.add("COMPUTE_END", 10, seconds=15.0)
    spent = history(log, tmp_path).seconds()
    assert (round(spent["fetch"]), round(spent["restart"]), round(spent["compute"])) == (3, 2, 10)


def test_a_run_has_died_if_another_follows(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1)
    log.add("COMPUTE_END", 4, seconds=4.0)  # as of a dataset that it did not complete
    log.time_s += 20
    log.start(rebuilt_s=2.0)
    log.add("RESTART_START", name="ckpt.1")
    log.add("RESTART_SUCCESS", 1, name="ckpt.1")
    made = history(log, tmp_path)
    assert [run.end for run in made.runs] == ["died", "open"]
    assert made.lost_s() == pytest.approx(4 + 20 + 3 + 1)
    assert made.seconds()["rebuild"] == pytest.approx(2.0) and made.seconds()["start"] == pytest.approx(2.0)
    outcomes = made.outcomes()
    assert (outcomes["run"].good, outcomes["run"].bad) == (0, 1)
    assert (outcomes["rebuild"].good, outcomes["restart"].good, outcomes["checkpoint"].good) == (1, 1, 1)


def test_what_a_run_from_scratch_computes_again_is_lost_and_the_reason_is_a_failure(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1)
    log.checkpoint(2)
    log.time_s += 20
    log.start()
    log.add("FRESH_START", note="n1 and n2 are gone")
    made = history(log, tmp_path)
    first, second = made.runs
    assert made.lost_s() == pytest.approx(second.resumed_s - first.resumed_s) and made.lost_s() > 20 + 20
    assert [(one.what, one.reason) for one in made.failures()] == [("began from scratch", "n1 and n2 are gone")]


def test_cairn_run_tells_that_a_run_is_over_and_which_nodes_failed(tmp_path: Path) -> None:
    """Its launches are no runs of their own, whether their program calls SCR_Init or not."""
    log = Log()
    log.add("NODE_FAIL", note="n9: slurm says: down")
    log.add("RUN_START", note="run 1 on 4 nodes: n0,n1,n2,n3")
    log.start()
    log.checkpoint(1)
    before_s = log.time_s
    log.add("NODE_FAIL", 3, note="n2: runs no commands")
    log.add("RUN_END", 1, note="run 1: lost n2", seconds=30.0)
    log.add("RUN_START", 1, note="run 2 on 4 nodes: n0,n1,n4,n3")
    log.add("RUN_END", 1, note="run 2: exit 7", seconds=1.0)
    for what in ("SCAVENGE_START", "SCAVENGE_END"):
        log.add(what, 1, note="ckpt.1 saved")
    made = history(log, tmp_path)
    [run] = made.runs
    assert (run.end, run.launch, run.last_s, run.about) == ("died", "run 1: lost n2", before_s, "8 ranks on 4 nodes")
    assert [(one.what, one.name, one.reason) for one in made.failures()] == [
        ("node", "n9", "slurm says: down"), ("node", "n2", "runs no commands")]
    log.add("RUN_START", note="run 3 on 4 nodes: n0,n1,n4,n3")
    log.start(rebuilt_s=2.0)
    log.add("FINALIZE", 1)
    log.add("RUN_END", 1, note="run 3: exit 0", seconds=5.0)
    made = history(log, tmp_path)
    assert [(one.end, one.launch) for one in made.runs] == [("died", "run 1: lost n2"), ("finished", "")]
    assert (made.outcomes()["run"].good, made.outcomes()["run"].bad, made.outcomes()["rebuild"].good) == (1, 1, 1)


def test_a_run_that_was_open_is_over_when_cairn_run_begins_another(tmp_path: Path) -> None:
    log = Log()
    log.start()
    assert history(log, tmp_path).runs[0].end == "open"
    log.add("RUN_START", 9, note="run 1 on 4 nodes: n0,n1,n2,n3")
    assert history(log, tmp_path).runs[0].end == "died"


def test_failures_are_reported_with_their_reasons_and_count_as_no_success(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add("CHECKPOINT_END", 1, dataset=1, name="a", seconds=1.0, note="full")
    for what in ("FLUSH_FAIL", "FETCH_FAIL", "REBUILD_FAIL", "RESTART_FAIL", "OUTPUT_END"):
        log.add(what, 1, name="b", note=f"why {what}")
    log.add("HALT", note="JOB_HALTED")
    log.add("SHOULD_EXIT")
    log.add("FINALIZE")
    made = history(log, tmp_path)
    [run] = made.runs
    assert [(failure.what, failure.name) for failure in run.failures] == [
        ("checkpoint", "a"), ("flush", "b"), ("fetch", "b"), ("rebuild", "b"), ("restart", "b"), ("output", "b")]
    assert run.failures[0].reason == "full"
    outcomes = made.outcomes()
    assert all((outcomes[name].good, outcomes[name].bad) == (0, 1)
               for name in ("checkpoint", "flush", "fetch", "rebuild", "restart", "output"))
    assert run.end == "halted" and outcomes["run"].good == 1 and made.newest == ""


def test_a_run_that_came_to_its_end_although_it_was_to_stop_is_no_halted_one(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add("HALT", note="JOB_HALTED")
    log.add("FINALIZE")
    [run] = history(log, tmp_path).runs
    assert run.end == "finished" and run.halt == "JOB_HALTED"


def test_what_is_saved_after_the_job_is_no_sign_of_life_of_it(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1)
    before = history(log, tmp_path).runs[0].duration_s()
    log.add("SCAVENGE", 5000, kind="transfer", dataset=1, name="ckpt.1", seconds=2.0, bytes=100, files=8)
    log.add("PUBLISH_FAIL", 1, dataset=2, name="ckpt.2", note="2 ranks are missing")
    log.add("PUBLISH_SUCCESS", 1, dataset=1, name="ckpt.1")
    log.add("DRAIN", 1, dataset=1, name="ckpt.1")
    log.add("DRAIN_SUCCESS", 1, dataset=1, name="ckpt.1")
    made = history(log, tmp_path)
    assert made.runs[0].duration_s() == before and sum(made.seconds().values()) == pytest.approx(before)
    assert (made.outcomes()["publish"].good, made.outcomes()["publish"].bad) == (1, 1)
    assert [one.bytes for one in made.moved("scavenge")] == [100]
    assert [(one.what, one.reason) for one in made.runs[0].failures] == [("publish", "2 ranks are missing")]


def test_what_anybody_may_have_written_is_counted_and_passed_over(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.lines += ["{half", "[]", "3", '{"time_us": 1}', '{"event": "A", "time_us": NaN}', '{"event": 5, "time_us": 1}',
                  '{"event": "A", "time_us": 1, "seconds": "3"}', '{"event": "A", "time_us": 1, "bytes": -1}',
                  '{"event": "A", "time_us": 1, "seconds": 1e999}', '{"event": "A", "time_us": 1, "name": []}',
                  "\0\x7f"]
    path = log.write(tmp_path) / ".cairn" / "log.json"
    with path.open("a") as more:
        more.write('{"half of the last li')
    read = read_log(path)
    assert (len(read.entries), read.damaged) == (2, 11)


def test_a_copy_that_goes_on_meanwhile_is_no_phase_and_a_wait_for_it_is(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1)
    log.add("ASYNC_FLUSH_START", dataset=1, name="ckpt.1")
    log.add("ASYNC_FLUSH_WAIT", 7, dataset=1, name="ckpt.1", seconds=3.0)
    log.add("ASYNC_FLUSH_SUCCESS", 1, dataset=1, name="ckpt.1", seconds=8.0)
    log.moved("FLUSH_ASYNC", 8.0, dataset=1, name="ckpt.1")
    log.add("COMPUTE_END", 2, seconds=10.0)
    log.add("ASYNC_FLUSH_FAIL", dataset=2, name="ckpt.2", note="no space left")
    made = history(log, tmp_path)
    spent = made.seconds()
    assert spent["flush"] == pytest.approx(3.0)
    assert spent["compute"] == pytest.approx(10 + 4 + 3)
    flush = made.outcomes()["flush"]
    assert (flush.good, flush.bad) == (1, 1)
    assert [(one.what, one.name, one.reason) for one in made.failures()] == [("flush", "ckpt.2", "no space left")]


def test_how_long_datasets_were_in_each_state(tmp_path: Path) -> None:
    """What is never flushed counts apart, up to the end of the run."""
    log = Log()
    log.start()
    log.checkpoint(1, flush=True)
    log.add("CHECKPOINT_END", 2, dataset=2, name="ckpt.2", seconds=3.0, scheme="XOR", set_size=8)
    log.add("CHECKPOINT_END", 2, dataset=3, name="ckpt.3", seconds=3.0, scheme="SINGLE")
    log.add("CHECKPOINT_END", 2, dataset=4, name="ckpt.4", seconds=9.0, scheme="XOR", set_size=8)
    log.add("ASYNC_FLUSH_SUCCESS", 1, dataset=2, name="ckpt.2", seconds=5.0)
    log.add("ASYNC_FLUSH_SUCCESS", 1, dataset=3, name="ckpt.3", seconds=4.0)
    made = history(log, tmp_path)
    assert made.flushed == 3
    assert made.state_seconds == pytest.approx({"writing": 9.0, "written": 4 + 4, "protected": 5})
    assert made.unflushed == 1
    assert made.unflushed_seconds == pytest.approx({"writing": 9.0, "written": 0.0, "protected": 2.0})


def unflushed(number: int, scheme: str, what: str = "CHECKPOINT_END", **more: Any) -> Dict[str, Any]:
    return {"what": what, "dataset": number, "name": f"d.{number}", "seconds": 1.0, "scheme": scheme, "set_size": 8, **more}


def test_a_dataset_that_is_never_flushed_counts_until_its_run_ends(tmp_path: Path) -> None:
    """The next run, what job control does, and what is done with the dead job are no part of that."""
    log = Log()
    log.start()
    log.add(**unflushed(1, "SINGLE", "OUTPUT_END"))
    log.add(**unflushed(2, "SINGLE"), after_s=10)
    log.add("PROTECT_END", 5, dataset=2, name="d.2", seconds=3.0, scheme="XOR", set_size=8)
    log.add("CALL", 20)
    log.add("RUN_END", 50, note="run 1: signal 9")
    log.add("DRAIN", 50, dataset=1, name="d.1")
    log.add("RUN_START", 50, note="run 2")
    log.start()
    log.add("CALL", 200)
    made = history(log, tmp_path)
    assert (made.flushed, made.unflushed) == (0, 2)
    assert made.unflushed_seconds == pytest.approx({"writing": 2.0, "written": 35 + 3, "protected": 22})


def test_a_checkpoint_that_is_not_being_copied_counts_until_a_newer_one_takes_its_place(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add(**unflushed(1, "XOR"))
    log.add(**unflushed(2, "XOR"), after_s=10)
    log.add("ASYNC_FLUSH_START", dataset=2, name="d.2")
    log.add(**unflushed(3, "XOR"), after_s=10)
    log.add("ASYNC_FLUSH_START", dataset=3, name="d.3")
    log.add(**unflushed(4, "XOR"), after_s=10)
    log.add("ASYNC_FLUSH_STOP", dataset=3, name="d.3", note="a newer checkpoint is due")
    log.add("CALL", 100)
    made = history(log, tmp_path)
    assert made.unflushed == 4
    assert made.unflushed_seconds["protected"] == pytest.approx(10 + (20 + 100) + 10 + 100)


def test_a_checkpoint_that_is_an_output_too_counts_until_it_is_copied(tmp_path: Path) -> None:
    """The caches keep it although a newer checkpoint is there."""
    log = Log()
    log.start()
    log.add(**unflushed(1, "XOR", output=True))
    log.add("ASYNC_FLUSH_START", dataset=1, name="d.1")
    log.add("ASYNC_FLUSH_FAIL", dataset=1, name="d.1", note="no space left")
    log.add(**unflushed(2, "XOR"), after_s=10)
    log.add("CALL", 100)
    made = history(log, tmp_path)
    assert made.unflushed_seconds["protected"] == pytest.approx(10 + 100 + 100)


@pytest.mark.parametrize("goes", ["DELETE", "LOST"])
def test_a_dataset_that_goes_from_the_caches_counts_until_then(tmp_path: Path, goes: str) -> None:
    log = Log()
    log.start()
    log.add(**unflushed(1, "XOR"))
    log.add(**unflushed(2, "XOR"), after_s=10)
    for number in (2, 1):
        log.add(goes, 100, dataset=number, name=f"d.{number}")
    log.add("CALL", 1000)
    made = history(log, tmp_path)
    assert (made.flushed, made.unflushed) == (0, 2)
    assert made.unflushed_seconds["protected"] == pytest.approx(10 + 100)


def test_a_deleted_dataset_that_was_in_the_prefix_directory_is_not_missing_there(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add(**unflushed(1, "XOR"))
    for what in ("FLUSH_SUCCESS", "SETTLE_SUCCESS", "DELETE"):
        log.add(what, 1, dataset=1, name="d.1")
    made = history(log, tmp_path)
    assert (made.flushed, made.unflushed) == (1, 0)


def test_the_number_of_a_dataset_that_was_never_flushed_may_be_given_again(tmp_path: Path) -> None:
    log = Log()
    for waited_s in (10, 30):
        log.start()
        log.add(**unflushed(1, "SINGLE"))
        log.add("CALL", waited_s)
    made = history(log, tmp_path)
    assert (made.unflushed, made.unflushed_seconds["written"]) == (2, pytest.approx(40))


def test_what_was_written_straight_to_the_prefix_directory_is_not_missing_there(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add("CHECKPOINT_END", 2, dataset=1, name="d.1", seconds=3.0, to="/pfs")
    assert history(log, tmp_path).unflushed == 0


@pytest.mark.parametrize(("scheme", "written_s"), [("XOR", 2.5), ("SINGLE", 9.0)])
def test_a_dataset_is_written_until_it_is_protected_behind_the_program(tmp_path: Path, scheme: str, written_s: float) -> None:
    """The event comes with the next call of the program; its seconds are those that count."""
    log = Log()
    log.start()
    log.add("CHECKPOINT_END", 2, dataset=2, name="ckpt.2", seconds=3.0, scheme="SINGLE", set_size=1)
    log.add("PROTECT_END", 4, dataset=2, name="ckpt.2", seconds=2.5, scheme=scheme, set_size=8)
    log.add("FLUSH_SUCCESS", 5, dataset=2, name="ckpt.2")
    made = history(log, tmp_path)
    assert made.state_seconds == pytest.approx({"writing": 3.0, "written": written_s, "protected": 9.0 - written_s})


def test_a_number_that_is_given_again_has_no_protection_of_before(tmp_path: Path) -> None:
    log = Log()
    log.start()
    for ending in ("PROTECT_END", "FLUSH_SUCCESS"):
        log.add("CHECKPOINT_END", 2, dataset=2, name="ckpt.2", seconds=3.0, scheme="SINGLE", set_size=1)
        log.add(ending, 5, dataset=2, name="ckpt.2", seconds=1.0, scheme="XOR", set_size=8)
    assert history(log, tmp_path).state_seconds == pytest.approx({"writing": 3.0, "written": 5.0, "protected": 0.0})


def test_waiting_for_protection_is_not_computing(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.add("PROTECT_WAIT", 10, dataset=2, name="ckpt.2", seconds=4.0)
    log.add("COMPUTE_END", seconds=10.0)
    spent = history(log, tmp_path).seconds()
    assert (round(spent["compute"]), round(spent["encode"])) == (6, 4)


@pytest.mark.parametrize("event", ["DRAIN_SUCCESS", "SETTLE_SUCCESS", "PUBLISH_SUCCESS"])
def test_what_arrives_after_the_death_of_the_run_is_flushed(tmp_path: Path, event: str) -> None:
    """Several nodes, or the next run too, may log that."""
    log = Log()
    log.start()
    log.add("CHECKPOINT_END", 2, dataset=2, name="ckpt.2", seconds=3.0, scheme="XOR", set_size=8)
    log.add(event, 5, dataset=2, name="ckpt.2")
    log.add(event, 1, dataset=2, name="ckpt.2")
    made = history(log, tmp_path)
    assert made.flushed == 1
    assert made.state_seconds == pytest.approx({"writing": 3.0, "written": 0, "protected": 5})
