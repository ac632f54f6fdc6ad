"""Commands for scripts that launch their program themselves; Slurm's commands are stand-ins."""

import json
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

import pytest

from jobs import environment_of, launcher_of
from stand_ins import put_on_path

Call = Callable[..., Tuple[int, str, str]]


@pytest.fixture
def slurm(cairn: Path, tmp_path: Path) -> Dict[str, str]:
    return {"PATH": f"{cairn.parent}:{put_on_path(tmp_path)}", "SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": "node[0-4]",
            "SCR_NODE_TESTS": "echo", "SCR_PREFIX": str(tmp_path)}


@pytest.fixture
def call(tmp_path: Path, slurm: Dict[str, str]) -> Call:
    def called(*words: str, **settings: str) -> Tuple[int, str, str]:
        done = subprocess.run(words, cwd=tmp_path, env=environment_of({**slurm, **settings}), text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stdout, done.stderr
    return called


def test_prerun_tells_what_the_program_needs(call: Call, tmp_path: Path) -> None:
    code, output, printed = call("scr_prerun", "-v", "-p", str(tmp_path), "--export")
    assert code == 0, printed
    lines = dict(line[len("export "):].split("=") for line in output.splitlines())
    assert lines["SCR_PREFIX"] == str(tmp_path) and lines["SCR_JOB_ID"] == "42"
    assert abs(int(lines["SCR_END_TIME"]) - time.time() - 3600) < 60
    assert json.loads(call("cairn", "prerun", "--json")[1])["SCR_JOB_ID"] == "42"
    assert call("scr_prerun") == (0, "", "") and (tmp_path / ".cairn").is_dir()


def test_prerun_where_there_is_no_folder(call: Call) -> None:
    code, output, printed = call("scr_prerun", "-p", "/no/such/folder")
    assert (code, output) == (1, "") and "/no/such/folder" in printed and "SCR_PREFIX" in printed


@pytest.mark.parametrize("arguments, code, output", [
    ([], 1, "node[1,3]\n"), (["node[0,2]"], 0, ""), (["node[0-1]"], 1, "node1\n"),
    (["-d", "node0", "node[0,2]"], 1, "node0\n"), (["-j", "srun", "-f", "-l", "-s", "1", "node[2-3]"], 1, "node3\n"),
    (["-r", "node1"], 1, "node1: slurm says: down*\n"), (["--json", "node1"], 1, '{\n  "node1": "slurm says: down*"\n}\n'),
    (["n[1"], 2, ""), (["--no-such-option"], 2, ""),
])
def test_nodes_that_are_down_are_listed(call: Call, tmp_path: Path, arguments: List[str], code: int, output: str) -> None:
    (tmp_path / "dead").write_text("node1\nnode3\n")
    assert call("scr_list_down_nodes", *arguments)[:2] == (code, output)


@pytest.mark.parametrize("options, logged", [
    ([], None), (["--log"], {"node1": None, "node3": None}), (["-l", "-s", "60"], {"node1": 60.0, "node3": 60.0}),
    (["--log", "--down", "node0,node1"], {"node3": None})])
def test_nodes_that_are_down_are_logged_if_that_is_asked_for(call: Call, tmp_path: Path, options: List[str],
                                                             logged: Optional[Dict[str, Optional[float]]]) -> None:
    """But not those that are down by the user's word."""
    (tmp_path / "dead").write_text("node1\nnode3\n")
    assert call("cairn", "down-nodes", "--json", *options)[0] == 1
    log = tmp_path / ".cairn" / "log.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert bool(lines) == (logged is not None)
    assert {line["note"].partition(": ")[0]: line.get("seconds") for line in lines} == (logged or {})
    assert {(line["event"], line["job"]) for line in lines} <= {("NODE_FAIL", "42")}
    assert all(line["note"].endswith(": slurm says: down*") for line in lines)


@pytest.mark.parametrize("arguments, settings, halt, code, reason", [
    ([], {}, [], 1, ""), (["--runs", "1", "-v"], {}, [], 1, ""), (["--runs", "0"], {}, [], 0, "0 of 0 allowed runs"),
    (["--down", "node[0-1]", "--min-nodes", "3"], {}, [], 1, ""),
    (["--down", "node[0-2]", "--min-nodes", "3"], {}, [], 0, "too few nodes: 2"),
    (["--down", "node1"], {}, [], 0, "too few nodes: 4"), (["--down", "node1"], {"SCR_MIN_NODES": "4"}, [], 1, ""),
    ([], {"SCR_HALT_SECONDS": "3601"}, [], 0, "TIME_LIMIT"), ([], {"SCR_HALT_SECONDS": "60"}, [], 1, ""),
    ([], {}, ["-c", "0"], 0, "NO_CHECKPOINTS_LEFT"), ([], {}, [], 1, ""), (["--down", "n[1"], {}, [], 2, ""),
    (["-p", "/no/such/folder"], {}, [], 2, ""),
])
def test_whether_to_stop(call: Call, arguments: List[str], settings: Dict[str, str], halt: List[str], code: int,
                         reason: str) -> None:
    if halt:
        assert call("scr_halt", *halt)[0] == 0
    returned, output, printed = call("scr_should_exit", *arguments, **settings)
    assert returned == code and output.startswith(reason) and bool(output) == bool(reason), (output, printed)
    if code < 2:
        answer = json.loads(call("scr_should_exit", "--json", *arguments, **settings)[1])
        assert answer["stop"] == (code == 0) and answer["reason"].startswith(reason)


def test_how_long_before_the_end_is_asked_of_the_halt_file_first(call: Call) -> None:
    """The allocation ends in an hour."""
    call("scr_halt", "-s", "3601")
    code, output, _ = call("scr_should_exit")
    assert code == 0 and output.startswith("TIME_LIMIT")
    call("scr_halt", "-s", "0")
    assert call("scr_should_exit", SCR_HALT_SECONDS="3601")[0] == 1


def test_a_signal_that_an_earlier_allocation_got_does_not_outlive_prerun(call: Call) -> None:
    """Its cairn run was killed before it could take that back."""
    call("scr_halt", "--reason", "SIGNAL_RECEIVED")
    assert call("scr_prerun")[0] == 0 and call("scr_should_exit") == (1, "", "")


def test_what_a_user_has_asked_for_outlives_prerun(call: Call) -> None:
    call("scr_halt")
    assert call("scr_prerun")[0] == 0
    code, output, _ = call("scr_should_exit")
    assert code == 0 and output.startswith("JOB_HALTED")


# The loop on the manual page. The job comes to its end in every other run.
SCRIPT = """
eval "$(scr_prerun --export)"
while scr_should_exit --down "$(scr_list_down_nodes)" --min-nodes 4; [ $? -eq 1 ]; do
  srun -n4 -N4 --nodelist=node0 ./my_job
done
"""
MY_JOB = """#!/bin/sh
echo $SCR_JOB_ID >> runs
[ $(($(wc -l < runs) % 2)) -ne 0 ] && exit 1
exec {heat} --size 1 --every 1 --steps 2
"""


def test_a_script_of_a_site(call: Call, tmp_path: Path, program_of: Dict[str, str], first_flavour: str) -> None:
    """The library's word on how its run has ended stops the loop of its own allocation, and not that of a later one."""
    (tmp_path / "my_job").write_text(MY_JOB.format(heat=f"{launcher_of(first_flavour)} -n 1 {program_of[first_flavour]}"))
    (tmp_path / "my_job").chmod(0o755)
    cache = str(tmp_path / "cache")
    for allocation in ("42", "43"):
        code, _, printed = call("sh", "-c", SCRIPT, SLURM_JOB_ID=allocation, SCR_NODE_NAME="n0", SCR_COPY_TYPE="SINGLE",
                             SCR_CACHE_BASE=cache, SCR_CNTL_BASE=cache)
        assert code == 0 and (tmp_path / "runs").read_text().split().count(allocation) == 2, printed


# --- what SCR's scripts print ---

def test_scr_env_prints_each_fact_that_is_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "dead").write_text("node1\nnode3\n")
    assert call("scr_env", "-u", "-j", SCR_USER_NAME="ann") == (0, "ann\n42\n", "")
    assert call("scr_env", "-j", "-u", SCR_USER_NAME="ann") == (0, "42\nann\n", ""), "in the order of the options"
    assert call("scr_env", "--nodes") == (0, "node[0-4]\n", "")
    assert call("scr_env", "-d", "-p", str(tmp_path)) == (0, "node[1,3]\n", "")
    assert abs(int(call("scr_env", "-e")[1]) - time.time() - 3600) < 60
    assert call("scr_env", "--endtime", SCR_END_TIME="1800000000")[1] == "1800000000\n"
    assert call("scr_env", "-r") == (0, "0\n", ""), "no run has worked here"
    assert json.loads(call("scr_env", SCR_USER_NAME="ann")[1])["user"] == "ann"


