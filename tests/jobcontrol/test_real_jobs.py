"""Real jobs of a few seconds: processes die, and the job goes on by itself."""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cairn.account import account_of_json
from cairn.commands import run
from conftest import Undisturbed
from jobs import HEAT, NODES, Job, Outcome, environment_of, fields, heat, launcher_of, said_on_terminal, shell_job


def leftovers(folder: Path) -> List[int]:
    """Processes that still have this folder as their working folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_dead = " Z " in (entry / "stat").read_text() if entry.name.isdigit() else True
            if not is_dead and Path(os.readlink(entry / "cwd")) == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_node_dies_and_the_job_goes_on(cairn: Path, tmp_path: Path, flavour: str,
                                         program_of: Dict[str, str], undisturbed: Undisturbed) -> None:
    done = heat(cairn, tmp_path, flavour, program_of,
                [*NODES, "--runs", "2", "--kill-node", "n2@checkpoint:2"], 100).wait()
    assert done.code == 0, done
    assert len(done.steps("start")) == 2 and 8 <= done.steps("start")[1] < 100, done
    assert done.steps("end") == [100]
    assert "run 2 on 4 nodes: n0,n1,n4,n3" in done.printed, "the spare takes the place of the lost node"
    assert "2, of which 1 died" in done.printed and "1 restart" in done.printed, done.printed
    assert fields(tmp_path / "result") == undisturbed(flavour)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("when", ["checkpoint:1", "2"])
def test_without_spares_the_job_is_given_up(cairn: Path, tmp_path: Path, first_flavour: str,
                                            program_of: Dict[str, str], when: str) -> None:
    done = heat(cairn, tmp_path, first_flavour, program_of,
                ["--nodes", "4", "--runs", "-1", "--kill-node", f"n1@{when}"], 1000000,
                settings={"TOKEN": "sesame"}).wait()
    assert done.code == 4, done
    records = [path.read_bytes() for path in (tmp_path / ".cairn").rglob("*") if path.is_file()]
    last = b"CHECKPOINT_END" if when.startswith("checkpoint") else b"RUN_START"  # a slow job has no checkpoint after 2 s
    assert any(last in record for record in records), "the log for programs is there"
    assert not any(b"sesame" in record for record in records)
    assert "too few nodes: 3 left" in done.printed
    assert leftovers(tmp_path) == []


def test_what_the_user_has_halted_is_not_started(cairn: Path, tmp_path: Path, first_flavour: str,
                                                 program_of: Dict[str, str]) -> None:
    subprocess.run([cairn, "halt", "-p", tmp_path], check=True, stdout=subprocess.DEVNULL, timeout=30,
                   env=environment_of())
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, 4).wait()
    assert done.code == 3 and done.output == "" and "cairn halt --remove" in done.printed
    assert "JOB_HALTED" in subprocess.run([cairn, "halt", "--list", "-p", tmp_path], check=True, text=True, timeout=30,
                                          stdout=subprocess.PIPE, env=environment_of()).stdout


@pytest.mark.parametrize("halt_exit, code, words", [("0", 0, "finished by itself"), ("1", 3, "halted: JOB_HALTED")])
def test_a_program_that_does_not_ask_whether_to_stop_is_not_called_halted(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str], halt_exit: str, code: int,
        words: str) -> None:
    """The first example does not. It is asked to stop just before SCR_Init."""
    program = Path(program_of[first_flavour]).with_name("1_first_program")
    script = f"{cairn} halt -p . > /dev/null && exec {program}"
    done = Job(cairn, tmp_path, ["--nodes", "1"], [launcher_of(first_flavour), "-n", "1", "sh", "-c", script],
               {"SCR_HALT_EXIT": halt_exit}).wait()
    assert done.code == code and words in done.printed and ("step 100" in done.output) == (code == 0), done
    assert "cairn halt --remove" in done.printed, "the request still stands"


# From the second run on the log takes no more lines.
SPOILS_LOG = """
if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = 0 ]; then
  [ -e begun ] && rm -f .cairn/log.json && mkdir -p .cairn/log.json
  touch begun
