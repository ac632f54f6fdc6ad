"""The manual pages are well-formed mdoc and tell of every option."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "man"
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS"]
RBIO = ["list", "show", "verify", "extract"]
# A page with options of its own, and the commands that have them.
INDEX = ["list", "show", "current", "drop", "delete", "add", "import", "build", "quarantine", "id"]
PAGE_OF = {"cairn-config": [["config"]], "cairn-halt": [["halt"], ["scr_halt"]],
           "cairn-index": [["index", action] for action in INDEX] + [["scr_index"]],
           "cairn-rebuild": [["rebuild"]], "cairn-scavenge-node": [["scavenge-node"]],
           "cairn-print": [["print"]], "cairn-rbio": [["rbio", action] for action in RBIO], "cairn-run": [["run"]], "cairn-status": [["status"]], "cairn-wrap": [["wrap"]],
           "cairn-doctor": [["doctor"]], "cairn-clean": [["clean"]], "cairn-scavenge": [["scavenge"]], "cairn-drain": [["drain"]], "cairn-drain-node": [["drain-node"]],
           "cairn-report": [["report"]], "cairn-explain": [["explain"]], "cairn-verify": [["verify"]],
           "cairn-prerun": [["prerun"]], "cairn-down-nodes": [["down-nodes"]],
           "cairn-should-exit": [["should-exit"]], "scr_env": [["scr-env"]], "scr_list_dir": [["scr-list-dir"]],
           "scr_ckpt_interval": [["scr-ckpt-interval"]]}
OTHER_NAMES = {"scr_halt": "cairn-halt", "scr_index": "cairn-index", "scr_print": "cairn-print",
               "scr_run": "cairn-run", "scr_srun": "cairn-run", "scr_mpirun": "cairn-run",
               "scr_jsrun": "cairn-run", "scr_lrun": "cairn-run", "scr_fluxrun": "cairn-run",
               "scr_prerun": "cairn-prerun", "scr_postrun": "cairn-scavenge",
               "scr_list_down_nodes": "cairn-down-nodes", "scr_should_exit": "cairn-should-exit"}


sys.path.insert(0, str(PAGES))

import generate_calls  # noqa: E402  pylint: disable=wrong-import-position

CALLS = generate_calls.pages()


def help_of(cairn: Path, command: List[str]) -> str:
    return subprocess.run([cairn, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=30).stdout


def table(cairn: Path) -> Any:
    """Of all commands and other names."""
    return json.loads(subprocess.run([cairn, "commands"], stdout=subprocess.PIPE, text=True, check=True, timeout=30).stdout)


def options_in(printed: str) -> "set[str]":
    options = set(re.findall(r"^ {2,6}(?:-\w+(?: [A-Z]+)?, ?)?--([\w-]+)", printed, re.MULTILINE))
    assert len(options) > 1
    return options


def documented(page: str) -> "set[str]":
    """The long options that have an entry of their own."""
    return set(re.findall(r"^\.It Fl (?:\w+ , )?-([\w-]+)", page, re.MULTILINE))


@pytest.mark.parametrize("name", PAGE_OF)
def test_every_option_has_an_entry_and_every_entry_an_option(cairn: Path, name: str) -> None:
    options = set().union(*(options_in(help_of(cairn, command)) for command in PAGE_OF[name]))
    assert documented((PAGES / f"{name}.1").read_text()) == options


@pytest.mark.parametrize("name", PAGE_OF)
def test_help_tells_the_exit_codes(cairn: Path, name: str) -> None:
    for command in PAGE_OF[name]:
        assert "Exit codes:" in help_of(cairn, command), command


def test_every_option_of_crfs_has_an_entry(crfs: Path) -> None:
    assert documented((PAGES / "crfs.1").read_text()) == options_in(help_of(crfs, []))


@pytest.mark.parametrize("command, expected", [("index", INDEX), ("rbio", RBIO)])
def test_every_action_is_on_the_page_of_its_command(cairn: Path, command: str, expected: List[str]) -> None:
    actions = set(re.findall(r"^  (\w+) {2,}", help_of(cairn, [command]).split("\ncommands:")[1].split("\noptions:")[0],
                             re.MULTILINE))
    assert actions == set(expected)
    page = (PAGES / f"cairn-{command}.1").read_text()
    assert set(re.findall(r"^\.It Cm (\w+)", page, re.MULTILINE)) == actions


def test_the_main_page_lists_the_commands_by_task(cairn: Path) -> None:
    rows = [row for row in table(cairn)["commands"] if row["group"] not in ("Internal", "Names of SCR")]
    groups: Dict[str, List[str]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["name"])
    page = (PAGES / "cairn.1").read_text()
    sections = {text.partition("\n")[0]: re.findall(r"^\.It Cm ([\w-]+)", text, re.MULTILINE)
                for text in page.split(".Ss ")[1:] if ".It Cm" in text.split(".Sh")[0]}
    assert sections == groups


def test_the_main_page_lists_the_topics(cairn: Path) -> None:
    topics = re.findall(r"^  ([\w-]+) {2,}", help_of(cairn, []).split("describes:")[1], re.MULTILINE)
    assert len(topics) > 3
    [listed] = re.findall(r"^Its topics are\n\.Cm (.*)\nand\n\.Cm (\S+) \.$", (PAGES / "cairn.1").read_text(), re.MULTILINE)
    assert re.split(r"[ ,]+", " ".join(listed)) == topics


def test_the_help_of_exit_codes_has_those_of_all_pages(cairn: Path) -> None:
    printed = subprocess.run([cairn, "help", "exit-codes"], stdout=subprocess.PIPE, text=True, check=True, timeout=30).stdout
    of_all = set(re.findall(r"^  (\d+) ", printed.partition("\n\n")[2].partition("\n\n")[0], re.MULTILINE))
    own = {name: set(re.findall(r"^  (\d+) ", text, re.MULTILINE)) for name, text in re.findall(r"^cairn (\w+):\n((?:  .*\n)+)", printed, re.MULTILINE)}
    for path in PAGES.glob("cairn*.1"):
        status = path.read_text().partition(".Sh EXIT STATUS\n")[2].partition(".Sh ")[0]
        codes = set(re.findall(r"\d+", " ".join(re.findall(r"^\.It (.*)$", status, re.MULTILINE))))
        known = of_all | own.get(path.stem.removeprefix("cairn-"), set()) | ({"3", "4"} if path.stem == "cairn" else set())
        assert codes <= known, path.name
    assert own.keys() == {"run", "verify", "wrap"} and of_all == {"0", "1", "2", "75"}


@pytest.mark.parametrize("name", ["cairn", "crfs", *PAGE_OF])
def test_a_page_is_well_formed(name: str) -> None:
    lines = (PAGES / f"{name}.1").read_text().splitlines()
    assert [line.split()[0] for line in lines[:3]] == [".Dd", ".Dt", ".Os"]
    sections = [line[len(".Sh "):] for line in lines if line.startswith(".Sh ")]
    assert [section for section in SECTIONS if section in sections] == SECTIONS
    assert sum(line.startswith(".Bl") for line in lines) == lines.count(".El")
    assert all(line and line == line.rstrip() for line in lines), "no empty lines, no blanks at ends"
    known = {"Dd", "Dt", "Os", "Sh", "Nm", "Nd", "Op", "Fl", "Ar", "Bl", "It", "El", "Pp", "Dl", "Xr",
             "Ev", "Ss", "Dv", "Pa", "Cm", "Fn", "Pq", "Dq", "Ql"}
    assert {line[1:].split()[0] for line in lines if line.startswith(".")} <= known


def test_the_page_of_the_mount_command_leads_to_that_of_crfs() -> None:
    assert (PAGES / "mount.crfs.8").read_text() == ".so man1/crfs.1\n"


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_the_page_of_another_name_leads_to_the_page(name: str) -> None:
    assert (PAGES / f"{name}.1").read_text() == f".so man1/{OTHER_NAMES[name]}.1\n"


WARNINGS = ["-wmac", "-wfont", "-wchar", "-wescape", "-wdelim", "-wsyntax"]


def formatted(path: Path) -> str:
    """What a reader sees; the formatter has nothing to complain of."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("there is no groff here")
    done = subprocess.run([groff, "-mandoc", "-Tascii", "-P-c", "-rLL=78n", *WARNINGS, path], text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert done.stderr == ""
    return re.sub(".\b", "", done.stdout)


@pytest.mark.parametrize("name", ["cairn", "crfs", *PAGE_OF])
def test_a_formatter_takes_the_page(name: str) -> None:
    assert "EXIT STATUS" in formatted(PAGES / f"{name}.1")


def test_every_call_has_its_page() -> None:
    declared = {name for header in ("scr.h", "cairn.h", "rbio.h")
                for name in re.findall(r"^CAIRN_EXPORT .*?(\w+)\(", (PAGES.parents[1] / "include" / header).read_text(), re.MULTILINE)}
    assert "SCR_Init" in declared and {f"{name}.3" for name in declared} | {"scr.3", "cairn.3", "rbio.3"} == CALLS.keys()
    assert {path.name for path in PAGES.glob("*.3")} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_the_page_of_a_call_is_what_its_header_says(name: str) -> None:
    assert (PAGES / name).read_text() == CALLS[name], "run docs/man/generate_calls.py"
    text = formatted(PAGES / name)
    lines = [line.rstrip() for line in text.splitlines()]
    assert "NAME" in lines and "SYNOPSIS" in lines and "DESCRIPTION" in lines
    assert "`" not in text


def test_no_word_of_a_comment_is_lost() -> None:
    """Whatever becomes of its form."""
    for library in ("scr", "cairn", "rbio"):
        for call in generate_calls.calls_of((PAGES.parents[1] / "include" / f"{library}.h").read_text()):
            page = re.sub(r"\W+", "", formatted(PAGES / f"{call.name}.3").replace("-\n", ""))
            for word in set(re.findall(r"\w+", " ".join(call.comment))) - {"Errors"}:
                assert word in page, (call.name, word)


def test_conventions_have_the_numbers_that_other_pages_refer_to() -> None:
    for library in ("scr", "cairn", "rbio"):
        header = (PAGES.parents[1] / "include" / f"{library}.h").read_text()
        conventions = re.findall(r"^ \* {1,2}(\d+\.) +(\w+)", header[:header.index("*/")], re.MULTILINE)
        page = formatted(PAGES / f"{library}.3")
        assert conventions or library != "scr"
        for number, first_word in conventions:
            assert re.search(rf"^ +{number} +{first_word}\b", page, re.MULTILINE), (library, number, first_word)


def test_the_form_of_a_comment_stays() -> None:
    lines = generate_calls.blocks(["First. Second `name`.", "  - one", "    more", "  - two", "KEY below:", "  a    what", "  b    other",
                             "End.", "  code(x);", "    more;", "  .dot"])
    assert lines == ["First.", r"Second \fIname\fR.", ".Pp", ".Bl -bullet -compact", ".It", "one more", ".It", "two", ".El", ".Pp",
                     "KEY below:", ".Pp", ".Bl -tag -width Ds -compact", ".It a", "what", ".It b", "other", ".El", ".Pp",
                     "End.", ".Bd -literal", "code(x);", "  more;", r"\&.dot", ".Ed"]