def test_scr_env_says_what_is_wrong(call: Call) -> None:
    assert call("scr_env", "--nosuch")[0] == 2
    code, output, printed = call("scr_env", "-u", "-p", "/no/such/folder")
    assert (code, output) == (1, "") and "/no/such/folder" in printed


def test_scr_list_dir_prints_the_bases_of_this_node(call: Call) -> None:
    settings = {"SCR_CACHE_BASE": "/ssd/%n", "SCR_CNTL_BASE": "/run/control", "SCR_NODE_NAME": "n7"}
    assert call("scr_list_dir", "--base", "control", **settings) == (0, "/run/control\n", "")
    assert call("scr_list_dir", "-b", "cache", **settings) == (0, "/ssd/n7\n", "")
    assert call("scr_list_dir")[0] == 2 and call("scr_list_dir", "other")[0] == 2


def test_scr_list_dir_of_a_job_that_has_not_run(call: Call, tmp_path: Path) -> None:
    code, output, printed = call("scr_list_dir", "cache")
    assert (code, output) == (1, "") and str(tmp_path) in printed and "--base" in printed


HOUR = """\
2026-11-20T17:00:00: host=n0, jobid=7, event=START, note="4 ranks on 2 nodes"
2026-11-20T17:01:40: host=n0, jobid=7, event=CHECKPOINT_END, to=/dev/shm, dset=1, name="ckpt.1", scheme=XOR, secs=4.000000
2026-11-20T17:01:46: host=n0, jobid=7, xfer=FLUSH_SYNC, from=/dev/shm, to=/p, dset=1, name="ckpt.1", secs=6.000000, bytes=7
2026-11-20T17:05:46: host=n0, jobid=7, xfer=FLUSH_SYNC, from=/dev/shm, to=/p, dset=2, name="output", secs=99.0, bytes=7
2026-11-20T17:10:00: host=n0, jobid=7, event=CHECKPOINT_END, dset=3, name="ckpt.3", secs=99.0, note="rank 1 has failed"
2026-11-20T17:16:40: host=n0, jobid=7, event=CHECKPOINT_END, to=/dev/shm, dset=4, name="ckpt.4", scheme=XOR, secs=4.000000
2026-11-20T18:00:00: host=n0, jobid=7, event=START, note="4 ranks on 2 nodes"
2026-11-20T18:16:40: host=n0, jobid=7, event=FINALIZE
"""


