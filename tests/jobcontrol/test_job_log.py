"""What the log tells, also while it is being written."""

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any, List

import pytest

from cairn.job_log import NOT_PROTECTED, Checkpoint, Entry, JobLog, Progress


def line(what: str, time_s: float = 1.0, job: str = "7", **more: Any) -> str:
    kind = "transfer" if what in ("CHECKPOINT", "FLUSH_SYNC") else "event"
    return json.dumps({"time": "", "time_us": int(time_s * 1e6), "host": "n0", "job": job, kind: what, **more}) + "\n"


def log_in(folder: Path) -> Path:
    (folder / ".cairn").mkdir()
    return folder / ".cairn" / "log.json"


def add(path: Path, text: str) -> None:
    with path.open("a") as log:
        log.write(text)


def test_only_what_is_added_after_the_beginning_is_read(tmp_path: Path) -> None:
    path = log_in(tmp_path)
    add(path, line("START"))
    log = JobLog(str(tmp_path), "7")
    assert log.news() == []
    add(path, line("FINALIZE"))
    assert [entry.what for entry in log.news()] == ["FINALIZE"]
    assert log.news() == []


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    log = JobLog(str(tmp_path), "7")
    assert log.news() == []
    add(log_in(tmp_path), line("START"))
    assert len(log.news()) == 1


def test_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = log_in(tmp_path)
    log = JobLog(str(tmp_path), "7")
    whole = line("START")
    add(path, whole[:20])
    assert log.news() == []
    add(path, whole[20:])
    assert [entry.what for entry in log.news()] == ["START"]


def test_that_one_run_was_asked_to_exit_says_nothing_of_the_next() -> None:
    progress = progress_of(line("SHOULD_EXIT"))
    assert progress.is_to_exit
    progress.begin_run()
    assert not progress.is_to_exit


def test_damage_and_other_jobs_are_passed_over(tmp_path: Path) -> None:
    path = log_in(tmp_path)
    log = JobLog(str(tmp_path), "7")
    add(path, line("START", job="8") + "{half a li\n[]\n3\n\xff\n" + '{"job": "7"}\n' + line("FINALIZE"))
    assert [entry.what for entry in log.news()] == ["FINALIZE"]


@pytest.mark.parametrize("put", ["cut", "replaced by a longer one"])
def test_a_log_that_is_another_is_read_anew_and_nothing_reported_twice(tmp_path: Path, put: str) -> None:
    now_s = time.time()
    path = log_in(tmp_path)
    add(path, line("START", now_s - 10))
    log = JobLog(str(tmp_path), "7")
    add(path, line("CHECKPOINT_END", now_s + 1) + line("OUTPUT_END", now_s + 2)[:20])
    assert [entry.what for entry in log.news()] == ["CHECKPOINT_END"]
    if put == "cut":
        path.write_text(line("START", now_s + 3))
    else:
        other = tmp_path / "other"
        other.write_text(line("START", now_s - 10) * 9 + line("CHECKPOINT_END", now_s + 1) + line("START", now_s + 3))
        other.rename(path)
    assert [entry.time_s for entry in log.news()] == [pytest.approx(now_s + 3)]
    add(path, line("FINALIZE", now_s + 4))
    assert [entry.what for entry in log.news()] == ["FINALIZE"]


@pytest.mark.parametrize("behind_s", [3600.0, -3600.0])
def test_a_node_whose_clock_is_another_is_heard_where_the_log_is_another(tmp_path: Path, behind_s: float) -> None:
    """Rank 0 writes it, on one node in this run and on another in the next."""
    now_s = time.time()
    path = log_in(tmp_path)
    before = line("START", now_s - 10)
    add(path, before)
    log = JobLog(str(tmp_path), "7")
    add(path, line("START", now_s))
    assert len(log.news()) == 1
    path.rename(tmp_path / "kept")
    path.write_text(before + line("START", now_s) + line("FINALIZE", now_s + 5 - behind_s))
    assert [entry.what for entry in log.news()] == ["FINALIZE"]


