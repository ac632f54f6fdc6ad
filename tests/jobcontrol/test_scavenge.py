"""What is saved of a dead job, in which order, and what is printed. The native part is a stand-in: see stand_ins.py."""

import io
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import pytest

from cairn import labelled, long_work, progress_bar
from cairn.commands.scavenge import missed_text, settings_on_nodes
from cairn.drain import LATER as DRAIN_LATER
from cairn.drain import PUBLISHED, UNFINISHED, Drained
from cairn.long_work import GONE, TEMPORARY, LongWork
from cairn.native import Native
from cairn.node_work import first_json
from cairn.progress_bar import ProgressLine, bar_of
from cairn.resources.local import SimulatedNodes
from cairn.resources.slurm import Slurm
from cairn.roles import Answer
from cairn.scavenge import Dataset, Result, Saved, Scavenge, Verdict, Wish, merged, next_to_save
from jobs import Job, environment_of, said_on_terminal
from stand_ins import put_on_path, scavenging_cairn
from test_resources import SLURM

# ---- which dataset is next ----

SAVED, FAILED, LATER, COPIED = Verdict.SAVED, Verdict.FAILED, Verdict.LATER, Verdict.COPIED


def made(words: str) -> List[Dataset]:
    """"o2 c3+ b5": output 2; checkpoint 3, which is in the prefix directory; 5 is both."""
    found = []
    for word in words.split():
        number = int(word[1:].rstrip("+"))
        found.append(Dataset(number, f"u{number}", f"d{number}", word[0] in "cb", word[0] in "ob", 4,
                             word.endswith("+")))
    return found


@pytest.mark.parametrize("datasets, ended, expected", [
    ("", {}, None),
    ("c1 c2 c3", {}, 3), ("c1 c2 c3", {3: FAILED}, 2), ("c1 c2 c3", {3: FAILED, 2: FAILED}, 1),
    ("c1 c2 c3", {3: FAILED, 2: FAILED, 1: FAILED}, None), ("c1 c2 c3", {3: SAVED}, None),
    ("c1 c2 c3+", {}, None), ("c1 c2+ c3", {}, 3), ("c1 c2+ c3", {3: FAILED}, None),
    ("o1 c2 o3 c4", {}, 1), ("o1 c2 o3 c4", {1: SAVED}, 3), ("o1 c2 o3 c4", {1: SAVED, 3: SAVED}, 4),
    ("o1+ c2 o3+ c4", {}, 4),
    # An output that cannot be had costs nothing else.
    ("o1 c2 o3 c4", {1: FAILED}, 3), ("o1 c2 o3 c4", {1: FAILED, 3: SAVED}, 4), ("o1 c2 o3 c4", {1: SAVED, 3: FAILED}, 4),
    ("o1 c2 o3 c4", {1: FAILED, 3: FAILED, 4: FAILED}, 2), ("o1 c2 o3 c4", {1: FAILED, 3: FAILED, 4: SAVED}, None),
    ("o1 c2+ o3", {1: SAVED, 3: FAILED}, None),
    # What is both is tried once, as an output.
    ("c1 b2 c3", {}, 2), ("c1 b2 c3", {2: SAVED}, 3), ("c1 b2 c3", {2: SAVED, 3: FAILED}, None), ("b2", {2: SAVED}, None),
    ("c1 b2", {2: FAILED}, 1), ("c1 b2+ c3", {3: FAILED}, None),
    # What is neither may be lost.
    ("n1 c2 n3", {}, 2), ("n1", {}, None),
    # What is in the way passes: nothing else is tried meanwhile.
    ("o1 c2 o3 c4", {1: LATER}, None), ("c1 c2", {2: LATER}, None),
    # Without a rebuild it is not known what is safe: all are copied.
    ("o1 c2 c3", {1: COPIED}, 3), ("o1 c2 c3", {1: COPIED, 3: COPIED}, 2), ("c2 c3", {3: COPIED, 2: COPIED}, None),
])
def test_what_is_saved_next(datasets: str, ended: Dict[int, Verdict], expected: Optional[int]) -> None:
    found = next_to_save(made(datasets), {f"u{number}": verdict for number, verdict in ended.items()})
    assert (found.number if found else None) == expected


def test_without_checkpoints_only_outputs_are_saved() -> None:
    assert next_to_save(made("c1 c2"), {}, checkpoints=False) is None
    one = next_to_save(made("o1 c2"), {}, checkpoints=False)
    assert one is not None and one.number == 1


@pytest.mark.parametrize("datasets, verdicts, outcome, expected", [
    ("", [], "", None), ("c3", [SAVED], "", SAVED), ("c3", [FAILED], "", FAILED), ("c3 c2", [FAILED, SAVED], "", SAVED),
    ("o1 c2", [FAILED, SAVED], "", FAILED), ("o1 c2", [SAVED, FAILED], "", FAILED), ("o1 c2", [SAVED, LATER], "", LATER),
    ("c3", [FAILED], "uncommitted", None), ("o1 c3", [SAVED, FAILED], "uncommitted", None),
])
def test_the_verdict_of_all(datasets: str, verdicts: List[Verdict], outcome: str, expected: Optional[Verdict]) -> None:
    saved = [Saved(one, verdict, outcome, "", {}) for one, verdict in zip(made(datasets), verdicts)]
    assert Result({}, ["n0"], saved).verdict() == expected


