"""What one run of a job has lost, and what its next run makes of that, at the end of cairn run."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from jobs import LAUNCHER, Job, Outcome
from stand_ins import scavenging_cairn

# log EVENT [NUMBER NAME [OUTPUT [NOTE]]]: as the library would.
LOG = ("log() { echo \"{\\\"event\\\":\\\"$1\\\",\\\"time_us\\\":$(date +%s%6N),\\\"job\\\":\\\"local\\\",\\\"dataset\\\":${2:-0},\\\"name\\\":\\\"${3:-}\\\","
       "\\\"scheme\\\":\\\"SINGLE\\\",\\\"to\\\":\\\"/ssd\\\",\\\"output\\\":${4:-true},\\\"note\\\":\\\"${5:-}\\\"}\" >> \"$SCR_PREFIX/.cairn/log.json\"; }")
LOSES = "log START; log OUTPUT_END 5 out.5; log ASYNC_FLUSH_START 5 out.5; log LOST 5 out.5; log ASYNC_FLUSH_STOP 5 out.5; touch lost; exit 7"
RESTARTS = "log START; log RESTART_SUCCESS 3 step.3"
ENDS = "log FINALIZE"
WRITES_AGAIN = f"{RESTARTS}; log OUTPUT_END 5 out.5; log ASYNC_FLUSH_START 5 out.5; log ASYNC_FLUSH_STOP 5 out.5; {ENDS}"


def copied(number: int, name: str) -> str:
    return f"log OUTPUT_END {number} {name}; log ASYNC_FLUSH_START {number} {name}; log ASYNC_FLUSH_SUCCESS {number} {name}"


def on_nodes(number: int, name: str, **more: Any) -> Dict[str, Any]:
    """Of the last run that has made one of this number and name."""
    return {"number": number, "uuid": f"{1 << 62:016x}{number:016x}", "name": name, "checkpoint": False, "output": True, "ranks": 2, "bytes": 1000,
            "in_prefix": False, "committed": True, **more}


def checkpoint_on_nodes(number: int, **more: Any) -> Dict[str, Any]:
    return on_nodes(number, f"step.{number}", output=False, checkpoint=True, **more)


def older_on_nodes(number: int, name: str, **more: Any) -> Dict[str, Any]:
    """Made before all runs of the log."""
    return on_nodes(number, name, uuid=f"{number:032x}", **more)


class Cluster:
    """Two nodes, and a job whose first run loses output 5 and dies."""

    def __init__(self, folder: Path, cairn: Path) -> None:
        self._folder, self._command = folder, scavenging_cairn(folder, cairn)
        (folder / "mpirun").write_text(LAUNCHER)
        (folder / "mpirun").chmod(0o755)

    def hold(self, *datasets: Dict[str, Any]) -> None:
        """Of each dataset, both nodes have a part, or one node has `parts`."""
        for rank in range(2):
            storage = self._folder / "storage" / "nodes" / f"n{rank}"
            storage.mkdir(parents=True)
            held = [{"parts": [rank], **one} for one in datasets if one.get("node", rank) == rank]
            (storage / "held.json").write_text(json.dumps(held))

    def again(self) -> None:
        """The next job has a first run again."""
        (self._folder / "lost").unlink()

    def run(self, then: str, *options: str, loses: str = LOSES) -> Outcome:
        """The second run does `then`."""
        script = f"{LOG}; [ -e lost ] || {{ {loses}; }}; {then}"
        return Job(self._command, self._folder, ["--nodes", "2", "--runs", "2", "--storage", str(self._folder / "storage"), *options],
                   [str(self._folder / "mpirun"), "-n", "2", "sh", "-c", script], {"SCR_FLUSH": "1"}).wait()

    def newest_of_runs(self) -> List[float]:
        """When each run has completed its newest dataset."""
        return [one["newest_s"] for one in json.loads((self._folder / ".cairn" / "run.json").read_text())["runs"]]

    def asked_for(self) -> List[int]:
        """The numbers of the datasets that nodes were asked to save, in that order; negative: an older one."""
        calls = [line.split() for line in (self._folder / "calls").read_text().splitlines()]
        uuids = dict.fromkeys(uuid for _, uuid, _ in calls if uuid != "list")
        return [int(uuid[16:], 16) * (-1 if uuid.startswith("0") else 1) for uuid in uuids]

    def cannot_copy(self) -> None:
        for rank in range(2):
            (self._folder / "storage" / "nodes" / f"n{rank}" / "answer").write_text("1 no space")


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
    """What is left of the lost output is tried last. Nobody needs to know that it cannot be saved."""
    cluster.hold(on_nodes(5, "out.5", becomes="lost"), on_nodes(7, "out.7"))
    done = cluster.run(then)
    assert done.code == 0 and line_of(done, "success"), done
    assert line_of(done, "scavenge") == "cairn run: scavenge     out.7 saved", done
    assert cluster.asked_for() == [7, 5] and "could not be saved" not in done.printed, done


@pytest.mark.parametrize("shared", [False, True])
def test_what_nodes_cannot_copy_of_an_output_that_was_made_again_is_not_said(cluster: Cluster, shared: bool) -> None:
    cluster.hold(on_nodes(5, "out.5", shared=shared))
    cluster.cannot_copy()
    done = cluster.run(f"{RESTARTS}; {copied(6, 'out.5')}; {ENDS}")
    assert done.code == 0 and cluster.asked_for() == [5], done
    assert not line_of(done, "scavenge") and "could not" not in done.printed, done


def test_an_older_output_of_the_same_name_is_saved(cluster: Cluster) -> None:
    """It may have other files."""
    cluster.hold(on_nodes(1, "out"), on_nodes(2, "out", in_prefix=True))
    done = cluster.run(f"log START; {ENDS}", loses=f"log START; log OUTPUT_END 1 out; {copied(2, 'out')}; touch lost; exit 7")
    assert done.code == 0 and cluster.asked_for() == [1], done
    assert "out (dataset 1), 1.95 KiB on n0, n1: is now in the prefix directory" in done.printed, done
    assert line_of(done, "scavenge") == "cairn run: scavenge     out saved", done


LOSES_CHECKPOINT = "log START; log CHECKPOINT_END 5 step.5 false; log LOST 5 step.5 false; touch lost; exit 7"
REPEATS = "log START; log RESTART_SUCCESS 3 step.3 false"


def test_no_checkpoint_is_saved_that_is_older_than_one_in_the_prefix_directory(cluster: Cluster) -> None:
    """Even if a run has called that one lost."""
    cluster.hold(checkpoint_on_nodes(3), checkpoint_on_nodes(5, in_prefix=True))
    done = cluster.run(f"{REPEATS}; exit 7", loses=LOSES_CHECKPOINT)
    assert not cluster.asked_for(), done


def test_a_lost_checkpoint_that_the_job_does_without_is_not_saved(cluster: Cluster) -> None:
    """The job has restarted from an older one, and would go back to work that it has given up."""
    cluster.hold(checkpoint_on_nodes(4), checkpoint_on_nodes(5))
    done = cluster.run(f"{REPEATS}; log CHECKPOINT_END 4 step.4 false; exit 7", loses=LOSES_CHECKPOINT)
    assert cluster.asked_for() == [4] and line_of(done, "scavenge") == "cairn run: scavenge     step.4 saved", done


def test_an_output_that_was_made_again_does_not_hide_that_the_newest_checkpoint_is_not_saved(cluster: Cluster) -> None:
    cluster.hold(on_nodes(5, "out.5"), checkpoint_on_nodes(9, becomes="failed"))
    done = cluster.run(f"{RESTARTS}; {copied(6, 'out.5')}; exit 7")
    assert line_of(done, "scavenge").startswith("cairn run: scavenge     step.9 failed; out.5 saved; cairn scavenge tries again"), done


def test_the_newest_checkpoint_may_have_the_number_and_name_of_a_lost_one(cluster: Cluster) -> None:
    """The job has not made that one good, if it cannot be saved."""
    cluster.hold(checkpoint_on_nodes(5, becomes="failed"))
    done = cluster.run(f"{REPEATS}; log CHECKPOINT_END 5 step.5 false; exit 7", loses=LOSES_CHECKPOINT)
    assert line_of(done, "scavenge").startswith("cairn run: scavenge     step.5 failed"), done


def test_a_lost_output_that_is_lost_again_with_its_nodes_is_named(cluster: Cluster) -> None:
    """The second run has it in the caches, and the third one neither finds it nor writes it."""
    again = "log OUTPUT_END 5 out.5; log ASYNC_FLUSH_START 5 out.5; touch again; exit 7"
    done = cluster.run(f"{RESTARTS}; [ -e again ] || {{ {again}; }}; {ENDS}", "--runs", "3")
    assert done.code == 1 and line_of(done, "failed: the program called SCR_Finalize").endswith(f", but {LOST}"), done


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


LEFT = "what it left to copy is not in the prefix directory: out.1 (dataset 1)"


@pytest.mark.parametrize("verdict, how", [("failed", {"becomes": "failed"}), ("later", {"becomes": "later"})])
def test_a_job_has_not_succeeded_if_an_output_on_its_nodes_cannot_be_saved(cluster: Cluster, verdict: str, how: Dict[str, Any]) -> None:
    """No run knows it: an earlier job has made it. Checkpoints are not always to be copied."""
    cluster.hold(on_nodes(1, "out.1", **how), checkpoint_on_nodes(2, becomes="failed"))
    done = cluster.run(f"log START; {copied(6, 'out.5')}; {ENDS}")
    assert done.code == 1 and line_of(done, "failed: the program called SCR_Finalize").endswith(f", but {LEFT}"), done
    assert line_of(done, "scavenge").startswith(f"cairn run: scavenge     out.1 {verdict}; "), done
    assert "; cairn scavenge tries again" in line_of(done, "scavenge"), done


def test_what_the_scavenge_saves_of_a_later_run_takes_the_place_of_what_it_cannot_save(cluster: Cluster) -> None:
    cluster.hold(on_nodes(4, "out.4", becomes="failed"), on_nodes(6, "out.4"))
    done = cluster.run(f"log START; {copied(7, 'out.5')}; log OUTPUT_END 6 out.4; {ENDS}",
                       loses="log START; log OUTPUT_END 4 out.4; touch lost; exit 7")
    assert done.code == 0 and "out.4 saved" in line_of(done, "scavenge"), done


def test_a_checkpoint_that_cannot_be_saved_does_not_make_a_job_fail(cluster: Cluster) -> None:
    cluster.hold(checkpoint_on_nodes(2, becomes="failed"))
    done = cluster.run(f"log START; {copied(6, 'out.5')}; {ENDS}")
    assert done.code == 0 and "step.2 failed" in line_of(done, "scavenge"), done


def test_an_output_that_is_in_the_prefix_directory_is_no_failure(cluster: Cluster) -> None:
    """The nodes have it still."""
    cluster.hold(on_nodes(1, "out.1", in_prefix=True))
    done = cluster.run(f"log START; {copied(6, 'out.5')}; {ENDS}")
    assert done.code == 0 and not line_of(done, "scavenge"), done


def test_an_output_of_a_lost_node_is_named_though_no_run_has_noticed(cluster: Cluster) -> None:
    """The run that could not rebuild it does not say that it is lost."""
    loses = "log START; log OUTPUT_END 5 out.5; touch lost; exit 7"
    cluster.hold(on_nodes(5, "out.5", becomes="lost"))
    done = cluster.run(f"{RESTARTS}; {copied(6, 'out.6')}; {ENDS}", loses=loses)
    assert done.code == 1 and line_of(done, "failed").endswith("not in the prefix directory: out.5 (dataset 5)"), done
    assert line_of(done, "failed").count("out.5") == 1, done
    cluster.again()
    done = cluster.run(f"{RESTARTS}; {copied(6, 'out.5')}; {ENDS}", loses=loses)
    assert done.code == 0 and line_of(done, "success"), done


def test_a_job_that_is_given_up_names_what_was_lost(cluster: Cluster) -> None:
    done = cluster.run("log START; exit 7")
    assert done.code == 4 and line_of(done, "given up").endswith(f"; {LOST}"), done


def test_the_newest_dataset_of_a_run_may_be_an_output(cluster: Cluster) -> None:
    cluster.run("log START; log OUTPUT_END 6 out.6 true 'no space'; exit 7")
    first, second = cluster.newest_of_runs()
    assert first > 0 and second == 0, "its output has failed"


FAILS: Dict[str, Any] = {"becomes": "failed"}
# A dataset is on both nodes, or all of the older one on n0 and all of the newer one on n1.
APART: List[Dict[str, Any]] = [{"node": 0, "parts": [0, 1]}, {"node": 1, "parts": [0, 1]}]
places = pytest.mark.parametrize("of_older, of_newer", [({}, {}), APART], ids=["on the same nodes", "on different nodes"])


@places
def test_an_older_output_that_is_saved_does_not_stand_for_the_newer_one(
        cluster: Cluster, of_older: Dict[str, Any], of_newer: Dict[str, Any]) -> None:
    """The job has written the lost output again under its number and name."""
    cluster.hold(older_on_nodes(5, "out.5", **of_older), on_nodes(5, "out.5", **FAILS, **of_newer))
    done = cluster.run(WRITES_AGAIN)
    assert done.code == 1 and line_of(done, "failed: the program called SCR_Finalize").endswith(LEFT_AGAIN), done
    assert line_of(done, "scavenge").startswith("cairn run: scavenge     out.5 failed; out.5 (an older one) saved; "), done
    assert "; cairn scavenge tries again" in line_of(done, "scavenge"), done


LEFT_AGAIN = "what it left to copy is not in the prefix directory: out.5 (dataset 5)"


@places
def test_a_job_does_not_miss_an_older_output_if_the_newer_one_is_saved(
        cluster: Cluster, of_older: Dict[str, Any], of_newer: Dict[str, Any]) -> None:
    cluster.hold(older_on_nodes(5, "out.5", **FAILS, **of_older), on_nodes(5, "out.5", **of_newer))
    done = cluster.run(WRITES_AGAIN)
    assert done.code == 0 and line_of(done, "scavenge") == "cairn run: scavenge     out.5 saved", done
    assert cluster.asked_for() == [5, -5] and "could not be saved" not in done.printed, done


def test_an_older_output_is_saved_last(cluster: Cluster) -> None:
    """Its files may have other names than those of the newer one."""
    cluster.hold(older_on_nodes(5, "out.5"), on_nodes(5, "out.5"), on_nodes(6, "out.6"))
    done = cluster.run(WRITES_AGAIN)
    assert done.code == 0 and cluster.asked_for() == [5, 6, -5], done
    assert line_of(done, "scavenge") == "cairn run: scavenge     out.5 saved; out.6 saved; out.5 (an older one) saved", done
    assert "out.5 (dataset 5) (an older one), 1.95 KiB on n0, n1: is now in the prefix directory" in done.printed, done


@pytest.mark.parametrize("what", [{}, {"in_prefix": True}, FAILS], ids=["saved", "in the prefix directory", "failed"])
@pytest.mark.parametrize("then, reason", [
    (WRITES_AGAIN, LEFT_AGAIN), (f"{RESTARTS}; log OUTPUT_END 5 out.5; {ENDS}", LOST),
    (f"{RESTARTS}; log OUTPUT_END 5 out.5; log LOST 5 out.5; {ENDS}", LOST)], ids=["left", "not begun", "lost again"])
def test_an_older_output_does_not_stand_for_one_that_only_the_log_has(
        cluster: Cluster, what: Dict[str, Any], then: str, reason: str) -> None:
    """The nodes that held it are dead."""
    cluster.hold(older_on_nodes(5, "out.5", **what))
    done = cluster.run(then)
    assert done.code == 1 and line_of(done, "failed: the program called SCR_Finalize").endswith(f", but {reason}"), done


def test_a_job_does_not_miss_an_older_output_that_was_written_again_and_deleted(cluster: Cluster) -> None:
    cluster.hold(older_on_nodes(5, "out.5", **FAILS))
    done = cluster.run(f"{RESTARTS}; log OUTPUT_END 5 out.5; log DELETE 5 out.5; {ENDS}")
    assert done.code == 0 and not line_of(done, "scavenge"), done


@pytest.mark.parametrize("older, newer, code", [({}, FAILS, 1), (FAILS, {}, 0)])
def test_the_newer_output_is_known_without_the_log(cluster: Cluster, older: Dict[str, Any], newer: Dict[str, Any], code: int) -> None:
    """An earlier job has made both."""
    cluster.hold(older_on_nodes(1, "out.1", **older), on_nodes(1, "out.1", **newer))
    done = cluster.run(f"log START; {copied(6, 'out.5')}; {ENDS}")
    assert done.code == code and ("tries again" in done.printed) == bool(code), done