fi
exec "$@"
"""


def test_a_run_whose_log_cannot_be_written_comes_to_its_end(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    command = [launcher_of(first_flavour), "-n", "4", "sh", "-c", SPOILS_LOG, "sh", program_of[first_flavour], *HEAT,
               "--steps", "100"]
    done = Job(cairn, tmp_path, [*NODES, "--runs", "2", "--kill-node", "n2@checkpoint:2"], command).wait()
    assert (tmp_path / ".cairn" / "log.json").is_dir() and set(done.steps("end")) == {100}, done
    assert done.code == 0 and "success" in done.printed, done


def test_a_silence_that_no_node_can_keep_is_refused(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    done = shell_job(cairn, tmp_path, mpirun, "exit 0", "--silence", "0.9")
    assert done.code == 2 and "--silence must be 1 s or more" in done.printed, done
    assert shell_job(cairn, tmp_path, mpirun, "exit 0", "--silence", "30").code == 0


def test_a_program_that_always_dies_is_given_up(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    done = shell_job(cairn, tmp_path, mpirun, "exit 7", "--runs", "-1")
    assert done.code == 4 and "3 runs in a row" in done.printed, done
    assert done.printed.count(" died: exit") == 3


def test_a_program_that_has_called_scr_init_has_not_come_to_its_end_before_it_calls_scr_finalize(
        cairn: Path, tmp_path: Path, mpirun: str) -> None:
    """srun may return 0 though a node has died, also before SCR_Init. Of the first run nobody knows whether it would call
    that; of a second one, after a first that did, it is known."""
    line = '{"event":"START","time_us":1,"job":"\'$SCR_JOB_ID\'"}'
    calls_init_and_dies = f"mkdir -p .cairn; echo '{line}' >> .cairn/log.json; exit 7"
    script = f"grep -q '\"START\"' .cairn/log.json && exit 0; {calls_init_and_dies}"
    done = shell_job(cairn, tmp_path, mpirun, script, "--runs", "2")
    assert done.code == 4 and "run 2 died: exit 0 without SCR_Finalize" in done.printed, done
    assert shell_job(cairn, tmp_path, mpirun, "exit 0").code == 0, "a program that does not use the library"


def test_runs_are_limited(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    once = shell_job(cairn, tmp_path, mpirun, "exit 7")
    assert once.code == 4 and "1 of 1 allowed runs" in once.printed, once


def test_a_hung_run_is_ended_with_all_its_processes(cairn: Path, tmp_path: Path, first_flavour: str) -> None:
    done = shell_job(cairn, tmp_path, launcher_of(first_flavour), "sleep 600", "--hung-after", "0.5")
    assert done.code == 4 and "died: hung" in done.printed, done
    assert leftovers(tmp_path) == []


def test_a_run_is_not_hung_because_a_node_has_another_clock(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    """What it tells comes every 0.4 s, by its clock in 1970, for longer than may pass without a word."""
    printed = '{\\"event\\":\\"CHECKPOINT_START\\",\\"time_us\\":$i,\\"job\\":\\"$SCR_JOB_ID\\"}'
    script = f'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "{printed}" >> "$SCR_PREFIX/.cairn/log.json"; sleep 0.4; done'
    done = shell_job(cairn, tmp_path, mpirun, script, "--hung-after", "3")
    assert (tmp_path / ".cairn" / "log.json").read_text().count("CHECKPOINT_START") == 12 and done.code == 0, done


def test_times_are_those_of_the_clock_that_the_account_is_read_by(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    """That of the node that writes the log is an hour ahead in the first run, and an hour behind in the second."""
    entry = '{\\"event\\":\\"$1\\",\\"time_us\\":$2,\\"job\\":\\"$SCR_JOB_ID\\",\\"dataset\\":$3,\\"name\\":\\"a\\"}'
    tell = f'tell() {{ echo "{entry}" >> "$SCR_PREFIX/.cairn/log.json"; sleep 0.3; }}; now=$(($(date +%s) * 1000000))'
    script = (f"{tell}; if [ -e begun ]; then tell RESTART_SUCCESS $((now - 3600000000)) 1; exit 0; fi; touch begun; "
              "tell COMPUTE_START $((now + 3600000000)) 0; tell CHECKPOINT_END $((now + 3600000000)) 1; exit 7")
    done = shell_job(cairn, tmp_path, mpirun, script, "--runs", "2")
    first, second = json.loads((tmp_path / ".cairn" / "run.json").read_text())["runs"]
    assert done.code == 0 and first["failed"], done
    assert first["begun_s"] <= first["computing_s"] < first["newest_s"] <= first["ended_s"], first
    assert second["begun_s"] <= second["computing_s"] <= second["ended_s"], second


def test_nothing_goes_on_when_cairn_run_is_killed(cairn: Path, tmp_path: Path, flavour: str,
                                                  program_of: Dict[str, str]) -> None:
    """Else the next one would start a second program beside it."""
    job = heat(cairn, tmp_path, flavour, program_of, [*NODES, "--storage", str(tmp_path / "storage")], 10**6)
    job.until_halted("CHECKPOINT_END")
    assert len(leftovers(tmp_path)) > 4
    job.send(signal.SIGKILL)
    end = time.monotonic() + 10
    while leftovers(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    left = leftovers(tmp_path)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    job.wait()
    again = heat(cairn, tmp_path, flavour, program_of, [*NODES, "--storage", str(tmp_path / "storage")], 8).wait()
    assert again.code == 0 and again.steps("start") != [0], "and the next one goes on"


def test_a_launcher_that_does_not_heed_sigterm_is_killed_when_cairn_run_was(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    job = Job(cairn, tmp_path, ["--nodes", "2"],
              [mpirun, "-n", "2", "sh", "-c", "trap '' TERM; touch begun; while :; do sleep 0.1; done"])
    while not (tmp_path / "begun").exists():
        pass
    job.send(signal.SIGKILL)
    time.sleep(0.5)
    assert leftovers(tmp_path), "it does not heed it"
    end = time.monotonic() + 10
    while leftovers(tmp_path):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_launcher_that_waits_for_a_node_that_is_gone_is_not_waited_for(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    script = "[ -e begun ] && exit 0; touch begun; trap '' TERM; while :; do sleep 0.1; done"
    done = shell_job(cairn, tmp_path, mpirun, script, "--spares", "1", "--runs", "2", "--kill-node", "n1@0.5")
    first, _ = json.loads((tmp_path / ".cairn" / "run.json").read_text())["runs"]
    assert done.code == 0 and list(first["nodes_lost"]) == ["n1"], done
    assert 1 <= first["ended_s"] - first["noticed_s"] < 5, "and not the 5 s that a launcher gets otherwise"
    assert leftovers(tmp_path) == []


def test_the_restart_command_gets_the_name_of_the_checkpoint(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    heat_words = f"{program_of[first_flavour]} --size 1 --every 4 --steps"
    marks = ["sh", "-c", 'echo "$1" >> names; shift; exec "$@"', "mark"]
    run_cmd = [*marks, "none", *f"{heat_words} 400".split()]
    restart_cmd = [*marks, "SCR_CKPT_NAME", *f"{heat_words} 8".split()]
    job = Job(cairn, tmp_path, [*NODES, "--runs", "2", "--kill-node", "n0@checkpoint:1"],
              [launcher_of(first_flavour), "-n", "4", "--run-cmd", shlex.join(run_cmd),
               "-rs=" + shlex.join(restart_cmd)])
    done = job.wait()
    assert done.code == 0, done
    names = (tmp_path / "names").read_text().split()
    assert names[:4] == ["none"] * 4 and len(set(names[4:])) == 1 and names[4].startswith("step."), names


def test_the_restart_command_gets_the_name_of_an_older_checkpoint_where_the_newest_is_lost(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """XOR does not hold the loss of two nodes; each third checkpoint is in the prefix directory."""
    marks = ["sh", "-c", 'echo "$1" >> names; shift; exec "$@"', "mark"]
    heat_words = [program_of[first_flavour], "--size", "1", "--every", "4", "--steps"]
    done = Job(cairn, tmp_path, ["--nodes", "4", "--spares", "2", "--runs", "2", "--kill-node", "n0@checkpoint:4",
                                 "--kill-node", "n1@checkpoint:4"],
               [launcher_of(first_flavour), "-n", "4", "--run-cmd", shlex.join([*marks, "none", *heat_words, "400"]),
                "--restart-cmd", shlex.join([*marks, "SCR_CKPT_NAME", *heat_words, "100"])],
               {"SCR_FLUSH": "3"}).wait()
    assert done.code == 0, done
    names = (tmp_path / "names").read_text().split()
    began = done.steps("start")[1]
    assert began > 0 and names[4:] == [f"step.{began}"] * 4, (names, done)


def test_a_run_from_scratch_is_loud_and_its_computing_is_lost(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """XOR does not survive the loss of two nodes, and the prefix directory has nothing."""
    done = heat(cairn, tmp_path, first_flavour, program_of,
                ["--nodes", "4", "--spares", "2", "--runs", "2", "--kill-node", "n1@checkpoint:4",
                 "--kill-node", "n2@checkpoint:4"], 100).wait()
    assert done.code == 0 and done.steps("start") == [0, 0], done
    assert "THE RUN STARTS FROM SCRATCH" in done.printed, done
    summary = done.printed[done.printed.index("cairn run: success"):]
    assert "FROM SCRATCH run 2 began from scratch" in summary and "cannot be restored" in summary, done
    account = json.loads((tmp_path / ".cairn" / "run.json").read_text())
    first, second = account["runs"]
    computed_s = first["ended_s"] - first["computing_s"]
    lost_s = account_of_json(account).lost_s(second["ended_s"])
    assert lost_s == pytest.approx(second["computing_s"] - first["computing_s"]) and lost_s > computed_s > 0, account
    status = subprocess.run([str(cairn), "status", "-p", str(tmp_path)], env=environment_of(), text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    assert "run 2 BEGAN FROM SCRATCH" in status, status


def test_a_run_from_scratch_is_loud_also_where_no_node_has_anything_left(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    done = heat(cairn, tmp_path, first_flavour, program_of,
                ["--nodes", "2", "--spares", "2", "--runs", "2", "--kill-node", "n0@checkpoint:2",
                 "--kill-node", "n1@checkpoint:2"], 40).wait()
    assert done.code == 0 and done.steps("start") == [0, 0], done
    assert "run 2 BEGINS FROM SCRATCH" in done.printed and "FROM SCRATCH run 2" in done.printed, done


def test_a_program_that_makes_no_checkpoint_is_advised_what_to_set(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """It asks SCR_Need_checkpoint, which says no as long as nothing is set."""
    command = [launcher_of(first_flavour), "-n", "4", program_of[first_flavour], "--size", "1", "--steps", "8",
               "--every", "0", "--output", str(tmp_path / "result")]
    done = Job(cairn, tmp_path, [*NODES, "--kill-node", "n1@checkpoint:3"], command).wait()
    summary = done.printed[done.printed.index("cairn run: success"):]
    assert done.code == 0 and "SCR_CHECKPOINT_INTERVAL" in summary, done
    assert "n1@checkpoint:3 did nothing" in summary, done


@pytest.mark.parametrize("settings, says", [({}, True), ({"CAIRN_LOG_JSON": "0"}, False), ({"SCR_ENABLE": "0"}, False)])
def test_a_program_that_never_calls_the_library_is_advised_what_it_lacks(cairn: Path, tmp_path: Path, mpirun: str,
                                                                     settings: Dict[str, str], says: bool) -> None:
    """Where nothing is logged, nobody knows whether it does."""
    done = shell_job(cairn, tmp_path, mpirun, "true", settings=settings)
    assert done.code == 0 and ("did not call SCR_Init" in done.printed) == says, done


def test_nothing_of_the_environment_is_reported(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    settings = {"SCR_LOG_DB_PASS": "sesame-1", "MY_TOKEN": "sesame-2"}
    job = Job(cairn, tmp_path, ["--nodes", "2"],
              [mpirun, "-n", "2", "sh", "-c", "exit 1", "--password=sesame-3"], settings)
    done = job.wait()
    printed = done.printed + done.output + (tmp_path / ".cairn" / "run.json").read_text()
    assert done.code == 4 and "sesame" not in printed, printed


@pytest.mark.parametrize("options, words, printed", [
    ([], ["TOKEN=sesame-1", "srun", "x"], '"TOKEN=" is not a launcher'),
    ([], ["mpirun", "--site-token", "sesame-2", "./job"], "write --site-token=VALUE"),
    ([], ["mpirun", "-n", "2", "--mca", "sesame-3"], "--mca has too few words"),
    (["--site-token=sesame-4"], ["mpirun", "-n", "2", "./job"], ": --site-token;"),
    (["-Xsesame-5"], ["mpirun", "-n", "2", "./job"], ": -X;"),
    (["--s=sesame-6"], ["mpirun", "-n", "2", "./job"], ": --s;"),
    (["--no-scavenge=sesame-7"], ["mpirun", "-n", "2", "./job"], "--no-scavenge: ignored explicit argument ...;"),
    (["--nodes=it's \"sesame-8"], ["mpirun", "-n", "2", "./job"], "--nodes: invalid int value: ...;"),
    (["-hsesame-9"], ["mpirun", "-n", "2", "./job"], "ignored explicit argument ...;"),
])
def test_nothing_of_a_command_that_is_refused_is_reported_but_options(cairn: Path, tmp_path: Path, mpirun: str, options: List[str],
                                                                  words: List[str], printed: str) -> None:
    done = Job(cairn, tmp_path, options, [mpirun if word == "mpirun" else word for word in words]).wait()
    assert done.code == 2 and printed in done.printed and "sesame" not in done.printed + done.output, done


def test_an_option_that_may_be_several_is_reported_without_its_value(capsys: pytest.CaptureFixture) -> None:
    """argparse quotes nothing there."""
    with pytest.raises(SystemExit):
        run.parser().error("ambiguous option: -r=sesame could match -rc, -rs")
    assert ": -r... could match -rc, -rs;" in capsys.readouterr().err


def test_one_job_to_a_prefix_directory(cairn: Path, tmp_path: Path, mpirun: str) -> None:
    words = [mpirun, "-n", "1", "sh", "-c", "touch begun; sleep 600"]
    first = Job(cairn, tmp_path, ["--nodes", "1"], words)
    while not (tmp_path / "begun").exists():
        pass
    second = Job(cairn, tmp_path, ["--nodes", "1"], words).wait()
    assert second.code == 1 and "another cairn run" in second.printed
    first.send(signal.SIGHUP)
    assert first.wait().code == 3
    assert json.loads((tmp_path / ".cairn" / "run.json").read_text())["alive"] is False


@pytest.mark.parametrize("options, words, code, printed", [
    ([], [], 2, "no launcher"), ([], ["aprun", "x"], 2, "is not a launcher that cairn run knows"),
    (["--spares", "1"], ["mpirun", "-n", "1", "x"], 2, "--nodes"),
    (["--nodes", "2", "--kill-node", "n7@1"], ["mpirun", "-n", "1", "x"], 2, "the nodes are n0, n1"),
    (["--nodes", "2", "--kill-node", "n1@soon"], ["mpirun", "-n", "1", "x"], 2, "soon"),
    (["--nodes", "2"], ["mpirun", "x"], 2, "number of ranks"),
    (["--manager", "x"], ["mpirun", "x"], 2, "slurm"), ([], ["mpirun", "-n"], 2, "the last word"),
    (["--nodes", "2", "-rs", "it's"], ["mpirun", "-n", "1", "x"], 2, "--restart-cmd: "),
    (["--prefix", "/no/such/folder"], ["mpirun", "x"], 1, "SCR_PREFIX"),
])
def test_what_is_wrong_is_named(cairn: Path, tmp_path: Path, options: List[str], words: List[str], code: int,
                                printed: str) -> None:
    done = Job(cairn, tmp_path, options, words).wait()
    assert done.code == code and printed in done.printed, done


@pytest.mark.usefixtures("first_flavour")
def test_the_demo_shows_what_it_says(cairn: Path) -> None:
    demo = Path(__file__).parents[2] / "examples" / "demo" / "demo.py"
    running = subprocess.Popen([sys.executable, demo, "--build", cairn.parents[2], "--size", "1"], text=True,
                               env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        printed = running.communicate(timeout=180)[0]
    except subprocess.TimeoutExpired:
        running.terminate()  # it ends what it has started
        printed = running.communicate()[0]
    assert running.returncode == 0 and "identical: yes" in printed, printed


# ---- what only the nodes have is saved ----

LOSE = ["--nodes", "4", "--kill-node"]  # no spare, and SCR_FLUSH=0: the newest checkpoint is in the caches only


def listed(cairn: Path, prefix: Path) -> List[Dict[str, Any]]:
    printed = subprocess.run([cairn, "index", "list", "--json", "-p", prefix], check=True, timeout=30, text=True,
                          stdout=subprocess.PIPE, env=environment_of()).stdout
    found: List[Dict[str, Any]] = json.loads(printed)["datasets"]
    return found


def test_a_job_that_loses_all_its_nodes_later_goes_on_from_what_was_scavenged(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str],
        undisturbed: Undisturbed) -> None:
    died = heat(cairn, tmp_path, first_flavour, program_of, [*LOSE, "n2@checkpoint:2"], 100000).wait()
    assert died.code == 4, died
    assert re.search(r"scavenge     (step\.\d+ failed; )?step\.\d+ saved", died.printed), died.printed
    saved = int(re.findall(r"step\.(\d+) saved", died.printed)[0])
    assert 4 <= saved < 100
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100).wait()  # its nodes have nothing
    assert done.code == 0 and done.steps("start") == [saved], done
    assert fields(tmp_path / "result") == undisturbed(first_flavour)


def test_more_losses_than_the_scheme_holds_are_reported_and_nothing_is_published(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n1@checkpoint:2", "--kill-node", "n2@checkpoint:2"], 100000).wait()
    assert died.code == 4 and "could not be saved" in died.printed and " saved" not in died.printed.split("scavenge     ")[1], died
    assert "1, 2" in died.printed or "rank 1" in died.printed, "the ranks that are missing"
    assert listed(cairn, tmp_path) == []


def test_a_scavenge_by_hand_that_is_cut_off_is_ended_by_the_next(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    storage = tmp_path / "storage"
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n1@checkpoint:2", "--no-scavenge", "--storage", str(storage)], 100000).wait()
    assert died.code == 4 and "scavenge" not in died.printed
    command = [str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage), "--json"]
    for seconds in (0.3, 0.6):
        cut = subprocess.Popen(command, env=environment_of(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        cut.send_signal(signal.SIGKILL)
        cut.wait()
    for _ in range(2):
        # What the killed ones have started may go on for a moment.
        end = time.monotonic() + 20
        while True:
            done = subprocess.run(command, env=environment_of(), text=True, timeout=60, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode != 75 or time.monotonic() > end:
                break
        assert done.returncode == 0, done
    assert "a restart will use step." in done.stderr and json.loads(done.stdout)["verdict"] == "nothing to save", done


def test_what_was_scavenged_and_not_made_whole_is_where_the_next_run_begins(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str],
        undisturbed: Undisturbed) -> None:
    """The allocation may have ended between the two. Where it cannot be made whole now, the job goes on without."""
    storage = tmp_path / "storage"
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n2@checkpoint:2", "--no-scavenge", "--storage", str(storage)], 100000).wait()
    assert died.code == 4, died
    command = [str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage), "--no-rebuild"]
    subprocess.run(command, env=environment_of(), timeout=60, check=True)
    assert listed(cairn, tmp_path) == []
    with (tmp_path / ".cairn" / "scavenged" / "n0" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as one that scavenges has it
        without = heat(cairn, tmp_path, first_flavour, program_of, NODES, 2).wait()
    assert without.code == 0 and without.steps("start") == [0], without
    assert "cannot be published now: " in without.printed and "; cairn rebuild tries" in without.printed, without.printed
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100).wait()  # its nodes have nothing
    saved = re.findall(r"step\.(\d+) \(dataset \d+\) is now in the prefix directory", done.printed)
    assert done.code == 0 and saved and done.steps("start") == [int(saved[-1])], done
    assert fields(tmp_path / "result") == undisturbed(first_flavour)
    off = heat(cairn, tmp_path, first_flavour, program_of, NODES, 1, "off", {"SCR_ENABLE": "0"}).wait()
    assert off.code == 0 and "scavenged" not in off.printed, off


def test_what_a_killed_cairn_run_had_scavenged_is_where_the_next_one_begins(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """It has not logged its end, nor has its program, which dies with it."""
    storage = tmp_path / "storage"
    killed = heat(cairn, tmp_path, first_flavour, program_of, ["--nodes", "4", "--storage", str(storage)], 100000)
    killed.until_halted("CHECKPOINT_END", 2)
    killed.send(signal.SIGKILL)
    killed.wait()
    command = [str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage), "--no-rebuild"]
    end, code = time.monotonic() + 60, 75
    while code == 75 and time.monotonic() < end:  # the ranks still live
        code = subprocess.run(command, env=environment_of(), timeout=60, check=False).returncode
    assert code == 0
    assert listed(cairn, tmp_path) == []
    following = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100000)
    following.until_halted("RESTART_SUCCESS")
    following.send(signal.SIGHUP)
    done = following.wait()
    saved = re.findall(r"step\.(\d+) \(dataset \d+\) is now in the prefix directory", done.printed)
    assert saved and done.steps("start") == [int(saved[-1])], done


def test_two_scavenges_at_once_bring_what_one_does(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str],
        undisturbed: Undisturbed) -> None:
    """Where one is in the other's way it ends with 75, and is given again."""
    storage = tmp_path / "storage"
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n1@checkpoint:2", "--no-scavenge", "--storage", str(storage)], 100000).wait()
    assert died.code == 4, died
    # Slower than one waits for the other.
    settings = {"CAIRN_FLUSH_BANDWIDTH": "300KB"}
    command = [str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage)]

    def started() -> "subprocess.Popen[str]":
        return subprocess.Popen(command, env=environment_of(settings), text=True, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
    first, printed, end = started(), "", time.monotonic() + 60
    while not all(at_work_on(node, tmp_path) for node in ("n0", "n2", "n3")):
        assert first.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    open_ones = [started(), first]
    codes: List[int] = []
    while open_ones:
        one = open_ones.pop(0)
        printed += one.communicate(timeout=90)[1]
        codes.append(one.returncode)
        if one.returncode == 75:
            assert time.monotonic() < end, printed
            open_ones.append(started())
    assert codes[0] == 75 and "is not saved yet" in printed, (codes, printed)
    assert [code for code in codes if code != 75] == [0, 0], (codes, printed)
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100).wait()  # its nodes have nothing
    saved = int(re.findall(r"a restart will use step\.(\d+)", printed)[-1])
    assert done.code == 0 and done.steps("start") == [saved], (done, printed)
    assert fields(tmp_path / "result") == undisturbed(first_flavour)