@pytest.mark.parametrize("job", ["7", 'a "job" of ä\\b'])
def test_a_job_finds_its_own_lines_whatever_it_is_called(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    """Also where what is read at a time ends within one."""
    monkeypatch.setattr("cairn.job_log.PIECE_BYTES", 100)
    path = log_in(tmp_path)
    add(path, "".join(line("START", time_s, kind) for time_s in range(9) for kind in ("other", job)))
    assert len(JobLog(str(tmp_path), job, from_the_start=True).news()) == 9


def test_what_other_jobs_have_written_is_not_decoded_and_not_kept(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cairn.job_log.PIECE_BYTES", 10000)
    path = log_in(tmp_path)
    add(path, "".join(line("START", time_s, "other") for time_s in range(2000)))
    tracemalloc.start()
    log = JobLog(str(tmp_path), "7")
    assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    tracemalloc.stop()
    decoded: List[str] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: (decoded.append(text), loads(text))[1])
    add(path, "".join(line("START", time_s, "other") for time_s in range(2000, 4000)) + line("FINALIZE"))
    assert [entry.what for entry in log.news()] == ["FINALIZE"] and len(decoded) == 1


def test_progress_is_reported_by_committed_datasets(tmp_path: Path) -> None:
    path = log_in(tmp_path)
    log = JobLog(str(tmp_path), "7")
    progress = Progress()
    progress.begin_run()
    assert progress.finalized is None, "it may be a program that does not use the library"
    add(path, line("START", 1) + line("COMPUTE_START", 2)
        + line("CHECKPOINT", 3, dataset=4, name="a", bytes=100, seconds=2.0)
        + line("CHECKPOINT_END", 4, dataset=4, name="a", seconds=0.5)
        + line("CHECKPOINT_END", 5, dataset=5, name="b", note="it failed")
        + line("FLUSH_SUCCESS", 6, dataset=4, name="a") + line("FLUSH_SYNC", 6, dataset=4, name="a", bytes=100, seconds=1.0))
    for entry in log.news():
        progress.add(entry)
    assert (progress.newest, progress.newest_checkpoint().name, progress.commits, progress.failed) == (4, "a", 1, 1)
    assert (progress.written.bytes, progress.flushed.bytes) == (100, 100)
    assert progress.newest_checkpoint().protection == "in the cache, and in the prefix directory"
    assert progress.computing_since_s == 2 and progress.finalized is False
    progress.begin_run()
    assert progress.finalized is False, "the program uses the library, so its word is waited for"
    add(path, line("COMPUTE_START", 10) + line("RESTART_SUCCESS", 11, dataset=4, name="a") + line("FINALIZE", 12))
    for entry in log.news():
        progress.add(entry)
    assert (progress.restarts, progress.restarted_from, progress.computing_since_s) == (1, "a", 11)
    assert progress.finalized and progress.newest == 4


@pytest.mark.parametrize("where, flushed, protection, to_cache, to_prefix", [
    ({"to": "/ssd", "scheme": "XOR", "set_size": 8}, False, "in /ssd by XOR over sets of 8", 1, 0),
    ({"to": "/ssd", "scheme": "XOR", "set_size": 8}, True, "in /ssd by XOR over sets of 8, and in the prefix directory", 1, 1),
    ({"to": "/ssd", "scheme": "SINGLE", "set_size": 1}, False, "in /ssd by SINGLE", 1, 0),
    ({"to": "/pfs"}, False, "in the prefix directory", 0, 1),
])
def test_it_is_reported_where_a_checkpoint_is_and_what_it_outlives(where: "dict[str, Any]", flushed: bool, protection: str,
                                                               to_cache: int, to_prefix: int) -> None:
    """One that the program writes straight to the prefix directory is flushed by nobody."""
    lines = [line("ENCODE", 1, dataset=1, name="a", bytes=100, seconds=1.0),
             line("CHECKPOINT", 1, dataset=1, name="a", bytes=100, seconds=2.0),
             line("CHECKPOINT_END", 2, dataset=1, name="a", seconds=2.0, **where)]
    for what in ("FLUSH_SUCCESS", "FLUSH_SYNC") if flushed else ():
        lines.append(line(what, 3, dataset=1, name="a", bytes=100, seconds=1.0))
    progress = Progress()
    for text in lines:
        entry = Entry.of_line(text)
        assert entry
        progress.add(entry)
    assert progress.newest_checkpoint().protection == protection
    assert (progress.written.count, progress.flushed.count) == (to_cache, to_prefix)


def test_outputs_are_not_counted_as_checkpoints() -> None:
    """What is both is a checkpoint."""
    progress = progress_of(line("CHECKPOINT_END", 1, dataset=1, seconds=2.0), line("OUTPUT_END", 2, dataset=2, seconds=7.0, output=True),
                           line("CHECKPOINT_END", 3, dataset=3, seconds=4.0, output=True), line("OUTPUT_END", 4, dataset=4, note="it failed"),
                           line("OUTPUT_END", 5, dataset=5, note="it failed"), line("CHECKPOINT_END", 6, dataset=6, note="it failed"))
    assert (progress.commits, progress.spent_s, progress.failed) == (2, 6.0, 1)
    assert (progress.outputs, progress.outputs_failed, progress.newest) == (1, 2, 3)


def test_a_checkpoint_is_written_until_it_is_protected() -> None:
    def ended(dataset: int) -> str:
        return line("CHECKPOINT_END", 2, dataset=dataset, name=f"d{dataset}", to="/ssd", scheme="SINGLE", set_size=1)

    protected = line("PROTECT_END", 3, dataset=1, name="d1", to="/ssd", scheme="XOR", set_size=8)
    assert progress_of(ended(1)).newest_checkpoint().protection == f"in /ssd, {NOT_PROTECTED}"
    assert progress_of(ended(1), protected).newest_checkpoint().protection == "in /ssd by XOR over sets of 8"
    assert progress_of(ended(1), ended(2), protected).newest_checkpoint().protection == f"in /ssd, {NOT_PROTECTED}", "it is d1"


@pytest.mark.parametrize("goes", ["DELETE", "LOST"])
def test_the_newest_checkpoint_is_one_that_is_still_there(goes: str) -> None:
    made = [line("CHECKPOINT_END", 10 * dataset, dataset=dataset, name=f"d{dataset}", to="/ssd", scheme="XOR", seconds=2.0)
            for dataset in (1, 2, 3)]
    progress = progress_of(*made, line("FLUSH_SUCCESS", 40, dataset=2, name="d2"), line(goes, 41, dataset=1, name="d1"))
    assert progress.newest_checkpoint().name == "d3"
    progress = progress_of(*made, line("FLUSH_SUCCESS", 40, dataset=2, name="d2"), line(goes, 41, dataset=3, name="d3"))
    assert progress.newest_checkpoint() == Checkpoint("d2", 20, 2.0, "in /ssd by XOR, and in the prefix directory")
    progress = progress_of(*made, *(line(goes, 50, dataset=dataset) for dataset in (1, 2, 3)))
    assert progress.newest_checkpoint().name == "" and progress.commits == 3


def test_the_number_of_a_lost_checkpoint_may_be_given_again() -> None:
    ends = [line("CHECKPOINT_END", time_s, dataset=dataset, name=name) for time_s, dataset, name in ((1, 1, "a"), (2, 2, "b"), (3, 1, "c"))]
    assert progress_of(*ends).newest_checkpoint().name == "c"


def progress_of(*lines: str) -> Progress:
    progress = Progress()
    for entry in map(Entry.of_line, lines):
        assert entry
        progress.add(entry)
    return progress


REFUSED = [line("START", ranks=1), line("INIT_FAIL", code="bad_setting", note="no")]


def test_a_program_that_is_refused_while_a_run_computes_is_no_news_of_that_run() -> None:
    """Whether it is refused after the run began to compute, or before."""
    begins = [line("START", ranks=4), line("COMPUTE_START")]
    for lines in ([*begins, *REFUSED], [line("INIT_FAIL", code="bad_setting", note="no"), *begins]):
        progress = progress_of(*lines, line("FINALIZE"))
        assert progress.finalized and not progress.init_failure and not progress.init_fails_again
        assert progress.split_world(4) == ""


def test_a_run_whose_own_init_fails_is_reported_in_each_case() -> None:
    """Also where it is the second SCR_Init of the program, or the next run."""
    begins = [line("START", ranks=4), line("COMPUTE_START")]
    for lines in (REFUSED, [*begins, line("FINALIZE"), *REFUSED]):
        progress = progress_of(*lines)
        assert progress.init_fails_again and progress.init_failure == "no" and progress.split_world(4)
    progress = progress_of(*begins)
    progress.begin_run()
    for text in REFUSED:
        entry = Entry.of_line(text)
        assert entry
        progress.add(entry)
    assert progress.init_fails_again and progress.finalized is False
