"""The account at the end counts what was lost and saved."""

import json
import re
from typing import Any, List, Mapping

import pytest

from cairn import folding
from cairn.account import Account, Run, account_of_json, lines_of, never_due, no_calls, size_text, summary_of, time_text
from cairn.job_log import Checkpoint, Progress, Transfers


def run(number: int, begun_s: float, **more: Any) -> Run:
    return Run(number, ["n0"], begun_s, **more)


def account_of(*runs: Run) -> Account:
    return Account("local", "mpirun", "7", ["n0", "n1", "n2"], 1, {"n1": "gone"}, 0.0, list(runs))


DIED = {"failed": True, "how": "signal 9"}
# Computes from 10, the newest checkpoint is of 100, dies at 130; again from 140, computing from 150.
TWICE = (run(1, 0, computing_s=10, newest_s=100, kept_s=90, noticed_s=130, ended_s=131, **DIED),
         run(2, 140, computing_s=150, restarted_from="a", regained_s=90, kept_s=90, ended_s=300))
AGAIN = {"restarted_from": "a", "regained_s": 90, "kept_s": 90}


@pytest.mark.parametrize("runs, lost, saved", [
    ((), 0, 0),
    ((run(1, 0, computing_s=10, newest_s=100, ended_s=200),), 0, 0),
    (TWICE, 50, 90),
    ((run(1, 0, computing_s=10, ended_s=131, **DIED), run(2, 140, computing_s=150, ended_s=300)), 140, 0),
    (TWICE[:1], 31, 0),
    # The second run goes back to an older checkpoint, or begins from scratch: what the first one computed is lost.
    ((TWICE[0], run(2, 140, computing_s=150, restarted_from="b", regained_s=40, ended_s=300)), 50 + 50, 40),
    ((TWICE[0], run(2, 140, computing_s=150, from_scratch="gone", ended_s=300)), 140, 0),
    # So is what a run before it has kept.
    ((TWICE[0], run(2, 140, computing_s=150, ended_s=200, **AGAIN, **DIED),
      run(3, 210, computing_s=225, from_scratch="gone", ended_s=300)), 215, 90),
    # It did not come so far yet that it computed.
    ((TWICE[0], run(2, 140)), 900, 0),
    # The second run makes no dataset: its beginning is lost once, by the run before it.
    ((TWICE[0], run(2, 140, computing_s=150, ended_s=200, **AGAIN, **DIED),
      run(3, 210, computing_s=225, ended_s=300, **AGAIN)), 50 + 75, 90 + 90),
    # So it is where it does not come to compute.
    ((TWICE[0], run(2, 140, ended_s=145, **AGAIN, **DIED), run(3, 150, computing_s=160, ended_s=300, **AGAIN)),
     45 + 15, 90 + 90),
    # The second restart saves what both runs before it have kept.
    ((TWICE[0], run(2, 140, computing_s=150, newest_s=200, restarted_from="a", regained_s=90, kept_s=140, ended_s=210,
                    **DIED), run(3, 220, computing_s=225, restarted_from="b", regained_s=140, ended_s=300)),
     50 + 25, 90 + 140),
])
def test_time_lost_and_saved(runs: "tuple[Run, ...]", lost: float, saved: float) -> None:
    account = account_of(*runs)
    assert (account.lost_s(1000), account.saved_s()) == (lost, saved)


def test_the_account_is_ten_lines() -> None:
    account = account_of(*TWICE)
    account.outcome, account.reason = "success", "it is done"
    lines = lines_of(account, Progress(), 300)
    assert len(lines) == 7 and lines[0] == "success: it is done"
    assert "computing after 20.0 s" in "\n".join(lines) and "1 spare left" in "\n".join(lines)
    many: List[Run] = [run(i, i, computing_s=i, ended_s=i, **DIED) for i in range(1, 40)]
    assert len(lines_of(account_of(*many), Progress(), 300)) == 9


