"""The page as text: well-formed, by itself, and nobody's names become a part of it."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import List, Tuple

import pytest

from cairn.job_log import read_log
from cairn.reporting.history import history_of
from cairn.reporting.page import Unread, page_of, share_text
from cairn.reporting.style import DARK, LIGHT
from logs import HOSTILE, Log, eventful

ALONE = {"meta", "br", "img", "link", "input"}


class Checker(HTMLParser):
    """Every element is closed where it was opened; what it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: List[str] = []
        self.seen: List[str] = []
        self.links: List[str] = []
        self.headings: List[int] = []
        self.unnamed: List[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: "list[tuple[str, str | None]]") -> None:
        named = dict(attrs)
        self.seen.append(tag)
        self.links += [str(value) for key, value in attrs if key in ("src", "href", "srcset", "action")]
        if named.get("role") == "img" and not named.get("aria-label"):
            self.unnamed.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def page(tmp_path: Path, log: Log) -> str:
    return page_of([history_of("here " + HOSTILE, read_log(log.write(tmp_path) / ".cairn" / "log.json").entries, 1)],
                   [Unread("there", "no such file")], 1_800_000_000.0)


def checked(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return checker


@pytest.mark.parametrize("log", [Log(), eventful(), eventful(40)], ids=["empty", "eventful", "long"])
def test_it_is_well_formed_and_needs_nothing_else(tmp_path: Path, log: Log) -> None:
    text = page(tmp_path, log)
    found = checked(text)
    assert "script" not in found.seen and found.links == []
    assert "@import" not in text and "url(" not in text
    assert found.unnamed == [] and found.headings[0] == 1
    assert all(after <= before + 1 for before, after in zip(found.headings, found.headings[1:]))
    assert "there: no such file" in found.text


def test_names_of_the_log_are_only_text(tmp_path: Path) -> None:
    found = checked(page(tmp_path, eventful()))
    assert HOSTILE in found.text and "no space left" in found.text
    assert "script" not in found.seen


def test_what_it_tells(tmp_path: Path) -> None:
    text = checked(page(tmp_path, eventful())).text
    for words in ("3runs, of which 2 died", "12checkpoints committed, 3 failed", "12 of 15", "80 %", "1 GiB/s",
                  "512 MiB/s", "256 MiB/s", "stopped as asked (JOB_HALTED", "1 line of the log could not be read",
                  "died (run 1: lost <script>"):
        assert words in text, words


def test_of_many_runs_the_last_are_shown(tmp_path: Path) -> None:
    text = checked(page(tmp_path, eventful(40))).text
    assert "The last 30 of 40 runs" in text and "Run 40" in text and "Run 10" not in text
    assert "The last 50 of 81 failures" in text


def test_a_log_of_thousands_of_datasets_is_no_large_page(tmp_path: Path) -> None:
    log = Log()
    log.start()
    for number in range(5000):
        log.checkpoint(number + 1)
    assert len(page(tmp_path, log)) < 600_000


def test_nodes_that_failed_before_any_run_are_shown(tmp_path: Path) -> None:
    log = Log()
    log.add("NODE_FAIL", note="n8: does not answer")
    text = checked(page(tmp_path, log)).text
    assert "No run has logged anything here yet" in text and "n8does not answer" in text


def test_where_nothing_is_logged_it_says_so(tmp_path: Path) -> None:
    text = checked(page(tmp_path, Log())).text
    assert "Nothing to show yet" in text and "No run has logged anything here yet" in text
    assert "%" not in text, "no rates of nothing"


@pytest.mark.parametrize("part, whole, text", [(0, 0, "–"), (0, 5, "0.0 %"), (1, 100_000, "< 0.1 %"), (1, 3, "33 %"),
                                               (99_999, 100_000, "> 99.9 %"), (346, 348, "99.4 %"), (5, 5, "100 %")])
def test_shares_are_not_rounded_to_all_or_nothing(part: float, whole: float, text: str) -> None:
    assert share_text(part, whole) == text


def luminance(colour: str) -> float:
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_and_pictures_be_seen(colours: "dict[str, str]") -> None:
    def contrast(a: str, b: str) -> float:
        lighter, darker = sorted((luminance(colours[a]), luminance(colours[b])), reverse=True)
        return (lighter + 0.05) / (darker + 0.05)

    assert set(LIGHT) == set(DARK)
    for ink in ("ink", "faint", "good", "bad"):
        for ground in ("ground", "panel"):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    for phase in ("start", "rebuild", "fetch", "compute", "write", "encode", "flush", "failed"):
        assert contrast(phase, "panel") >= 2, phase


# ---- the command ----


def run(cairn: Path, folder: Path, *words: object) -> Tuple[int, str, str]:
    done = subprocess.run([cairn, "report", *map(str, words)], cwd=folder, stdout=subprocess.PIPE, timeout=30,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_command_writes_what_it_is_asked_for(cairn: Path, tmp_path: Path) -> None:
    one, two = eventful().write(tmp_path / "one"), Log().write(tmp_path / "two")
    code, output, printed = run(cairn, tmp_path, "-p", one, "--prefix", two, "-o", "a.html", "--metrics", "a.prom")
    assert (code, output, printed) == (0, "a.html: 3 runs of 2 jobs\n", "")
    assert str(one) in (tmp_path / "a.html").read_text() and str(two) in (tmp_path / "a.html").read_text()
    assert (tmp_path / "a.prom").read_text().endswith("# EOF\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.prom", "one", "two"]


def test_the_command_prints_json(cairn: Path, tmp_path: Path) -> None:
    log = eventful().write(tmp_path / "one") / ".cairn" / "log.json"
    code, output, _ = run(cairn, tmp_path, log, "-p", tmp_path / "gone", "--json", "--metrics", "figures")
    printed = json.loads(output)
    [history] = [history_of(str(log), read_log(log).entries, 0)]
    assert (code, printed["page"], printed["metrics"]) == (1, "report.html", "figures")
    [job] = printed["jobs"]
    assert job["runs"] == 3 and job["newest"] == history.newest and job["lost_s"] == history.lost_s()
    assert {name: job["operations"][name]["bad"] for name in job["operations"]} == {name: one.bad for name, one in history.outcomes().items()}
    assert [one["reason"] for one in job["failures"]] == [one.reason for one in history.failures()] != []
    assert [Path(one["source"]).name for one in printed["unread"]] == ["gone"]
    assert run(cairn, tmp_path, log, "--json", "-o", "-")[0] == 2


def test_a_log_is_taken_once_and_one_that_is_not_there_is_named(cairn: Path, tmp_path: Path) -> None:
    log = eventful().write(tmp_path / "one") / ".cairn" / "log.json"
    code, output, printed = run(cairn, tmp_path, log, log, "-p", tmp_path / "gone")
    assert (code, output) == (1, "report.html: 3 runs of 1 job\n"), "the page is there, but a prefix directory is not"
    assert "gone" in printed and "SCR_PREFIX" in printed
    assert "gone" in (tmp_path / "report.html").read_text()


def test_where_there_is_no_log_nothing_is_written(cairn: Path, tmp_path: Path) -> None:
    code, output, printed = run(cairn, tmp_path)
    assert (code, output) == (1, "") and "no log could be read" in printed
    assert list(tmp_path.iterdir()) == []
    assert run(cairn, tmp_path, "--no-such-option")[0] == 2


def test_a_page_that_cannot_be_written_is_reported(cairn: Path, tmp_path: Path) -> None:
    log = eventful().write(tmp_path) / ".cairn" / "log.json"
    code, _, printed = run(cairn, tmp_path, log, "-o", tmp_path / "no" / "folder.html")
    assert code == 1 and "folder.html" in printed


def test_the_page_says_how_exposed_the_datasets_were_that_came_and_those_that_did_not(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.checkpoint(1, flush=True)
    log.add("CHECKPOINT_END", 5, dataset=2, name="ckpt.2", seconds=3.0, scheme="XOR", set_size=8)
    log.add("CALL", 60)
    text = checked(page(tmp_path, log)).text
    assert "1 dataset reached the prefix directory. Before that, each was on average 3.0 s being written" in text
    assert ("1 dataset did not reach the prefix directory. Until a newer checkpoint took its place, it was deleted or lost, or its "
            "run ended, each was on average 3.0 s being written, 0 s complete, but lost with a node, 60.0 s protected") in text, text