def test_what_is_known_to_be_lost_is_not_tried_again() -> None:
    """If it is saved all the same, that counts."""
    saved = [Saved(one, verdict, "", "", {}) for one, verdict in zip(made("o1 o2 c3"), [FAILED, FAILED, SAVED])]
    result = Result({}, ["n0"], saved)
    lost = [one.text() for one in made("o1 o2 c3")]
    assert result.verdict(lost[:1]) == FAILED and result.verdict(lost[:2]) == SAVED and result.verdict(lost) == SAVED
    assert Result({}, ["n0"], saved[:2]).verdict(lost[:2]) is None


@pytest.mark.parametrize("silent, nodes, partly, listed, expected, text", [
    (["n0"], ["n0"], [], 0, FAILED, "no node answered"), ([], [], [], 0, FAILED, "no node answered"),
    # An idle spare holds nothing, which tells nothing of what the others hold.
    (["n0"], ["n0", "n1"], [], 0, FAILED, "no answer from n0"),
    ([], ["n0", "n1"], ["n0"], 0, FAILED, "n0 could not be read"),
    (["n0"], ["n0", "n1"], [], 1, None, "no answer from n0"),
    # The store that cannot be read may have had the newest.
    ([], ["n0", "n1"], ["n0"], 1, FAILED, "n0 could not be read"),
    ([], ["n0", "n1"], [], 0, None, ""),
])
def test_what_is_not_known_is_not_called_saved(silent: List[str], nodes: List[str], partly: List[str], listed: int,
                                               expected: Optional[Verdict], text: str) -> None:
    """Of nodes that have listed so many datasets, all of them in the prefix directory."""
    result = Result({node: "off" for node in silent}, nodes, partly={node: "bad" for node in partly}, listed=listed)
    assert result.verdict() == expected and text in result.text() and bool(text) == bool(result.text())


def begun(number: int, outcome: str = UNFINISHED, output: bool = False) -> Drained:
    return Drained(number, f"u{number}", f"d{number}", outcome, "no part", output)


@pytest.mark.parametrize("drained, saved, expected, lost", [
    ([begun(3)], "", FAILED, ["d3"]), ([begun(3, DRAIN_LATER)], "", LATER, ["d3"]),
    # A newer checkpoint is safe; an output is always needed.
    ([begun(3), begun(4, PUBLISHED)], "", None, []), ([begun(3)], "c4", SAVED, []),
    ([begun(3, output=True), begun(4, PUBLISHED)], "", FAILED, ["d3"]), ([begun(3)], "o4", FAILED, ["d3"]),
    ([begun(3), begun(2, PUBLISHED)], "", FAILED, ["d3"]),
])
def test_a_begun_copy_of_which_no_node_has_anything_is_named(drained: List[Drained], saved: str, expected: Optional[Verdict],
                                                             lost: List[str]) -> None:
    result = Result({}, ["n0"], [Saved(one, SAVED, "", "", {}) for one in made(saved)], drained,
                    unlisted=[one for one in drained if not one.is_published()])
    assert result.verdict() == expected
    assert [one.name for one in result.lost()] == lost
    assert all(f"{name} not finished: no part" in result.text() for name in lost), result.text()


def test_what_is_known_to_be_in_the_prefix_directory() -> None:
    saved = [Saved(one, verdict, "", "", {}) for one, verdict in zip(made("c3 c4 o5"), [SAVED, FAILED, LATER])]
    result = Result(saved=saved, drained=[begun(1, PUBLISHED), begun(2)], in_prefix=[(0, "d0")])
    assert sorted(result.now_in_prefix()) == [(0, "d0"), (1, "d1"), (3, "d3")]
    result.drained[0].is_older = saved[0].dataset.is_older = True
    assert result.now_in_prefix() == [(0, "d0")]


@pytest.mark.parametrize("verdict, outcome, failed, unsaved", [
    (SAVED, "published", {}, []), (FAILED, "failed", {}, [1]), (LATER, "later", {}, [1]), (FAILED, "uncommitted", {}, []),
    (FAILED, "uncommitted", {"n0": "off"}, [1]), (None, "", {}, [1])])
def test_outputs_are_unsaved_until_they_are_saved(verdict: Optional[Verdict], outcome: str, failed: Dict[str, str], unsaved: List[int]) -> None:
    """Also those that were not tried."""
    outputs = made("o1")
    saved = [Saved(one, verdict, outcome, "", failed) for one in outputs if verdict]
    result = Result(saved=saved, outputs=outputs, unlisted=[begun(7), begun(8, output=True)])
    assert result.unsaved_outputs() == [(number, f"d{number}") for number in (*unsaved, 8)]


def listed(number: int, parts: List[int], **more: Any) -> Dict[str, Any]:
    return {"number": number, "uuid": f"{number:032x}", "name": f"ckpt.{number}", "checkpoint": True, "output": False,
            "ranks": 4, "bytes": 1000, "parts": parts, "in_prefix": False, "committed": True, **more}


def test_what_nodes_list_is_put_together() -> None:
    """Also from a node that has no files of it: it may have what protects those of others."""
    both = merged({"n0": [listed(2, [0]), listed(1, [0], in_prefix=True)], "n1": [listed(2, [])]})
    assert [(one.number, one.nodes, one.bytes, one.in_prefix) for one in both] == [
        (1, ["n0"], 1000, True), (2, ["n0", "n1"], 2000, False)]


@pytest.mark.parametrize("of_nodes, expected", [([False, True], True), ([True, False], True), ([False, False], False)])
def test_one_node_that_has_committed_a_dataset_is_enough(of_nodes: List[bool], expected: bool) -> None:
    one, = merged({f"n{i}": [listed(1, [i], committed=committed)] for i, committed in enumerate(of_nodes)})
    assert one.committed == expected