def test_the_account_leaves_out_what_is_zero() -> None:
    account = account_of(run(1, 0, computing_s=1, ended_s=10))
    account.nodes, account.unfit = account.nodes[:account.wanted], {}
    text = "\n".join(lines_of(account, Progress(commits=2), 300)[1:])
    assert text.count("\n") == 2 and not re.search(r"\b(0|none|died|spare|unfit)\b", text.replace("5 min 00 s", "")), text
    written, flushed, fetched = (Transfers(count, 1024, 1.0) for count in (2, 3, 4))
    full = "\n".join(lines_of(account_of(*TWICE), Progress(commits=2, failed=3, restarts=1, written=written, flushed=flushed, fetched=fetched), 300))
    for part in ("of which 1 died", "3 failed", "1 restart", "time lost", "time saved", "to cache     2 times", "to prefix    3 times",
                 "from prefix  4 times"):
        assert part in full, part


@pytest.mark.parametrize("progress, lines", [
    (Progress(commits=2, outputs=1), ["checkpoints  2 made", "outputs      1 made"]), (Progress(commits=2), ["checkpoints  2 made"]),
    (Progress(outputs=3, outputs_failed=2), ["checkpoints  none made", "outputs      3 made, 2 failed"]),
    (Progress(outputs_failed=1), ["checkpoints  none made", "outputs      1 failed"])])
def test_outputs_have_a_line_of_their_own(progress: Progress, lines: List[str]) -> None:
    found = lines_of(account_of(run(1, 0)), progress, 300)
    assert [line for line in found if line.startswith(("checkpoints", "outputs"))] == lines


def test_a_death_right_after_a_checkpoint_is_no_time_lost() -> None:
    for gap_s, count in ((1e-5, 0), (0.5, 1)):
        ended_s = 100 + gap_s
        account = account_of(run(1, 0, computing_s=10, newest_s=100, kept_s=90, noticed_s=ended_s, ended_s=ended_s, **DIED))
        assert "\n".join(lines_of(account, Progress(), 300)).count("time lost") == count


def test_programs_get_what_people_get() -> None:
    account = account_of(*TWICE)
    account.outcome, account.reason, account.scavenged = "success", "it is done", "step.20 saved"
    written, flushed, fetched = (Transfers(count, 1024, 1.0) for count in (2, 3, 4))
    progress = Progress(commits=7, failed=3, restarts=1, outputs=2, outputs_failed=4, checkpoints={20: Checkpoint("step.20")},
                        written=written, flushed=flushed, fetched=fetched)
    printed = json.loads(json.dumps(summary_of(account, progress, 300, ["", "n1 lives"])))
    assert (printed["outcome"], printed["reason"], printed["scavenged"], printed["advice"]) == ("success", "it is done", "step.20 saved", ["n1 lives"])
    assert printed["checkpoints"] == {"made": 7, "failed": 3, "newest": "step.20", "restarts": 1}
    assert printed["outputs"] == {"made": 2, "failed": 4}
    assert (printed["runs_died"], printed["spares_left"], printed["unfit"]) == (1, 1, {"n1": "gone"})
    assert (printed["lost_s"], printed["saved_s"], printed["ended_s"]) == (50, 90, 300)
    assert [printed["moved"][name]["count"] for name in ("to_cache", "to_prefix", "from_prefix")] == [2, 3, 4]
    assert [run["how"] for run in printed["runs"]] == ["signal 9", ""]


def test_nodes_with_one_reason_are_one_entry() -> None:
    account = account_of(*TWICE)
    account.unfit = {f"m{i:03}": "the node is off" for i in range(512)}
    account.unfit["x"] = "no disk"
    [line] = [line for line in lines_of(account, Progress(), 300) if line.startswith("nodes")]
    assert line.endswith("unfit: 512 nodes (m000 ... m511) (the node is off), x (no disk)")


@pytest.mark.parametrize("messages, lines", [
    ({}, []), ({"n1": "off"}, ["n1: off"]), ({"n1": "off", "n2": "full", "n3": "off"}, ["n1, n3: off", "n2: full"]),
    ({f"n{i}": "off" for i in range(3)}, ["n0, n1, n2: off"]),
    ({f"n{i}": "off" for i in range(4)}, ["4 nodes (n0 ... n3): off"]),
])
def test_equal_messages_become_one(messages: Mapping[str, str], lines: List[str]) -> None:
    assert folding.lines_of(messages) == lines


