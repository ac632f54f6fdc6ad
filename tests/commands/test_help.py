"""One table of commands, one form of help, and the same answers by every way to ask."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

TABLE = Path(__file__).resolve().parents[2] / "python" / "cairn" / "commands.txt"
ROWS = [line.split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
COMMANDS = {row[1]: (row[2], row[4]) for row in ROWS if row[0] == "command"}
NAMES = {row[1]: row[2] for row in ROWS if row[0] == "name"}
FOR_SCRIPTS = {name for name, (group, _) in COMMANDS.items() if group in ("For scripts", "Names of SCR", "Internal")}
BELOW = [["index", "list"], ["index", "add"], ["rbio", "extract"]]


def answer(cairn: Path, *words: str) -> str:
    done = subprocess.run([cairn, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30,
                          check=False, env={**os.environ, "COLUMNS": "200"})
    assert (done.returncode, done.stderr) == (0, ""), (words, done)
    return done.stdout


def blocks(text: str) -> List[str]:
    return text.rstrip("\n").split("\n\n")


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), *BELOW], ids=" ".join)
def test_every_help_has_one_form(cairn: Path, words: List[str]) -> None:
    text = answer(cairn, *words, "--help")
    usage, about, *sections = blocks(text)
    exits = sections.pop()
    assert re.match(r"usage: (cairn [a-z-]+|scr_\w+) ", usage) and "\n" not in usage
    assert exits.startswith("Exit codes: 0 ")
    titles = [section.partition("\n")[0] for section in sections]
    assert titles == [title for title in ("commands:", "arguments:", "options:") if title in titles] and titles
    assert re.match(r"options:\n  -h, --help            Show this help\n  -V, --version         Show the version", sections[-1])
    assert len(words) > 1 or about.replace("\n", " ").startswith(COMMANDS[words[0]][1] + "."), about
    assert max(map(len, text.splitlines())) <= 80
    for line in text.splitlines():
        assert not re.match(r"  -.*? {2,}[a-z]", line), f"begins with a small letter: {line}"


def test_the_list_of_commands_is_by_task(cairn: Path) -> None:
    text = answer(cairn, "--help")
    listed: Dict[str, List[str]] = {}
    for block in blocks(text):
        title, _, rest = block.partition(":\n")
        names = re.findall(r"^  ([a-z][\w-]*) {2,}\S", rest, re.MULTILINE)
        if names and "describes" not in title:
            listed[title] = names
    expected: Dict[str, List[str]] = {}
    for name, (group, _) in COMMANDS.items():
        if name not in FOR_SCRIPTS:
            expected.setdefault(group, []).append(name)
    assert listed == expected and len(listed) == 5
    assert answer(cairn, "help") == text == answer(cairn, "-h")
    assert max(map(len, text.splitlines())) <= 80


def test_a_topic_lists_what_only_scripts_need(cairn: Path) -> None:
    text = answer(cairn, "help", "scripts")
    named = set(re.findall(r"^  ([a-z][\w-]*) {2,}\S", text, re.MULTILINE))
    documented = {name for name in FOR_SCRIPTS if COMMANDS[name][0] == "For scripts"}
    assert named == documented | set(NAMES)


@pytest.mark.parametrize("name", [*COMMANDS, "index add"])
def test_help_of_a_command_is_what_its_option_prints(cairn: Path, name: str) -> None:
    assert answer(cairn, "help", *name.split()) == answer(cairn, *name.split(), "--help")


@pytest.mark.parametrize("name", NAMES)
def test_every_other_name_answers(cairn: Path, name: str) -> None:
    command = NAMES[name].split()[0]
    assert (cairn.parent / name).resolve() == cairn
    assert answer(cairn, "help", name) == answer(cairn, command, "--help")
    assert answer(cairn.parent / name, "--version") == answer(cairn, "--version")
    assert answer(cairn.parent / name, "--help") == answer(cairn, command, "--help")


def test_an_unknown_topic_is_wrong_usage(cairn: Path) -> None:
    done = subprocess.run([cairn, "help", "nosuch"], stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.returncode == 2 and done.stderr.startswith("cairn: error: there is no command or topic"), done


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS), *BELOW], ids=" ".join)
def test_every_command_has_the_version(cairn: Path, words: List[str]) -> None:
    assert re.fullmatch(r"cairn \d+\.\d+\.\d+\n", answer(cairn, *words, "-V"))


def test_crfs_has_the_version(crfs: Path) -> None:
    assert answer(crfs, "-V") == answer(crfs, "--version")


def native_helps(below: Dict[str, Any], path: Tuple[str, ...]) -> "Iterator[Tuple[Tuple[str, ...], Dict[str, Any]]]":
    yield path, below
    for name, one in below["commands"].items():
        yield from native_helps(one, (*path, name))


def test_the_table_has_the_options_of_native_commands(cairn: Path) -> None:
    table = json.loads(answer(cairn, "commands"))
    assert [row["name"] for row in table["commands"]] == list(COMMANDS) and table["names"] == NAMES
    for row in table["commands"]:
        if row["is_python"]:
            continue
        for path, one in native_helps(row["help"], (row["name"],)):
            text = answer(cairn, *path, "--help")
            shown = re.findall(r"^  (-.*?)(?: {2,}.*)?$", text, re.MULTILINE)
            assert shown == [", ".join(option["names"]) + (" " + option["value"]).rstrip() for option in one["options"]]


# Those that report nothing, or only in JSON.
WITHOUT_JSON = {"log-events", "commands", "job"}


@pytest.mark.parametrize("name", [*(set(COMMANDS) - WITHOUT_JSON), "index list", "index show", "rbio list", "rbio show"])
def test_what_reports_has_json(cairn: Path, name: str) -> None:
    group = blocks(answer(cairn, *name.split(), "--help"))
    assert "--json " in "\n".join(group) or "commands:" in group[2], name