def test_the_interval_between_checkpoints_follows_from_the_log(call: Call, tmp_path: Path) -> None:
    """Two runs of 1000 s, and checkpoints of 7 s: by Young sqrt(2 * 7 * 1000), by Daly 113.7."""
    (tmp_path / ".cairn").mkdir()
    (tmp_path / ".cairn" / "log").write_text(HOUR)
    assert call("scr_ckpt_interval") == (0, "113\n", "")
    assert call("scr_ckpt_interval", "--model", "young", "--prefix", str(tmp_path)) == (0, "118\n", "")
    assert call("scr_ckpt_interval", "--percent", "--logfile", str(tmp_path / ".cairn" / "log"))[1] == "6.157\n"
    printed = json.loads(call("scr_ckpt_interval", "--json")[1])
    assert printed["mean_time_to_interrupt_s"] == 1000 and printed["checkpoint_cost_s"] == 7 and printed["starts"] == 2
    assert "interval_s: 113.701" in call("scr_ckpt_interval", "--stats")[1]


def test_the_log_for_programs_goes_before_the_one_for_people(call: Call, tmp_path: Path) -> None:
    (tmp_path / ".cairn").mkdir()
    (tmp_path / ".cairn" / "log").write_text(HOUR)
    (tmp_path / ".cairn" / "log.json").write_text("".join(json.dumps(one) + "\n" for one in (
        {"time_us": 0, "event": "START"}, {"time_us": 10**9, "event": "CHECKPOINT_END", "name": "a", "seconds": 4000.0})))
    assert call("scr_ckpt_interval") == (0, "1000\n", ""), "a checkpoint that costs more than twice a run"


@pytest.mark.parametrize("log", ["", "no log\n", HOUR.splitlines()[0] + "\n"])
def test_without_a_finished_checkpoint_there_is_no_interval(call: Call, tmp_path: Path, log: str) -> None:
    """SCR_CHECKPOINT_SECONDS=$(scr_ckpt_interval) must not be a number that nothing has measured."""
    if log:
        (tmp_path / ".cairn").mkdir()
        (tmp_path / ".cairn" / "log").write_text(log)
    code, output, printed = call("scr_ckpt_interval")
    assert (code, output) == (1, "") and ".cairn/log" in printed
    assert call("scr_ckpt_interval", "--percent")[:2] == (1, "10.0\n")
