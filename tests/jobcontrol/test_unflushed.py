"""What cairn status shows of the datasets that are not in the prefix directory."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional

import pytest

from cairn.commands import status
from cairn.job_log import Entry
from cairn.unflushed import Unflushed


def unflushed_after(*entries: Entry) -> Unflushed:
    made = Unflushed()
    for entry in entries:
        made.add(entry)
    return made


def shown_of(unflushed: Unflushed, copies: List[Dict[str, Any]], live_until_s: Optional[float]) -> List[str]:
    found = status.unflushed_of(unflushed, copies, live_until_s)
    return status.unflushed_lines({"alive": live_until_s is not None, "unflushed": found})


MADE = [Entry("START", 0.0), Entry("OUTPUT_END", 10.0, 1, "out.1", to="/ssd", scheme="SINGLE"), Entry("ASYNC_FLUSH_START", 11.0, 1, "out.1"),
        Entry("CHECKPOINT_END", 20.0, 2, "step.2", to="/ssd", scheme="SINGLE"), Entry("PROTECT_END", 29.0, 2, "step.2", 5.0, scheme="XOR"),
        Entry("ASYNC_FLUSH_START", 30.0, 2, "step.2")]


def test_status_shows_what_is_not_in_the_prefix_directory_with_its_state_and_age() -> None:
    """The copy of a dataset has a plan there when its turn comes."""
    planned = [{"number": 1, "name": "out.1"}]
    begun, waits = "not flushed out.1 (dataset 1): written for ", "not flushed step.2 (dataset 2): protected for "
    live = unflushed_after(*MADE)
    assert shown_of(live, [], 40.0) == [f"{begun}30.0 s; its copy waits", f"{waits}15.0 s; its copy waits"]
    assert shown_of(live, planned, 40.0) == [f"{begun}30.0 s; its copy has begun", f"{waits}15.0 s; its copy waits"]
    gone = unflushed_after(*MADE, Entry("CALL", 35.0), Entry("RUN_END", 90.0))
    assert shown_of(gone, planned, None) == [
        "not flushed out.1 (dataset 1): was written for 25.0 s at the last sign of life; its copy has begun",
        "not flushed step.2 (dataset 2): was protected for 10.0 s at the last sign of life"]


@pytest.mark.parametrize("what, left", [
    ([], [1, 2]), ([Entry("ASYNC_FLUSH_STOP", 31.0, 2), Entry("ASYNC_FLUSH_FAIL", 31.0, 1), Entry("RUN_END", 32.0)], [1, 2]),
    ([Entry("ASYNC_FLUSH_SUCCESS", 31.0, 1), Entry("DRAIN_SUCCESS", 32.0, 2)], []),
    ([Entry("ASYNC_FLUSH_FAIL", 31.0, 1), Entry("DELETE", 32.0, 1)], [2]),
    # A checkpoint that a newer one replaces. The program may have deleted what it had not begun to copy.
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR")], [1]),
    ([Entry("START", 50.0)], [])])
def test_what_the_program_has_left_is_what_it_has_begun_to_copy(what: List[Entry], left: List[int]) -> None:
    assert numbers_of(unflushed_after(*MADE, *what).left()) == left


def test_what_others_have_found_in_the_prefix_directory_is_not_left() -> None:
    unflushed = unflushed_after(*MADE)
    unflushed.note_in_prefix([(2, "step.2"), (7, "step.7")])
    assert unflushed.left() == ["out.1 (dataset 1)"]


def test_an_output_that_others_could_not_save_is_left_and_named_once() -> None:
    """Those of a run before the log too. What is lost is not left."""
    unflushed = unflushed_after(*entries_of("o1 +1 -1 o2 +2 !2 -2 o3"))
    unflushed.note_unsaved([(1, "d1"), (2, "d2"), (3, "d3"), (1, "of a run before the log"), (7, "")])
    assert unflushed.left() == ["d1 (dataset 1)", "d3 (dataset 3)", "of a run before the log (dataset 1)", "without a name (dataset 7)"]
    assert unflushed.missing() == ["d2 (dataset 2)"]
    again = unflushed_after(*entries_of("o1 run o3:1"))
    again.note_in_prefix([(3, "d1")])
    again.note_unsaved([(1, "d1")])
    assert again.left() == []
    damaged = unflushed_after(*entries_of("o1 +1 -1 o2 +2 !2 -2"))
    damaged.note_unsaved([(1, ""), (2, "")])
    assert (damaged.left(), damaged.missing()) == (["d1 (dataset 1)"], ["d2 (dataset 2)"])


def entries_of(words: str) -> List[Entry]:
    """"c1 o2 b3": a checkpoint, an output, and what is both; "+" begins to copy the last one of that number, "-" ends that, "="
    has it in the prefix directory, "!" loses it, "x" deletes it; "r" and "u" restart from it, with the calls or without; "run":
    the next run begins; "end": it calls SCR_Finalize. A number after ":" is the name."""
    makes = {"c": "CHECKPOINT_END", "o": "OUTPUT_END", "b": "CHECKPOINT_END"}
    others = {"+": "ASYNC_FLUSH_START", "-": "ASYNC_FLUSH_STOP", "=": "ASYNC_FLUSH_SUCCESS", "!": "LOST", "x": "DELETE",
              "r": "RESTART_SUCCESS", "u": "CURRENT"}
    found, names, outputs = [Entry("START", 0.0)], {}, set()
    for time_s, word in enumerate(words.split(), 1):
        if word in ("run", "end"):
            found.append(Entry("START" if word == "run" else "FINALIZE", float(time_s), logged_us=time_s))
            continue
        kind, (dataset, _, name) = word[0], word[1:].partition(":")
        number = int(dataset)
        names[number] = f"d{name or dataset}" if kind in makes else names[number]
        outputs = outputs - {number} if kind == "c" else outputs | {number} if kind in "ob" else outputs
        found.append(Entry({**makes, **others}[kind], float(time_s), number, names[number], scheme="XOR" if kind in makes else "",
                           to="/ssd" if kind in makes else "", output=number in outputs))
    return found


def numbers_of(labels: List[str]) -> List[int]:
    return [int(number) for label in labels for number in re.findall(r"dataset (\d+)", label)]


@pytest.mark.parametrize("words, left, missing", [
    # As the library logs it: an output is lost, and written again under its name.
    ("o1 +1 !1 -1", [], [1]), ("o1 +1 !1 -1 o2:1 +2 =2", [], []), ("o1 +1 !1 -1 o2:1 +2 -2", [2], [1]),
    # Under another name it need not be the same, and a checkpoint is none. What is both is an output.
    ("o1 +1 !1 -1 o2 +2 =2", [], [1]), ("o1 +1 !1 -1 c2 +2 =2", [], [1]), ("b1 +1 !1 -1 c2 +2 =2", [], [1]),
    # A lost checkpoint. The next newest is due, and does not make the loss good.
    ("c1 c2 +2 !2 -2 +1 =1", [], [2]), ("c1 c2 +2 !2 -2 +1 -1", [1], [2]), ("c1 +1 !1 -1 c2 +2 =2", [], []),
    ("c1 +1 !1 -1 c2 +2 -2", [2], [1]), ("c1 +1 !1 -1 b2 +2 =2", [], []), ("c1 +1 !1 -1 o2 +2 =2", [], [1]),
    # It came to the prefix directory all the same, or goes again, or is not wanted any more.
    ("c1 +1 !1 -1 =1", [], []), ("c1 +1 !1 -1 c2 +2 =2 x2", [], [1]), ("c1 +1 !1 x1 -1", [], []),
    # The next run may find it whole, and may die too.
    ("c1 +1 !1 -1 run +1 -1", [1], []), ("o1 +1 !1 -1 run +1 =1", [], []), ("o1 +1 !1 -1 run +1 run end", [], [1]),
    # A deleted checkpoint.
    ("c1 c2 x2 +1 -1", [1], []), ("c1 c2 +2 =2 x2 +1 -1", [1], []), ("c1 c2 x2 +1 =1", [], []), ("c1 c2 x1 +2 -2", [2], []),
    ("c1 c2 c3 x3 x2 +1 -1", [1], []), ("c1 c2 x2 c3 +1 -1", [], []), ("c1 +1 x1 -1", [], [])])
def test_what_is_lost_or_deleted_is_not_left_and_the_next_newest_checkpoint_is_due(
        words: str, left: List[int], missing: List[int]) -> None:
    unflushed = unflushed_after(*entries_of(words))
    assert (numbers_of(unflushed.left()), numbers_of(unflushed.missing())) == (left, missing)


@pytest.mark.parametrize("words, missing", [
    # It is lost for good if no later run writes it again, from wherever that restarts.
    ("c3 o5 +5 !5 -5 run r3 c6 +6 =6 o7 +7 =7 end", [5]), ("c3 o5 +5 !5 -5 c6 run r6 o7 +7 =7 end", [5]),
    ("c3 o5 +5 !5 -5 run o6 +6 =6 end", [5]), ("c3 b5 +5 !5 -5 run u3 c6 +6 =6 end", [5]), ("o5 +5 !5 -5 run run", [5]),
    ("c3 o5 +5 !5 -5 c6 run r3 run r6 end", [5]),
    ("c3 o5 +5 !5 -5 run r3 o6:5 +6 =6 end", []), ("c3 o5 +5 !5 -5 run o6:5 +6 =6 run r6 end", []),
    ("c3 o5 +5 !5 -5 run r3 o6:5 +6 !6 -6 end", [5, 6]), ("c3 o5 +5 !5 -5 run r3 o6:5 +6 !6 -6 =6 end", []),
    ("c3 o5 +5 !5 -5 run r3 o6:5 +6 =6 x6 end", []), ("o5 +5 !5 -5 run !5 end", [5]),
    # The nodes of the next run have nothing of it, so its number goes to another one.
    ("c3 o5 +5 !5 -5 run r3 o4:5 +4 =4 end", []), ("c3 o5 +5 !5 -5 run r3 o4 +4 =4 o5:6 +5 =5 end", [5]),
    ("c3 o5 +5 !5 -5 run r3 o5 +5 =5 end", []), ("c3 o5 +5 !5 -5 run r3 o5 +5 !5 -5 end", [5]), ("o5 run o4:5 +4 =4 o5 +5 !5 -5 end", [5]), ("c3 o5 +5 !5 -5 run r3 o5:6 x5 end", [5]),
    # Only one in the prefix directory makes it good: one in the caches may be lost too, and no run logs that.
    ("c3 o5 +5 !5 -5 run r3 o5 +5 run r3 end", [5]), ("c3 o5 +5 !5 -5 run r3 o5 +5 run r3 o5 +5 =5 end", []),
    ("c3 o5 +5 !5 -5 run r3 o5 +5 run r3 o6:5 +6 =6 end", []), ("c3 o5 +5 !5 -5 run r3 o6:5 +6 =6 run r3 o5 end", []),
    ("c3 b5 +5 !5 -5 run r3 c5 run r3 end", [5]), ("c3 o5 +5 !5 -5 run r3 o5 +5 -5 end", []), ("c3 c5 +5 !5 -5 c5 end", []),
    # It was not lost if the program restarts from it.
    ("c3 b5 +5 !5 -5 run r5 end", []), ("c3 b5 +5 !5 -5 run u5 end", []), ("c3 o4 +4 !4 -4 b5 +5 !5 -5 run r5 end", [4]),
    # A checkpoint is needed until the program has gone on without it.
    ("c1 c2 +2 !2 -2 end", [2]), ("c1 c2 +2 !2 -2 run", [2]), ("c1 c2 +2 !2 -2 run r1", []), ("c1 c2 +2 !2 -2 run u1", []),
    ("c1 c2 +2 !2 -2 run end", []), ("c1 c2 +2 !2 -2 run o3", []), ("c1 c2 run +2 !2 -2 r1", []), ("c1 c2 run r1 +2 !2 -2", [2])])
def test_what_an_earlier_run_has_lost_is_missing_until_it_is_made_good(words: str, missing: List[int]) -> None:
    assert numbers_of(unflushed_after(*entries_of(words)).missing()) == missing


@pytest.mark.parametrize("words, number, name, is_made_good", [
    ("o5 +5 !5 -5 run", 5, "d5", False), ("o5 +5 !5 -5 run o6:5 +6 =6", 5, "d5", True), ("o5 +5 !5 -5 run +5 -5", 5, "d5", False),
    ("c5 +5 !5 -5 run end", 5, "d5", True), ("c5 +5 !5 -5 c6 +6 =6", 5, "", True),
    # A dataset of the number and name of a lost one, and one that the program has restarted from.
    ("c3 c5 +5 !5 -5 run r3 c5", 5, "d5", False), ("c3 c5 +5 !5 -5 run r3 c5:6", 5, "d5", True), ("c5 +5 !5 -5 run r5", 5, "d5", False),
    ("c3 c5 +5 !5 -5 run r3 c5 +5 !5 -5", 5, "d5", False), ("c3 o5 +5 !5 -5 run r3 o5 +5 -5", 5, "d5", False),
    ("c3 o5 +5 !5 -5 run r3 o5 +5 =5", 5, "d5", True), ("o5 run o5 +5 =5 !5", 5, "d5", False),
    ("c3 o5 +5 !5 -5 run r3 o6:5 +6 =6 run r3 o5", 5, "d5", False),
    # No run knows that it is lost.
    ("o5 run o6:5 +6 =6", 5, "d5", True), ("o5 run o6:5 +6", 5, "d5", False), ("o5 run o6 +6 =6", 5, "d5", False),
    ("c5 run c6 +6 =6", 5, "d5", False), ("o5 +5 =5 run o6:5", 6, "d5", False),
    # The log does not have it.
    ("o6:5 +6 =6", 5, "d5", True), ("o6:5 +6 =6", 7, "d5", False)])
def test_what_was_made_again_need_not_be_saved(words: str, number: int, name: str, is_made_good: bool) -> None:
    assert unflushed_after(*entries_of(words)).is_made_good(number, name) == is_made_good


def test_a_lost_output_is_made_good_by_one_that_is_written_to_the_prefix_directory() -> None:
    """The log need not have the lost one."""
    unflushed = unflushed_after(Entry("LOST", 1.0, 5, "d5", output=True), Entry("OUTPUT_END", 2.0, 5, "d5", to="/pfs"))
    assert unflushed.lost() == unflushed.missing() == []


@pytest.mark.parametrize("name", ["d5", ""])
def test_what_has_the_number_and_name_of_a_lost_output_is_not_lost_itself(name: str) -> None:
    """Others can try again to save it."""
    unflushed = unflushed_after(*entries_of("c3 o5 +5 !5 -5 run r3 o5 run r3 end"))
    assert (unflushed.lost(), unflushed.missing()) == ([], ["d5 (dataset 5)"])
    unflushed.note_unsaved([(5, name)])
    assert (numbers_of(unflushed.left()), unflushed.missing()) == ([5], [])


def test_another_dataset_of_the_same_number_is_not_lost_and_has_not_come() -> None:
    """As the nodes of an earlier run list it."""
    unflushed = unflushed_after(*entries_of("o5 +5 run o5:6 +5 -5"), Entry("LOST", 9.0, 5, "d5", output=True))
    assert (unflushed.left(), unflushed.missing()) == (["d6 (dataset 5)"], ["d5 (dataset 5)"])
    unflushed.note_in_prefix([(5, "d5")])
    assert unflushed.left() == ["d6 (dataset 5)"]


def test_what_others_save_of_a_lost_dataset_is_not_lost() -> None:
    unflushed = unflushed_after(*entries_of("o1 !1 o2 !2"), Entry("LOST", 9.0, 7, "of a run before the log", output=True))
    assert unflushed.lost() == unflushed.missing() == ["d1 (dataset 1)", "d2 (dataset 2)", "of a run before the log (dataset 7)"]
    unflushed.note_in_prefix([(1, "d1"), (7, "")])
    assert unflushed.lost() == ["d2 (dataset 2)"]


@dataclass
class Held:
    """A dataset on nodes."""

    number: int
    name: str
    uuid: str
    is_older: bool = False


def held(words: str) -> List[Held]:
    """"5@3 5:6@4": dataset 5, begun at time 3; one of that number and the name of 6, begun at time 4; "5:@4": without a name."""
    found = []
    for word in words.split():
        dataset, _, time_us = word.partition("@")
        number, colon, name = dataset.partition(":")
        found.append(Held(int(number), f"d{name or number}" if name or not colon else "", f"{int(time_us):016x}{7:016x}"))
    return found


@pytest.mark.parametrize("words, known, older", [
    # By their UUIDs, however they are ordered.
    ("", "5@1 5@2", "5@1"), ("", "5@2 5@1", "5@1"), ("", "5@1 5@3 5@2", "5@1 5@2"), ("", "5@1", ""), ("", "", ""),
    ("", "5@9 5@10", "5@9"),
    # Both the number and the name count, as far as they are known.
    ("", "5@1 6:5@2", ""), ("", "5@1 5:6@2", ""), ("", "5@1 5:@2", "5@1"), ("", "5:@1 5@2", "5:@1"), ("", "5:@1 6@2", ""),
    # By the beginning of the run that has made the last one. The log need not have those before.
    ("o5 run o5", "5@1", "5@1"), ("o5 run o5", "5@2", ""), ("o5 run o5", "5@1 5@2", "5@1"), ("run o5", "5@0", "5@0"),
    ("o5 run c3 run r3 o6", "5@1 6@4", ""), ("o5 run o5:6", "5@1", ""), ("o5 run o5:6", "5:@1", "5:@1"), ("o5 run o4 run", "5@1", ""),
    ("o5 run o5 +5 =5", "5@1", "5@1"), ("o5 !5 run o5 !5", "5@1", "5@1"), ("o5 run o5 run", "5@2", "")])
def test_the_newest_of_one_number_and_name_is_meant(words: str, known: str, older: str) -> None:
    found = held(known)
    unflushed_after(*entries_of(words)).mark_older(found)
    assert [one.uuid for one in found if one.is_older] == [one.uuid for one in held(older)]


def test_a_uuid_is_compared_with_the_clock_of_its_node() -> None:
    """cairn run enters times of its own clock."""
    unflushed = Unflushed()
    for what, time_us in (("START", 10), ("OUTPUT_END", 12), ("START", 20), ("OUTPUT_END", 22)):
        entry = Entry.of_line(json.dumps({"event": what, "time_us": time_us, "dataset": 5, "name": "d5"}))
        assert entry is not None
        unflushed.add(replace(entry, time_s=100.0))
    for time_us, is_older in ((11, True), (19, True), (20, False), (21, False)):
        found = held(f"5@{time_us}")
        unflushed.mark_older(found)
        assert found[0].is_older == is_older, time_us


@pytest.mark.parametrize("what, shown", [
    ([Entry("ASYNC_FLUSH_SUCCESS", 31.0, 1), Entry("ASYNC_FLUSH_SUCCESS", 32.0, 2)], {}),
    ([Entry("DRAIN_SUCCESS", 31.0, 1), Entry("PUBLISH_SUCCESS", 32.0, 2)], {}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR")], {1: "waits", 2: "waits", 3: "none"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR"), Entry("ASYNC_FLUSH_STOP", 33.0, 2)], {1: "waits", 3: "none"}),
    ([Entry("ASYNC_FLUSH_FAIL", 31.0, 1, note="full")], {1: "none", 2: "waits"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", note="it failed")], {1: "waits", 2: "waits"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", to="/pfs")], {1: "waits", 2: "waits"}),
    ([Entry("LOST", 31.0, 1), Entry("DELETE", 32.0, 2)], {}),
    ([Entry("START", 50.0)], {})])
def test_status_shows_no_dataset_that_has_come_or_was_replaced(what: List[Entry], shown: Dict[int, str]) -> None:
    found = status.unflushed_of(unflushed_after(*MADE, *what), [], 60.0)
    assert {one["number"]: one["copy"] for one in found} == shown


def test_status_shows_a_checkpoint_that_is_an_output_too_until_it_has_come() -> None:
    """Its copy was given up, and the caches keep it for the next one."""
    made = [Entry("CHECKPOINT_END", 10.0, 1, "both.1", scheme="XOR", output=True),
            *(Entry(what, 11.0, 1, "both.1") for what in ("ASYNC_FLUSH_START", "ASYNC_FLUSH_FAIL")),
            Entry("CHECKPOINT_END", 20.0, 2, "step.2", scheme="XOR"), Entry("CHECKPOINT_END", 30.0, 3, "step.3", scheme="XOR")]
    assert shown_of(unflushed_after(*made), [], 40.0) == [
        "not flushed both.1 (dataset 1): protected for 30.0 s", "not flushed step.3 (dataset 3): protected for 10.0 s"]
    assert [one.label() for one in unflushed_after(*made, Entry("FLUSH_SUCCESS", 35.0, 1)).waiting()] == ["step.3 (dataset 3)"]