def test_it_says_that_a_run_began_from_scratch_and_why() -> None:
    lines = "\n".join(lines_of(account_of(TWICE[0], run(2, 140, computing_s=150, from_scratch="n1 and n2 are gone")),
                               Progress(), 300))
    assert "run 2 began from scratch: n1 and n2 are gone" in lines
    assert "FROM SCRATCH" not in "\n".join(lines_of(account_of(*TWICE), Progress(), 300))


UNSET = {"SCR_CHECKPOINT_INTERVAL": "0", "SCR_CHECKPOINT_SECONDS": "0", "SCR_CHECKPOINT_OVERHEAD": "0.0"}


@pytest.mark.parametrize("progress, settings, says", [
    (Progress(finalized=True), UNSET, True),
    (Progress(finalized=False), {}, True),
    (Progress(finalized=None), UNSET, False),  # nothing is known of it: it has not called SCR_Init
    (Progress(finalized=True, commits=1), UNSET, False),
    (Progress(finalized=True), {**UNSET, "SCR_CHECKPOINT_SECONDS": "60"}, False)])
def test_where_no_checkpoint_was_made_as_none_was_ever_due_it_says_what_to_set(
        progress: Progress, settings: Mapping[str, str], says: bool) -> None:
    advice = never_due(account_of(run(1, 1)), progress, settings)
    assert ("SCR_CHECKPOINT_INTERVAL" in advice) == says
    lines = lines_of(account_of(*TWICE), progress, 300, [advice, "n1 lives"])
    assert len(lines) == 8 + says and lines[-1].endswith("n1 lives")


@pytest.mark.parametrize("runs, progress", [
    ([run(1, 1, how="hung; lost n1", failed=True)], Progress(finalized=False)),
    ([run(1, 1, restarted_from="ckpt.9")], Progress(finalized=True)),
    ([run(1, 1)], Progress(finalized=False, init_failure="another run is alive"))])
def test_it_does_not_advise_checkpoints_where_something_else_kept_them_away(runs: List[Run], progress: Progress) -> None:
    assert never_due(account_of(*runs), progress, UNSET) == ""


def test_it_survives_being_written_down() -> None:
    account = account_of(*TWICE)
    assert account_of_json({**account.as_json(), "of a later version": 1}) == account


@pytest.mark.parametrize("count, text", [(0, "0 B"), (1000, "1000 B"), (2048, "2 KiB"), (1536 << 20, "1.5 GiB"),
                                         (512 << 20, "512 MiB"), (3 << 40, "3 TiB")])
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize("seconds, text", [(0, "0 s"), (0.0123, "12.3 ms"), (0.99999, "1.0 s"), (99, "99.0 s"), (130, "2 min 10 s"), (7260, "2 h 01 min")])
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize("progress, settings, outcome, says", [
    (Progress(), {}, "success", True), (Progress(), {}, "given up", False), (Progress(finalized=True), {}, "success", False),
    (Progress(init_failure="busy"), {}, "success", False), (Progress(), {"CAIRN_LOG_JSON": "0"}, "success", False),
    (Progress(), {"SCR_ENABLE": "0"}, "success", False)])
def test_a_program_without_a_call_of_the_library_is_reported(progress: Progress, settings: Mapping[str, str], outcome: str,
                                                            says: bool) -> None:
    advice = no_calls(Account(outcome=outcome), progress, settings)
    assert ("SCR_Init" in advice) == says == bool(advice)


def test_what_only_the_scavenge_has_copied_is_not_called_none() -> None:
    lines = lines_of(Account(scavenged="step.20 saved"), Progress(), 1.0)
    assert not any(line.startswith("to prefix") for line in lines)
    assert any(line.startswith("scavenge ") and "step.20 saved" in line for line in lines)


def test_the_account_says_of_a_scavenge_only_what_came_of_it() -> None:
    printed = "\n".join(lines_of(Account(scavenged="step.20 failed"), Progress(), 1.0))
    assert "step.20 failed" in printed and "copied" not in printed
    by_runs = Progress(flushed=Transfers(2, 4 << 20, 1.0))
    lines = lines_of(Account(scavenged="step.20 saved"), by_runs, 1.0)
    assert "scavenge" not in next(line for line in lines if line.startswith("to prefix"))