def test_the_bar_of_a_scavenge_shows_what_is_copied(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str]) -> None:
    """Of the files, which are as long as they will be from the first byte on, and of what protects them."""
    storage = tmp_path / "storage"
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n1@checkpoint:2", "--no-scavenge", "--storage", str(storage)], 100000).wait()
    assert died.code == 4, died
    said = said_on_terminal([str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage)],
                            environment_of({"CAIRN_FLUSH_BANDWIDTH": "300KB"}))
    last = re.findall(r"(step\.\d+) .*is now in the prefix directory", said)[-1]  # newer ones may be incomplete
    filled = [len(bar.rstrip()) for bar in re.findall(rf"{re.escape(last)} [^\[]*\[([# ]{{20}})\]", said)]
    assert filled == sorted(filled) and len(set(filled)) >= 3, said
    assert filled[0] < 10, said


def at_work_on(node: str, folder: Path) -> List[int]:
    """The process that copies what the node holds, once it has begun to; its record comes last."""
    parts = list((folder / ".cairn" / "scavenged" / node).glob("dataset.*/rank.*/files/**/field.*"))
    if not any(part.stat().st_blocks > 0 for part in parts):
        return []
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if words[1:2] == [b"scavenge-node"] and b"--dataset" in words and str(folder).encode() in words and (
                    f"SCR_NODE_NAME={node}".encode() in (entry / "environ").read_bytes().split(b"\0")):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("node_dies", [False, True])