@pytest.mark.parametrize("shared, expected", [
    ([True, True], (True, 1000)), ([True, False], (False, 2000)), ([False, True], (False, 2000)),
])
def test_what_one_node_has_for_itself_is_not_shared(shared: List[bool], expected: Tuple[bool, int]) -> None:
    """Whichever is asked last: each node must copy what it has then."""
    one, = merged({f"n{i}": [listed(1, [i], shared=of_node)] for i, of_node in enumerate(shared)})
    assert (one.shared, one.bytes) == expected


@pytest.mark.parametrize("text, found", [
    ('{"a": 1}', {"a": 1}), ('warning: {odd\n{\n  "a": {\n"b": 1}\n}\nmore', {"a": {"b": 1}}),
    ("{no json\n{}\n", {}), ("", None), ("error: none", None), ('{"a": ', None),
])
def test_json_is_found_amid_warnings(text: str, found: Optional[Dict[str, Any]]) -> None:
    assert first_json(text) == found


# ---- long commands on nodes ----


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SimulatedNodes]:
    with SimulatedNodes(dict(os.environ), 3, 0, tmp_path / "storage") as one:
        yield one


def test_each_node_answers_for_itself(nodes: SimulatedNodes) -> None:
    answers = LongWork(nodes.remote()).run({"n0": "echo a; echo b >&2", "n1": "exit 75", "n2": "echo '= 7'; exit 3"})
    assert answers["n0"] == Answer(0, "a\nb") and answers["n1"] == Answer(75, "")
    assert answers["n2"].code in (3, 7), "a command can only lie about itself"


def test_a_node_that_dies_is_reported_and_the_others_go_on(nodes: SimulatedNodes) -> None:
    died: List[str] = []

    def tick() -> None:
        if not died and (nodes.storage("n1") / "begun").exists():
            died.append(nodes.lose("n1"))
    answers = LongWork(nodes.remote(), tick=tick).run(
        {"n0": "sleep 1; echo done", "n1": f"touch {nodes.storage('n1')}/begun; sleep 60"})
    assert answers["n0"] == Answer(0, "done") and answers["n1"].code == GONE and died


def test_a_node_that_falls_silent_is_reported(nodes: SimulatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "SILENT_S", 0.5)
    monkeypatch.setattr(long_work, "BEAT_S", 60.0)
    begin = time.monotonic()
    assert LongWork(nodes.remote()).run({"n0": "sleep 60"})["n0"].code == GONE
    assert time.monotonic() - begin < 10


def test_signs_of_life_keep_a_long_command(nodes: SimulatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "SILENT_S", 0.8)
    monkeypatch.setattr(long_work, "BEAT_S", 0.1)
    assert LongWork(nodes.remote()).run({"n0": "sleep 1.5; echo done"})["n0"] == Answer(0, "done")


def test_work_that_is_stopped_can_be_done_later(nodes: SimulatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "AT_ONCE", 1)
    end = time.monotonic() + 1
    answers = LongWork(nodes.remote(), lambda: "time is up" if time.monotonic() > end else "").run(
        {node: "sleep 60" for node in ("n0", "n1")})
    assert answers == {node: Answer(TEMPORARY, "time is up") for node in ("n0", "n1")}


def test_more_nodes_than_at_once_all_get_their_turn(nodes: SimulatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "AT_ONCE", 2)
    answers = LongWork(nodes.remote()).run({f"n{i}": f"echo {i}" for i in range(3)})
    assert {node: answer.text for node, answer in answers.items()} == {"n0": "0", "n1": "1", "n2": "2"}


# ---- how far it has come ----


@pytest.mark.parametrize("done, seconds, line", [
    (0, 1.0, "x: [                    ] 0 B of 1 GiB, 0 B/s"),
    (1 << 29, 2.0, "x: [##########          ] 512 MiB of 1 GiB, 256 MiB/s, 2.0 s left"),
    (1 << 31, 1.0, "x: [####################] 1 GiB of 1 GiB, 1 GiB/s, 0 s left"),
])
def test_the_line_of_progress(done: int, seconds: float, line: str) -> None:
    assert bar_of("x", done, 1 << 30, seconds) == line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.0)
    for out, printed in ((Terminal(), True), (io.StringIO(), False)):
        with ProgressLine(out, lambda seconds: bar_of("x", 100, 200, seconds)) as line:
            line.tick()
        assert ("100 B of 200 B" in out.getvalue() and out.getvalue().endswith("\r\x1b[K")) == printed
        assert printed or out.getvalue() == ""


def test_nodes_tell_how_much_they_have_done(nodes: SimulatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "BEAT_S", 0.1)
    seen: List[Dict[str, int]] = []
    work = LongWork(nodes.remote(), tick=lambda: seen.append(dict(work.done)))
    answers = work.run({"n0": "echo . 5; sleep 1; echo . 7; echo . x", "n1": "sleep 0.5"})
    assert answers == {"n0": Answer(0, ". x"), "n1": Answer(0, "")}
    assert {"n0": 5, "n1": 0} in seen and work.done == {"n0": 7, "n1": 0}


# ---- the command ----

HELD = {"n0": [0], "n1": [1], "n2": [2], "n3": [3]}


