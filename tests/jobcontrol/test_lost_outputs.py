"""What one run of a job has lost, and what its next run makes of that, at the end of cairn run."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from jobs import LAUNCHER, Job, Outcome
from stand_ins import scavenging_cairn

# log EVENT [NUMBER NAME]: as the library would.
LOG = ("log() { echo \"{\\\"event\\\":\\\"$1\\\",\\\"time_us\\\":1,\\\"job\\\":\\\"local\\\",\\\"dataset\\\":${2:-0},\\\"name\\\":\\\"${3:-}\\\","
       "\\\"scheme\\\":\\\"SINGLE\\\",\\\"to\\\":\\\"/ssd\\\",\\\"output\\\":${4:-true}}\" >> \"$SCR_PREFIX/.cairn/log.json\"; }")
LOSES = "log START; log OUTPUT_END 5 out.5; log ASYNC_FLUSH_START 5 out.5; log LOST 5 out.5; log ASYNC_FLUSH_STOP 5 out.5; touch lost; exit 7"
RESTARTS = "log START; log RESTART_SUCCESS 3 step.3"
ENDS = "log FINALIZE"


def copied(number: int, name: str) -> str:
    return f"log OUTPUT_END {number} {name}; log ASYNC_FLUSH_START {number} {name}; log ASYNC_FLUSH_SUCCESS {number} {name}"


def on_nodes(number: int, name: str, **more: Any) -> Dict[str, Any]:
    return {"number": number, "uuid": f"{number:032x}", "name": name, "checkpoint": False, "output": True, "ranks": 2, "bytes": 1000,
            "in_prefix": False, "committed": True, **more}


class Cluster:
    """Two nodes, and a job whose first run loses output 5 and dies."""

    def __init__(self, folder: Path, cairn: Path) -> None:
        self._folder, self._command = folder, scavenging_cairn(folder, cairn)
        (folder / "mpirun").write_text(LAUNCHER)
        (folder / "mpirun").chmod(0o755)

    def hold(self, *datasets: Dict[str, Any]) -> None:
        for rank in range(2):
            storage = self._folder / "storage" / "nodes" / f"n{rank}"
            storage.mkdir(parents=True)
            (storage / "held.json").write_text(json.dumps([{**one, "parts": [rank]} for one in datasets]))

    def run(self, then: str, *options: str) -> Outcome:
        """The second run does `then`."""
        script = f"{LOG}; [ -e lost ] || {{ {LOSES}; }}; {then}"
        return Job(self._command, self._folder, ["--nodes", "2", "--runs", "2", "--storage", str(self._folder / "storage"), *options],
                   [str(self._folder / "mpirun"), "-n", "2", "sh", "-c", script], {"SCR_FLUSH": "1"}).wait()

    def asked_for(self) -> List[int]:
        """The numbers of the datasets that nodes were asked to save."""
        calls = [line.split() for line in (self._folder / "calls").read_text().splitlines()]
        return sorted({int(uuid, 16) for _, uuid, _ in calls if uuid != "list"})


@pytest.fixture
def cluster(tmp_path: Path, cairn: Path) -> Cluster:
    return Cluster(tmp_path, cairn)


def line_of(done: Outcome, what: str) -> str:
    """Of the account at the end; empty if it has none."""
    return next((line for line in done.printed.splitlines() if line.startswith(f"cairn run: {what}")), "")


LOST = "lost before the copy to the prefix directory: out.5 (dataset 5)"


@pytest.mark.parametrize("option", ["--no-heartbeats", "--no-scavenge"])
@pytest.mark.parametrize("then", [f"{RESTARTS}; {copied(6, 'out.6')}; {ENDS}", f"log START; {copied(5, 'out.6')}; {ENDS}"],
                         ids=["restarted", "from scratch with its number"])
def test_a_job_that_does_not_write_a_lost_output_again_has_not_succeeded(cluster: Cluster, option: str, then: str) -> None:
    done = cluster.run(then, option)
    assert done.code == 1, done
    assert line_of(done, "failed: the program called SCR_Finalize").endswith(f", but {LOST}"), done


@pytest.mark.parametrize("then", [f"{RESTARTS}; {copied(6, 'out.5')}; {ENDS}", f"log START; {copied(4, 'out.5')}; {ENDS}"],
                         ids=["restarted", "from scratch with a lower number"])
def test_a_job_that_writes_it_again_has_succeeded_and_saves_the_others(cluster: Cluster, then: str) -> None:
    """What is left of the lost output cannot be saved. It is not tried, and does not hold back the next one."""
    cluster.hold(on_nodes(5, "out.5", becomes="lost"), on_nodes(7, "out.7"))
    done = cluster.run(then)
    assert done.code == 0 and line_of(done, "success"), done
    assert line_of(done, "scavenge") == "cairn run: scavenge     out.7 saved", done
    assert cluster.asked_for() == [7] and "could not be saved" not in done.printed, done


def test_what_a_scavenge_saves_of_it_is_not_lost(cluster: Cluster) -> None:
    """The next run does not write it again."""
    cluster.hold(on_nodes(5, "out.5"))
    done = cluster.run(f"{RESTARTS}; {ENDS}")
    assert done.code == 0 and line_of(done, "scavenge") == "cairn run: scavenge     out.5 saved", done


def test_nothing_tries_again_to_save_what_an_earlier_run_has_lost(cluster: Cluster) -> None:
    cluster.hold(on_nodes(5, "out.5", becomes="lost"))
    done = cluster.run(f"{RESTARTS}; {ENDS}")
    assert done.code == 1 and line_of(done, "failed").endswith(LOST), done
    assert line_of(done, "scavenge") == "cairn run: scavenge     out.5 failed", done


def test_a_job_that_is_given_up_names_what_was_lost(cluster: Cluster) -> None:
    done = cluster.run("log START; exit 7")
    assert done.code == 4 and line_of(done, "given up").endswith(f"; {LOST}"), done