def test_a_node_on_which_the_scavenge_is_killed_is_reported_and_the_others_go_on(
        cairn: Path, tmp_path: Path, first_flavour: str, program_of: Dict[str, str],
        undisturbed: Undisturbed, node_dies: bool) -> None:
    """n3 is lost already, n1 is hit in the middle of copying. XOR does not hold both: what n1 has is still there if only
    the process was killed, and the next scavenge goes on with it."""
    storage = tmp_path / "storage"
    died = heat(cairn, tmp_path, first_flavour, program_of,
                [*LOSE, "n3@checkpoint:2", "--no-scavenge", "--storage", str(storage)], 100000).wait()
    assert died.code == 4, died
    command = [str(cairn), "scavenge", "-p", str(tmp_path), "--storage", str(storage), "--json"]
    hit = subprocess.Popen(command, env=environment_of({"CAIRN_FLUSH_BANDWIDTH": "500KB"}), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killed = 0
    while hit.poll() is None:
        for pid in at_work_on("n1", tmp_path):
            with suppress(ProcessLookupError):  # it may have ended since it was seen
                if node_dies:
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
                    shutil.rmtree(storage / "nodes" / "n1", ignore_errors=True)
                else:
                    os.kill(pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.05)
    output, printed = hit.communicate()
    assert killed and hit.returncode == 1 and "n1 could not copy its part" in printed, printed
    assert "rank 1 (written on n1), rank 3 (written on n3)" in json.loads(output)["datasets"][-1]["reason"], output
    assert listed(cairn, tmp_path) == [], "nothing is half published"
    again = subprocess.run(command, env=environment_of(), text=True, timeout=60, check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    assert again.returncode == (1 if node_dies else 0), again
    done = heat(cairn, tmp_path, first_flavour, program_of, NODES, 100).wait()  # its nodes have nothing
    assert done.code == 0 and (done.steps("start")[0] == 0) == node_dies, done
    assert fields(tmp_path / "result") == undisturbed(first_flavour)
