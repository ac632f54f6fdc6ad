"""What job control itself adds to the log of a job; and that nothing waits for it."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest

from cairn import event_log
from cairn.event_log import EventLog
from cairn.job_log import FROM_OUTSIDE
from jobs import NODES, Job, heat, shell_job

LOGS = {"SCR_LOG_ENABLE": "1", "SCR_LOG_SYSLOG_ENABLE": "0"}


def in_json(folder: Path) -> List[Dict[str, Any]]:
    """What job control has printed, in its order."""
    lines = [json.loads(line) for line in (folder / ".cairn" / "log.json").read_text().splitlines()]
    return [line for line in lines if line.get("event") in FROM_OUTSIDE]


def notes(folder: Path) -> List[str]:
    return [f"{one['event']} {one['note']}" for one in in_json(folder)]


def test_runs_and_lost_nodes_are_reported_in_both_logs(cairn: Path, tmp_path: Path, first_flavour: str,
                                                   program_of: Dict[str, str]) -> None:
    done = heat(cairn, tmp_path, first_flavour, program_of, [*NODES, "--runs", "2", "--kill-node", "n2@checkpoint:2"], 40,
                settings=LOGS).wait()
    assert done.code == 0, done
    printed = in_json(tmp_path)
    assert [one["event"] for one in printed] == [
        "RUN_START", "NODE_FAIL", "RUN_END", "RUN_START", "RUN_END", "SCAVENGE_START", "SCAVENGE_END"]
    assert printed[0]["note"] == "run 1 on 4 nodes: n0,n1,n2,n3" and printed[1]["note"].startswith("n2: ")
    assert printed[2]["note"].startswith("run 1: ") and "lost n2" in printed[2]["note"] and printed[2]["seconds"] > 0
    assert printed[3]["note"] == f"run 2 on 4 nodes: n0,n1,n4,n3 ({printed[2]['note'][len('run 1: '):]})"
    assert printed[4]["note"] == "run 2: exit 0" and printed[6]["seconds"] >= 0
    assert {one["job"] for one in printed} == {"local"}
    text = [line for line in (tmp_path / ".cairn" / "log").read_text().splitlines()
            if any(f"event={event}," in line for event in FROM_OUTSIDE)]
    assert [line.partition("event=")[2].partition(",")[0] for line in text] == [one["event"] for one in printed]
    assert f'jobid=local, event=NODE_FAIL, note={json.dumps(printed[1]["note"])}' in text[1]


def test_each_launch_that_dies_has_its_end(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    done = shell_job(cairn, tmp_path, mpirun, "exit 7", "--runs", "2", "--no-scavenge", "--spares", "1", "--exclude", "n1",
                     "--json", str(tmp_path / "account.json"))
    assert done.code == 4, done
    account = json.loads((tmp_path / "account.json").read_text())
    assert f"{account['outcome']}: {account['reason']}" in done.printed
    assert [run["how"] for run in account["runs"]] == ["exit 7", "exit 7"]
    assert notes(tmp_path) == ["RUN_START run 1 on 2 nodes: n0,n2", "RUN_END run 1: exit 7",
                               "RUN_START run 2 on 2 nodes: n0,n2 (exit 7)", "RUN_END run 2: exit 7"], \
        "a node that the user leaves out has not failed"


def test_a_launcher_that_cannot_be_started_has_its_end_too(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    Path(mpirun).write_text("#!/nowhere\n")
    done = shell_job(cairn, tmp_path, mpirun, "exit 0", "--no-scavenge", "--runs", "2")
    assert "cannot be started" in done.printed, done
    printed = in_json(tmp_path)
    assert [one["event"] for one in printed] == ["RUN_START", "RUN_END"] and 0 <= printed[1]["seconds"] < 10, done
    assert re.search(r"time lost +[\d.]+ m?s ", done.printed), "not since 1970"


def test_a_run_has_its_end_also_where_cairn_run_is_killed(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    """And its launcher with it."""
    job = Job(cairn, tmp_path, ["--nodes", "2"], [mpirun, "-n", "2", "sh", "-c", "echo $PPID > launcher; exec sleep 600"])
    job.until(lambda: (tmp_path / "launcher").exists() and len(in_json(tmp_path)) == 1)
    job.send(signal.SIGKILL)
    end = time.monotonic() + 10
    while len(in_json(tmp_path)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    job.wait()
    started, ended = in_json(tmp_path)
    assert (ended["event"], ended["note"]) == ("RUN_END", "run 1: cairn run was killed"), ended
    assert ended["job"] == started["job"] and 0 < ended["seconds"] < 10


def test_what_job_control_tells_is_no_sign_of_life_of_the_program(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    entry = '{\\"event\\":\\"NODE_FAIL\\",\\"time_us\\":$i,\\"job\\":\\"$SCR_JOB_ID\\",\\"note\\":\\"n9: off\\"}'
    script = f'for i in $(seq 40); do echo "{entry}" >> "$SCR_PREFIX/.cairn/log.json"; sleep 0.1; done'
    done = shell_job(cairn, tmp_path, mpirun, script, "--hung-after", "1", "--no-scavenge")
    assert done.code == 4 and "died: hung" in done.printed, done


@pytest.mark.parametrize("settings", [{"CAIRN_LOG_JSON": "0"}, {"SCR_ENABLE": "0"}])
def test_where_no_log_is_wanted_there_is_none(cairn: Path, tmp_path: Path, mpirun: str,
                                              settings: Dict[str, str]) -> None:
    done = shell_job(cairn, tmp_path, mpirun, "exit 0", settings=settings)
    assert done.code == 0 and "lacks" not in done.printed and not list((tmp_path / ".cairn").glob("log*")), done


def test_a_log_that_cannot_be_written_is_reported_and_ends_nothing(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    (tmp_path / ".cairn" / "log.json").mkdir(parents=True)
    done = shell_job(cairn, tmp_path, mpirun, "exit 0")
    assert done.code == 0 and done.printed.count("cannot write some lines to the log") == 1, done


# ---- the pipe to the native command ----


class Writer(NamedTuple):
    """In place of the native part."""

    path: Path
    prefix: str


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    """Its script keeps what it reads."""
    path = tmp_path / "cairn"
    path.write_text('#!/bin/sh\nexec cat > "$3/kept"\n')
    path.chmod(0o755)
    return Writer(path, str(tmp_path))


LARGE = "n0," * 100_000  # more than a pipe takes


def test_a_line_that_no_pipe_takes_at_once_comes_whole_and_in_its_order(writer: Writer, tmp_path: Path) -> None:
    said: List[str] = []
    with EventLog(writer, {}, said.append) as events:  # type: ignore[arg-type]
        events.happened("RUN_START", LARGE)
        events.happened("RUN_END", "exit 0", 2.5)
    assert [json.loads(line) for line in (tmp_path / "kept").read_text().splitlines()] == [
        {"event": "RUN_START", "note": LARGE}, {"event": "RUN_END", "note": "exit 0", "seconds": 2.5}]
    assert said == []


def test_a_prefix_directory_that_is_away_keeps_nobody_waiting(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "PATIENCE_S", 0.5)
    writer.path.write_text("#!/bin/sh\nexec sleep 60\n")
    said: List[str] = []
    begin = time.monotonic()
    with EventLog(writer, {}, said.append) as events:  # type: ignore[arg-type]
        for _ in range(3):
            events.happened("RUN_START", LARGE)
        assert time.monotonic() - begin < 0.4
    assert time.monotonic() - begin < 5 and len(said) == 1 and "within 0.5 s" in said[0]


@pytest.mark.parametrize("script, printed", [("exit 0", []), ("exec cat > /dev/null", []), (None, ["lacks lines"]),
                                          ("cat > /dev/null; echo first >&2; echo the disk is full >&2", ["is full"])])
def test_what_is_wrong_is_reported_once_and_nothing_else(writer: Writer, script: "str | None", printed: List[str]) -> None:
    """Also where the command ends at once, as no log is wanted."""
    if script is None:
        writer.path.unlink()
    else:
        writer.path.write_text(f"#!/bin/sh\n{script}\n")
    said: List[str] = []
    with EventLog(writer, {}, said.append) as events:  # type: ignore[arg-type]
        for _ in range(3):
            events.happened("RUN_START", LARGE)
            time.sleep(0.1)
    assert len(said) == len(printed) and all(words in line for words, line in zip(printed, said)), said