class Outcome(NamedTuple):
    code: int
    output: str
    printed: str

    def json(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(self.output)
        return found


class Left:
    """The nodes of a dead job."""

    def __init__(self, folder: Path, cairn: Path) -> None:
        self.folder, self.native = folder, scavenging_cairn(folder, cairn)
        self.prefix = folder / "prefix"
        self.prefix.mkdir()
        for node in HELD:
            self.storage(node).mkdir(parents=True)

    def storage(self, node: str) -> Path:
        return self.folder / "storage" / "nodes" / node

    def hold(self, *datasets: Dict[str, Any]) -> None:
        """Each node its ranks' part of each."""
        for node, parts in HELD.items():
            mine = [{**one, "parts": [rank for rank in one["parts"] if rank in parts]} for one in datasets]
            (self.storage(node) / "held.json").write_text(json.dumps([one for one in mine if one["parts"]]))

    def lose(self, *nodes: str) -> None:
        for node in nodes:
            self.storage(node).rename(self.folder / node)

    def answers(self, node: str, text: str) -> None:
        (self.storage(node) / "answer").write_text(text)

    def command(self) -> List[str]:
        return [str(self.native), "scavenge", "-p", str(self.prefix), "--storage", str(self.folder / "storage")]

    def start(self, *options: str, **settings: str) -> "subprocess.Popen[str]":
        return subprocess.Popen([*self.command(), *options], env=environment_of(settings), cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def on_terminal(self) -> str:
        return said_on_terminal(self.command(), environment_of())

    def scavenge(self, *options: str, **settings: str) -> Outcome:
        process = self.start(*options, **settings)
        output, printed = process.communicate(timeout=30)
        return Outcome(process.returncode, output, printed)

    def calls(self) -> List[str]:
        """What the nodes were asked for, less the lists."""
        return [line for line in (self.prefix / "calls").read_text().splitlines() if " list " not in line]


@pytest.fixture
def left(tmp_path: Path, cairn: Path) -> Left:
    return Left(tmp_path, cairn)


ALL = [0, 1, 2, 3]
OUTPUT = {"output": True, "checkpoint": False}


def test_an_output_that_cannot_be_saved_costs_no_other_dataset(left: Left) -> None:
    """The nodes may be the only ones that have them."""
    left.hold(listed(1, ALL, becomes="failed", **OUTPUT), listed(2, ALL), listed(3, ALL, **OUTPUT), listed(4, ALL))
    done = left.scavenge("--json")
    assert done.code == 1 and done.json()["verdict"] == "failed", done
    assert [(one["number"], one["verdict"]) for one in done.json()["datasets"]] == [(1, "failed"), (3, "saved"), (4, "saved")]
    assert done.printed.count("could not be saved") == 1, done


def test_the_newest_checkpoint_is_saved_and_no_other(left: Left) -> None:
    left.hold(listed(1, ALL, **OUTPUT), listed(2, ALL), listed(3, ALL))
    done = left.scavenge("--json", SCR_JOB_ID="77")
    assert done.code == 0, done
    assert [(one["number"], one["verdict"], one["outcome"]) for one in done.json()["datasets"]] == [
        (1, "saved", "published"), (3, "saved", "published")]
    assert len(left.calls()) == 8 and all(call.endswith(" 77") for call in left.calls())
    assert done.printed.count("is now in the prefix directory") == 2


def test_the_log_tells_when_it_begins_and_what_came_of_it(left: Left) -> None:
    """Once, and not for each node."""
    left.hold(listed(1, ALL, **OUTPUT), listed(3, ALL))
    left.answers("n2", "1 no")
    assert left.scavenge(CAIRN_LOG_JSON="1", SCR_JOB_ID="77").code == 0
    lines = [json.loads(line) for line in (left.prefix / ".cairn" / "log.json").read_text().splitlines()]
    assert [(one["event"], one["job"], one["note"]) for one in lines] == [
        ("SCAVENGE_START", "77", "asks 4 of 4 nodes"), ("SCAVENGE_END", "77", "ckpt.1 saved; ckpt.3 saved")]
    assert "seconds" not in lines[0] and lines[1]["seconds"] > 0


def test_a_log_that_cannot_be_written_keeps_nothing_from_being_saved(left: Left) -> None:
    left.hold(listed(3, ALL))
    (left.prefix / ".cairn" / "log.json").mkdir(parents=True)
    done = left.scavenge(CAIRN_LOG_JSON="1")
    assert done.code == 0 and "cannot write some lines to the log" in done.printed, done


@pytest.mark.parametrize("lost, code, saved", [(["n2"], 0, [3]), (["n1", "n2"], 1, [])])
def test_lost_nodes_are_done_without_as_far_as_redundancy_goes(left: Left, lost: List[str], code: int,
                                                              saved: List[int]) -> None:
    left.hold(listed(2, ALL), listed(3, ALL))
    left.lose(*lost)
    done = left.scavenge("--json")
    assert done.code == code, done
    assert [one["number"] for one in done.json()["datasets"] if one["verdict"] == "saved"] == saved
    if not saved:
        assert "2 ranks are missing" in done.printed and "no checkpoint to restart from" in done.printed


def test_an_older_checkpoint_is_taken_where_the_newest_is_lost(left: Left) -> None:
    left.hold(listed(2, ALL), listed(3, [0, 1]))
    done = left.scavenge("--json")
    assert done.code == 0 and [one["verdict"] for one in done.json()["datasets"]] == ["failed", "saved"], done


def test_a_node_that_cannot_copy_does_not_keep_the_others_from_it(left: Left) -> None:
    left.hold(listed(3, ALL))
    left.answers("n1", "1 no space left on device")
    done = left.scavenge("--json")
    assert done.code == 0 and "n1 could not copy its part: cairn: error: no space left" in done.printed, done
    assert done.json()["datasets"][0]["failed_nodes"] == {"n1": "cairn: error: no space left on device"}


@pytest.mark.parametrize("busy, code", [(["n0"], 0), (["n0", "n1"], 75), (["n0", "n1", "n2", "n3"], 75)])
def test_what_is_in_the_way_for_a_while_is_reported_by_the_exit_code(left: Left, busy: List[str], code: int) -> None:
    """And nothing older is brought in place of what can be had later."""
    left.hold(listed(2, ALL), listed(3, ALL))
    for node in busy:
        left.answers(node, "75 a job or a command is using the cache")
    done = left.scavenge("--json")
    assert done.code == code, done
    assert [one["number"] for one in done.json()["datasets"]] == [3] and "is using the cache" in done.printed
    if len(busy) == 4:
        assert not (left.prefix / ".cairn" / "scavenged").exists()


@pytest.mark.parametrize("cannot, asked", [([], ["n0"]), (["n0", "n1"], ["n0", "n1", "n2"])])
def test_of_a_store_that_all_nodes_share_one_saves_all(left: Left, cannot: List[str], asked: List[str]) -> None:
    for node in HELD:
        (left.storage(node) / "held.json").write_text(json.dumps([listed(3, ALL, shared=True)]))
    for node in cannot:
        left.answers(node, "1 no space left on device")
    done = left.scavenge("--json")
    assert done.code == 0 and [call.split()[0] for call in left.calls()] == asked, done
    (one,) = done.json()["datasets"]
    assert (one["verdict"], one["bytes"]) == ("saved", 1000)


def test_of_a_shared_store_all_is_saved_by_a_node_that_cannot_read_something_else(left: Left) -> None:
    for node in HELD:
        (left.storage(node) / "held.json").write_text(json.dumps([listed(3, ALL, shared=True)]))
    (left.storage("n0") / "trouble").write_text("not all that it has could be read")
    done = left.scavenge()
    assert done.code == 0 and [call.split()[0] for call in left.calls()] == ["n0"], done


@pytest.mark.parametrize("good, asked, code", [
    (["n1", "n2", "n3"], ["n0", "n1"], 0), (["n2", "n3"], ["n0", "n1", "n2"], 0), (["n3"], ["n0", "n1", "n2"], 1),
])
def test_what_one_node_cannot_read_of_a_shared_store_a_few_others_try(left: Left, good: List[str], asked: List[str],
                                                                     code: int) -> None:
    for node in HELD:
        (left.storage(node) / "held.json").write_text(
            json.dumps([listed(3, ALL if node in good else [0, 1], shared=True)]))
        if node not in good:
            (left.storage(node) / "trouble").write_text(f"cannot read /all/dataset.3.{3:032x}/rank.2/files/x: I/O error")
    done = left.scavenge("--json")
    assert done.code == code and [call.split()[0] for call in left.calls()] == asked, done
    assert "n0 could not copy all of it: cannot read /all/dataset.3." in done.printed, done
    assert done.json()["datasets"][0]["failed_nodes"] == {}


@pytest.mark.parametrize("kind, outcome, code", [
    ({}, "there", 0), ({}, "outlived", 0), ({}, "newer", 1), ({}, "uncommitted", 0), ({}, "lost", 1), ({}, "refused", 1),
    (OUTPUT, "outlived", 1), (OUTPUT, "uncommitted", 0),
])
def test_each_outcome_of_the_rebuild(left: Left, kind: Dict[str, Any], outcome: str, code: int) -> None:
    left.hold(listed(3, ALL, becomes=outcome, **kind))
    assert left.scavenge().code == code


def test_what_is_in_the_prefix_directory_is_left_there(left: Left) -> None:
    left.hold(listed(2, ALL), listed(3, ALL, in_prefix=True))
    done = left.scavenge()
    assert done.code == 0 and "nothing to save" in done.printed and left.calls() == []


def test_what_no_node_had_committed_is_not_tried(left: Left) -> None:
    """A restart would pass over it too: neither an output nor a checkpoint of that kind keeps the others from being
    saved."""
    left.hold(listed(1, ALL), listed(2, ALL, committed=False, **OUTPUT), listed(3, ALL, committed=False))
    done = left.scavenge("--json")
    assert done.code == 0 and [one["number"] for one in done.json()["datasets"]] == [1], done
    assert "ckpt.3 (dataset 3) was never complete" in done.printed and "ckpt.2" in done.printed, done


def test_what_no_node_had_committed_is_not_said_to_be_in_the_prefix_directory(left: Left) -> None:
    left.hold(listed(3, ALL, committed=False))
    done = left.scavenge("--json")
    assert done.code == 0 and done.json()["verdict"] == "nothing to save" and left.calls() == [], done
    assert "has all" not in done.printed and "complete" in done.printed, done
    (left.storage("n1") / "held.json").write_text("broken")
    assert "has all" not in left.scavenge().printed


@pytest.mark.parametrize("listed_by_nodes, complete, words", [(2, 1, "has all that was listed"), (2, 0, "was complete when the job died"),
                                                              (0, 0, "other nodes hold nothing")])
def test_of_what_was_listed_only_complete_datasets_are_said_to_be_in_the_prefix_directory(
        listed_by_nodes: int, complete: int, words: str) -> None:
    result = Result(partly={"n1": "a record is damaged"}, nodes=["n0", "n1"], listed=listed_by_nodes, complete=complete)
    assert words in missed_text(result)


def test_what_is_silent_is_reported_where_nothing_is_saved_too(left: Left) -> None:
    left.hold(listed(3, ALL, in_prefix=True))
    (left.storage("n1") / "held.json").write_text("broken")
    done = left.scavenge("--json")
    assert done.code == 0 and "n1: no answer (" in done.printed and list(done.json()["silent"]) == ["n1"], done


def test_an_idle_spare_does_not_speak_for_the_others(left: Left) -> None:
    for node in ("n0", "n1", "n2"):
        (left.storage(node) / "held.json").write_text("broken")
    done = left.scavenge("--json")
    assert done.code == 1 and done.json()["verdict"] == "failed", done
    assert "nothing to save" not in done.printed and "not all caches could be listed" in done.printed, done
    assert "no answer from n0, n1, n2" in done.printed


def test_what_cannot_be_read_costs_a_node_no_more_than_that(left: Left) -> None:
    left.hold(listed(3, ALL, output=True))
    for node in ("n1", "n2"):
        (left.storage(node) / "trouble").write_text("not all that it has could be read: Input/output error")
    done = left.scavenge("--json")
    assert done.code == 0, done
    (one,) = done.json()["datasets"]
    assert one["nodes"] == list(HELD) and one["failed_nodes"] == {} and list(done.json()["partly"]) == ["n1", "n2"]
    assert "n1, n2: a part of its cache cannot be listed" in done.printed and "could not copy" not in done.printed


def test_without_a_rebuild_all_is_copied(left: Left) -> None:
    left.hold(listed(2, ALL), listed(3, ALL))
    done = left.scavenge("--no-rebuild", "--json")
    assert done.code == 0 and [one["verdict"] for one in done.json()["datasets"]] == ["copied", "copied"]


def test_what_was_made_good_need_not_be_saved_later(left: Left) -> None:
    """All that the job needs has been saved when the time is up."""
    left.hold(listed(1, ALL, **OUTPUT), listed(2, ALL, **OUTPUT))
    native = Native(left.native, str(left.prefix), environment_of({}))
    said: List[str] = []
    with SimulatedNodes(dict(os.environ), len(HELD), 0, left.folder / "storage") as nodes:
        wish = Wish(settings_on_nodes(native, nodes, "1", None), run_ended=True, is_made_good=lambda number, name: number == 1)
        result = Scavenge(wish, native, nodes.remote(), said.append, lambda: "the allocation ends" if said else "").run(list(HELD), {})
    assert result.verdict() == SAVED and result.text() == "ckpt.2 saved", said


# Both have number 3 and the name ckpt.3.
OLDER, NEWER = {"uuid": f"{1:032x}"}, {"uuid": f"{9:032x}"}
FAILS = {"becomes": "failed"}


@pytest.mark.parametrize("older, newer, code, saved", [
    (FAILS, {}, 0, {"meant": "saved"}), ({}, FAILS, 1, {"meant": "failed", "older": "saved"}),
    ({}, {}, 0, {"meant": "saved", "older": "saved"}), (FAILS, FAILS, 1, {"meant": "failed"}),
    (FAILS, {"in_prefix": True}, 0, {}), ({"in_prefix": True}, FAILS, 1, {"meant": "failed"}),
    # One that was never complete takes no place of another.
    ({"committed": False}, {}, 0, {"meant": "saved"}), (FAILS, {"committed": False}, 1, {"meant": "failed"})])
def test_of_two_outputs_of_one_number_and_name_the_newer_one_counts(
        left: Left, older: Dict[str, Any], newer: Dict[str, Any], code: int, saved: Dict[str, str]) -> None:
    left.hold(listed(3, ALL, **OUTPUT, **OLDER, **older), listed(3, ALL, **OUTPUT, **NEWER, **newer))
    done = left.scavenge("--json")
    assert done.code == code, done
    assert [("older" if one["is_older"] else "meant", one["verdict"]) for one in done.json()["datasets"]] == list(saved.items()), done


@pytest.mark.parametrize("kind", [{}, {"output": True}])
def test_an_older_checkpoint_is_better_than_none(left: Left, kind: Dict[str, Any]) -> None:
    left.hold(listed(3, ALL, **OLDER, **kind), listed(3, ALL, **NEWER, **FAILS, **kind))
    done = left.scavenge("--json")
    assert [(one["is_older"], one["verdict"]) for one in done.json()["datasets"]] == [(False, "failed"), (True, "saved")], done


def test_a_begun_copy_of_an_older_dataset_is_not_missed(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer one may be on its way itself, or on the nodes."""
    left.hold(listed(3, ALL, **OUTPUT, **NEWER))
    drained = [Drained(3, OLDER["uuid"], "ckpt.3", UNFINISHED, "no part", True), Drained(4, "01", "ckpt.4", PUBLISHED, "", True),
               Drained(4, "09", "ckpt.4", UNFINISHED, "no part", True)]
    monkeypatch.setattr(Scavenge, "_drain", lambda *_: drained)
    with SimulatedNodes.left_in(dict(os.environ), left.folder / "storage") as manager:
        native = Native(left.native, str(left.prefix), environment_of({}))
        wish = Wish(settings_on_nodes(native, manager, "1", None), run_ended=True)
        result = Scavenge(wish, native, manager.remote(), print).run(list(HELD), {})
    assert [one.name for one in result.lost()] == ["ckpt.4"]
    assert result.now_in_prefix() == [(3, "ckpt.3")] and result.unsaved_outputs() == [(4, "ckpt.4")]


def test_no_time_is_left(left: Left) -> None:
    left.hold(listed(3, ALL))
    done = left.scavenge("--json", SCR_END_TIME=str(int(time.time()) + 2))
    assert done.code == 75 and done.json()["waits"] == "the allocation ends" and "nothing was tried" in done.printed, done
    assert not (left.prefix / "calls").exists()


def test_a_list_that_hangs_does_not_take_the_time_of_the_copies(left: Left) -> None:
    left.hold(listed(3, ALL))
    (left.storage("n3") / "list_s").write_text("60")
    done = left.scavenge("--json", SCR_END_TIME=str(int(time.time()) + 14))
    assert done.code == 0 and list(done.json()["silent"]) == ["n3"], done
    assert "n3: no answer (has not answered for 3" in done.printed


class AskedOf(NamedTuple):
    """In place of the native part."""

    path: Path
    prefix: str

    def unfinished_copies(self) -> List[Dict[str, Any]]:
        return []


def test_nodes_that_the_last_run_did_not_have_speak_for_none_of_its_nodes(left: Left) -> None:
    """A spare may hold what an earlier run has left there."""
    left.hold(listed(3, ALL, in_prefix=True))
    for node in ("n0", "n1"):
        (left.storage(node) / "held.json").write_text("broken")
    for ran_on, expected in (["n0", "n1"], FAILED), (["n0", "n1", "n2.site"], None), ([], None):
        with SimulatedNodes.left_in(dict(os.environ), left.folder / "storage") as manager:
            wish = Wish(manager.settings(), ran_on=ran_on)
            native = AskedOf(left.native, str(left.prefix))
            result = Scavenge(wish, native, manager.remote(), print).run(list(HELD), {})  # type: ignore[arg-type]
        assert list(result.silent) == ["n0", "n1"] and result.verdict() == expected, ran_on


def test_what_a_store_holds_that_cannot_be_read_is_not_called_saved(left: Left) -> None:
    left.hold(listed(3, ALL, in_prefix=True))
    (left.storage("n1") / "trouble").write_text("/ssd cannot be read")
    done = left.scavenge()
    assert done.code == 1 and "nothing to save" not in done.printed and "n1 could not be read" in done.printed, done


def test_lost_nodes_are_not_among_those_that_have_nothing_to_save(left: Left) -> None:
    left.hold(listed(3, ALL, in_prefix=True))
    left.lose("n1")
    done = left.scavenge("--nodes", "n0,n1")
    assert done.code == 0 and "that answered" in done.printed, done


def test_caches_that_are_left_aside_are_not_called_unreadable(left: Left) -> None:
    for node in HELD:
        (left.storage(node) / "left").write_text(f"runs here do not use the caches on {node}")
    done = left.scavenge("--json")
    assert done.code == 1 and list(done.json()["left"]) == list(HELD) and done.json()["partly"] == {}, done
    assert "n1: runs here do not use the caches on n1" in done.printed and "could not be read" not in done.printed
    assert "left aside" in done.printed and "other nodes" not in done.printed


def test_a_node_that_lists_later_than_an_idle_one_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Slurm, where a node that takes much longer than the others is given up otherwise."""
    monkeypatch.setenv("PATH", put_on_path(tmp_path))
    monkeypatch.setattr(labelled, "LATE_S", 0.3)
    monkeypatch.setattr(labelled, "LATE_TIMES", 0)
    native = tmp_path / "cairn"
    held = json.dumps({"datasets": [listed(3, ALL, in_prefix=True)]})
    native.write_text("#!/bin/sh\n[ $SLURMD_NODENAME = node0 ] && { echo '{\"datasets\": []}'; exit; }\n"
                      f"sleep 2; echo '{held}'\n")
    native.chmod(0o755)
    work = Scavenge(Wish({}), AskedOf(native, str(tmp_path)), Slurm({**os.environ, **SLURM}).remote(), print)  # type: ignore
    result = work.run(["node0", "node1"], {})
    assert result.silent == {} and result.listed == 1 and result.verdict() is None, result
    (tmp_path / "mute").write_text("node9\n")
    down = {"node9": "slurm says: down"}
    idle = work.run(["node0", "node9"], down)
    assert idle.silent == down and idle.verdict() == FAILED, "a node that is down is not asked, and counts as silent"


def test_on_a_terminal_the_rebuild_is_shown_too(left: Left) -> None:
    left.hold(listed(3, ALL, rebuild_s=2.5))
    assert "ckpt.3 (dataset 3): rebuilding and publishing, 1." in left.on_terminal()


def test_a_copy_that_takes_longer_than_the_allocation_is_ended(left: Left) -> None:
    left.hold(listed(3, ALL))
    left.answers("n3", "0 hang")
    begin = time.monotonic()
    done = left.scavenge("--json", SCR_END_TIME=str(int(time.time()) + 9))
    assert done.code == 75 and time.monotonic() - begin < 15 and "the allocation ends" in done.printed, done


def test_a_node_that_dies_meanwhile_is_done_without(left: Left) -> None:
    left.hold(listed(3, ALL))
    left.answers("n3", "0 die")
    done = left.scavenge()
    assert done.code == 0 and "n3 could not copy its part: the connection has closed" in done.printed, done


def test_where_no_node_answers_it_is_said_what_goes_there(left: Left) -> None:
    for node in HELD:
        (left.storage(node) / "held.json").write_text("broken")
    done = left.scavenge()
    assert done.code == 1 and "no node answered" in done.printed and "the shell" in done.printed, done


def test_secrets_do_not_go_to_the_nodes(left: Left, tmp_path: Path) -> None:
    """What is on a command line can be seen by all."""
    left.hold(listed(3, ALL))
    left.answers("n3", "0 hang")
    process = left.start(SCR_LOG_DB_PASS="sesame", SCR_FLUSH="7")
    while not (left.prefix / "hangs").exists():
        assert process.poll() is None
        time.sleep(0.01)
    lines = [words(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    seen = b"".join(line for line in lines if str(left.folder).encode() in line)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert b"SCR_FLUSH=7" in seen and b"sesame" not in seen
    assert process.returncode == 75, "it was interrupted, and can go on"


def test_settings_go_to_the_nodes_as_they_are_here(cairn: Path, tmp_path: Path) -> None:
    """A file may name variables that are not set there."""
    (tmp_path / ".scrconf").write_text("SCR_CACHE_BASE=$WHERE/cache\nSCR_LOG_DB_PASS=sesame\nCKPT=0 TYPE=XOR\n")
    native = Native(cairn, str(tmp_path), environment_of({"WHERE": "/there", "SCR_NODE_NAME": "n0", "SCR_FLUSH": "7",
                                                          "SCR_USER_NAME": "ada"}))
    kept = native.for_nodes()
    assert kept.pop("SCR_CONF_FILE", "") in ("", f"{tmp_path}/.scrconf")
    assert {key: kept[key] for key in kept if key not in ("SCR_COPY_TYPE", "SCR_SET_SIZE")} == {
        "SCR_PREFIX": str(tmp_path), "SCR_CACHE_BASE": "/there/cache", "SCR_FLUSH": "7", "SCR_USER_NAME": "ada"}


def test_a_damaged_record_does_not_hide_what_a_restart_begins_with(cairn: Path, tmp_path: Path) -> None:
    record = tmp_path / ".cairn" / "datasets" / ("dataset.1." + "0" * 31 + "1") / "dataset"
    record.parent.mkdir(parents=True)
    record.write_text("nonsense")
    native = Native(cairn, str(tmp_path), environment_of({}))
    printed = subprocess.run([cairn, "index", "list", "-p", tmp_path], env=native.environment, timeout=30, check=False)
    assert printed.returncode == 1
    assert native.restart_name() is None


def words(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


# ---- at the end of cairn run ----

LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && exit
shift 2
exec "$@"
"""


@pytest.fixture
def run(tmp_path: Path, cairn: Path) -> Callable[..., Any]:
    """A job whose program is a shell script; its nodes hold dataset 3 of two ranks."""
    launcher = tmp_path / "mpirun"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    for rank in range(2):
        storage = tmp_path / "storage" / "nodes" / f"n{rank}"
        storage.mkdir(parents=True)
        (storage / "held.json").write_text(json.dumps([listed(3, [rank], ranks=2), listed(2, [rank], ranks=2, **OUTPUT)]))
    command = scavenging_cairn(tmp_path, cairn)

    def started(script: str, *options: str, **settings: str) -> Any:
        job = Job(command, tmp_path, ["--nodes", "2", "--storage", str(tmp_path / "storage"), *options],
                  [str(launcher), "-n", "2", "sh", "-c", script], settings)
        return job.wait()
    return started


FINALIZED = ('for e in START FINALIZE; do echo "{\\"event\\": \\"$e\\", \\"time_us\\": 1, \\"job\\": \\"local\\"}" '
             '>> "$SCR_PREFIX/.cairn/log.json"; done')


@pytest.mark.parametrize("script, options, flush, printed", [
    ("exit 7", [], "10", "scavenge     ckpt.2 saved; ckpt.3 saved"),
    ("exit 7", [], "0", "scavenge     ckpt.2 saved; ckpt.3 saved"),
    ("exit 7", ["--no-scavenge"], "10", ""),
    (FINALIZED, [], "10", "scavenge     ckpt.2 saved; ckpt.3 saved"),
    (FINALIZED, [], "0", "scavenge     ckpt.2 saved"),
])
def test_a_job_saves_at_its_end_what_only_the_nodes_have(run: Callable[..., Any], tmp_path: Path, script: str,
                                                         options: List[str], flush: str, printed: str) -> None:
    done = run(script, *options, SCR_FLUSH=flush)
    assert done.code == (4 if "exit" in script else 0), done
    lines = [line for line in done.printed.splitlines() if line.startswith("cairn run: scavenge ")]
    assert lines == ([f"cairn run: {printed}"] if printed else []), done
    if printed:
        assert json.loads((tmp_path / ".cairn" / "run.json").read_text())["scavenged"] in printed


def test_a_job_that_has_died_tells_whose_holdings_are_not_known(run: Callable[..., Any], tmp_path: Path) -> None:
    """What is known of, the prefix directory has."""
    (tmp_path / "storage" / "nodes" / "n0" / "held.json").write_text(json.dumps([listed(3, [0], in_prefix=True)]))
    (tmp_path / "storage" / "nodes" / "n1" / "held.json").write_text("broken")
    assert "cairn run: scavenge     no answer from n1\n" in run("exit 7").printed


def test_a_job_that_has_left_nothing_says_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / "storage" / "nodes" / f"n{rank}" / "held.json").write_text(json.dumps([listed(3, [rank], in_prefix=True)]))
    assert "scavenge" not in run(FINALIZED).printed


def test_a_job_that_succeeds_need_not_hear_that_there_is_no_way_to_its_nodes(run: Callable[..., Any], tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / "storage" / "nodes" / f"n{rank}" / "held.json").write_text("broken")
    assert "scavenge  " not in run(FINALIZED).printed
    assert "scavenge     no node answered" in run("exit 7").printed


def test_what_keeps_the_scavenge_from_its_work_does_not_change_how_the_job_ended(run: Callable[..., Any],
                                                                                tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / "storage" / "nodes" / f"n{rank}" / "answer").write_text("75 a job or a command is using the cache")
    done = run("exit 7")
    assert done.code == 4 and "scavenge     ckpt.2 later" in done.printed, done
