"""What cairn status shows of the datasets that are not in the prefix directory."""

from typing import Any, Dict, List, Optional, Set

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
    ([], {1, 2}), ([Entry("ASYNC_FLUSH_STOP", 31.0, 2), Entry("ASYNC_FLUSH_FAIL", 31.0, 1), Entry("RUN_END", 32.0)], {1, 2}),
    ([Entry("ASYNC_FLUSH_SUCCESS", 31.0, 1), Entry("DRAIN_SUCCESS", 32.0, 2)], set()),
    ([Entry("ASYNC_FLUSH_FAIL", 31.0, 1), Entry("DELETE", 32.0, 1)], {2}),
    # A checkpoint that a newer one replaces. The program may have deleted what it had not begun to copy.
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR")], {1}),
    ([Entry("START", 50.0)], set())])
def test_what_the_program_has_left_is_what_it_has_begun_to_copy(what: List[Entry], left: Set[int]) -> None:
    assert set(unflushed_after(*MADE, *what).left()) == left


def test_what_others_have_found_in_the_prefix_directory_is_not_left() -> None:
    unflushed = unflushed_after(*MADE)
    unflushed.note_in_prefix([2, 7])
    assert unflushed.left() == {1: "out.1 (dataset 1)"}


@pytest.mark.parametrize("what, shown", [
    ([Entry("ASYNC_FLUSH_SUCCESS", 31.0, 1), Entry("ASYNC_FLUSH_SUCCESS", 32.0, 2)], {}),
    ([Entry("DRAIN_SUCCESS", 31.0, 1), Entry("PUBLISH_SUCCESS", 32.0, 2)], {}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR")], {1: "waits", 2: "waits", 3: "none"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", scheme="XOR"), Entry("ASYNC_FLUSH_STOP", 33.0, 2)], {1: "waits", 3: "none"}),
    ([Entry("ASYNC_FLUSH_FAIL", 31.0, 1, note="full")], {1: "none", 2: "waits"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", note="it failed")], {1: "waits", 2: "waits"}),
    ([Entry("CHECKPOINT_END", 33.0, 3, "step.3", to="/pfs")], {1: "waits", 2: "waits"}),
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
