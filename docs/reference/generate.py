#!/usr/bin/env python3
"""Writes the pages of this directory that follow from the sources.

    python3 docs/reference/generate.py

settings.md comes from the table in src/config/options.cpp, commands.md from the manual pages. A test fails
while a committed page differs from what this script makes.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ROOT / "src/config/options.cpp"
MANUAL = ROOT / "docs/man"

STRING = r'"(?:[^"\\]|\\.)*"'
STRINGS = rf"{STRING}(?:\s*{STRING})*"
RULE = r"\w+(?:\([^)]*\)|\{[^}]*\})?"
ROW = re.compile(rf'\{{("\w+"), ({RULE}), ({STRING}), ({STRINGS}),\s*({STRINGS})(?:,\s*(\w+))?')
KINDS = {"text": "text", "path": "path", "path_from_here": "path", "component": "one name without a slash", "group": "name of a group",
         "boolean": "0 or 1", "percent": "0 to 100", "integer": "integer", "bytes": "size"}
MAX_INT = "max_int"
# Settings of SCR that Cairn accepts without effect, by their flags.
WITHOUT_EFFECT = {"later": "a later version will act on it", "never": "not needed", "never_secret": "not needed"}


class Setting(NamedTuple):
    key: str
    values: str
    default: str
    meaning: str
    flags: str


def unquoted(literals: str) -> str:
    """A C++ string of one or more literals."""
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(STRING, literals))


def words_of(source: str) -> Dict[str, List[str]]:
    """The arrays of words that a setting may take."""
    words = {name: re.findall(r'"(\w+)"sv', body)
             for name, body in re.findall(r"constexpr std::array (\w+) = \{(.*?)\};", source, re.DOTALL)}
    for name, base, count in re.findall(r"> (\w+) = std::span\((\w+)\)\.first\((\d+)\)", source):
        words[name] = words[base][:int(count)]
    return words


def rules_of(source: str) -> Dict[str, str]:
    """What each named rule of the table allows, as text."""
    return {name: values_of_rule(kind, rest) for name, kind, rest in
            re.findall(r"constexpr Rule (\w+)\{ValueType::(\w+)((?:,[^}]*)?)\};", source)}


def number(text: str, kind: str) -> str:
    text = text.strip().replace("ULL", "")
    shift = re.fullmatch(r"(\d+) << (\d+)", text)
    if not shift:
        return text
    units = {10: "KB", 20: "MB", 30: "GB"}
    return f"{shift.group(1)}{units[int(shift.group(2))]}" if kind == "bytes" else str(int(shift.group(1)) << int(shift.group(2)))


def values_of_rule(kind: str, rest: str) -> str:
    bounds = [part for part in rest.split(",") if part.strip()]
    if len(bounds) < 2:
        return KINDS[kind]
    low, high = number(bounds[0], kind), number(bounds[1], kind)
    text = f"from {low}" if MAX_INT in high else f"{low} to {high}"
    return f"{text}, a power of two" if len(bounds) > 2 and kind == "bytes" else text


def settings_in(source: str, table: str) -> List[Tuple[str, List[Setting]]]:
    """The settings of a table of options.cpp, by the headings that its comments give."""
    found = re.search(rf" {table}\[\] = \{{(.*?)\n\}};", source, re.DOTALL)
    assert found, f"{OPTIONS} has no table {table}"
    words, rules = words_of(source), rules_of(source)
    sections: List[Tuple[str, List[Setting]]] = []
    for part in re.split(r"\n\s*// --- ", "\n// --- ---\n" + found.group(1))[1:]:
        title, _, body = part.partition("\n")
        rows = [setting_of(row, words, rules) for row in ROW.findall(body)]
        expected = len(re.findall(r"^ {4}\{\"", body, re.MULTILINE))
        assert len(rows) == expected, f"{OPTIONS}, '{title}': {len(rows)} of {expected} settings understood"
        if rows:
            sections.append((title.strip(" -`").replace("`", ""), rows))
    return sections


def setting_of(row: Tuple[str, ...], words: Dict[str, List[str]], rules: Dict[str, str]) -> Setting:
    key, rule, unit_or_from, default, meaning, flags = row
    choice = re.fullmatch(r"one_of\((\w+)\)", rule)
    inline = re.fullmatch(r"Rule\{ValueType::(\w+)((?:,[^}]*)?)\}", rule)
    if choice:
        values = ", ".join(words[choice.group(1)])
    else:
        values = values_of_rule(*inline.groups()) if inline else rules[rule]
    unit, start = unquoted(unit_or_from), unquoted(default)
    if unit.isupper():  # of a descriptor: the setting that gives the default
        start = f"`{unit}`"
    elif unit:
        values = f"{values}, {unit}"
    return Setting(unquoted(key), values, start, unquoted(meaning), flags)


def table_of(settings: List[Setting]) -> List[str]:
    if all(one.flags in WITHOUT_EFFECT for one in settings):
        return table_without_effect(settings)
    lines = ["| setting | values | default | meaning |", "|---|---|---|---|"]
    for one in settings:
        default = one.default if one.default.startswith("`") or not one.default else f"`{one.default}`"
        remark = ""
        if "not_by_app" in one.flags:
            remark = " \\*"
        elif one.flags == "outside_files":
            remark = " \\*\\*"
        elif one.flags in ("of_process", "environment_only"):
            remark = " \\* \\*\\*"
        lines.append(f"| `{one.key}` | {one.values} | {default} | {one.meaning}{remark} |".replace("|  |", "| |"))
    return lines


def table_without_effect(settings: List[Setting]) -> List[str]:
    return ["| setting | meaning in SCR | in Cairn |", "|---|---|---|",
            *(f"| `{one.key}` | {one.meaning} | {WITHOUT_EFFECT[one.flags]} |" for one in settings)]


def settings_page() -> str:
    source = OPTIONS.read_text(encoding="utf-8")
    lines = ["# Settings", "",
             "<!-- Generated by docs/reference/generate.py from src/config/options.cpp. Do not edit. -->", "",
             "`cairn config` prints each with its value here, and where the value comes from.",
             "[Settings to choose](../guides/choose-settings.md) says which ones matter, and which place goes first.", "",
             "- Sizes may have a unit: `64KB`, `16MB`, `1GB` (powers of 1024).",
             "- \\* `SCR_Config` cannot set it. \\*\\* Set it in the environment, not in a file.", ""]
    for title, settings in settings_in(source, "table"):
        lines += [f"## {title[:1].upper()}{title[1:]}", "", *table_of(settings), ""]
    for title, intro, table in (
            ("STORE lines", "`STORE=/ssd COUNT=2 ...` describes a store.", "store_table"),
            ("CKPT lines", "`CKPT=0 INTERVAL=1 ...` describes a level; `SCR_COPY_TYPE=FILE` switches these lines on.",
             "checkpoint_table"),
            ("CACHEDIR and CNTLDIR lines", "`CACHEDIR=/ssd BYTES=100GB` names a directory that `cairn run` tests.",
             "folder_table")):
        [(_, settings)] = settings_in(source, table)
        lines += [f"## {title}", "", intro, "", *table_of(settings), ""]
    lines += ["## GROUPS lines", "",
              "`GROUPS=node0 RACK=r1 SWITCH=s4` puts a node into failure groups. Every node's line names the same groups.",
              "`NODE` and `WORLD` always exist.", ""]
    return "\n".join(lines).rstrip() + "\n"


class Page(NamedTuple):
    names: List[str]
    section: str
    meaning: str
    exits: List[Tuple[str, str]]


def plain(line: str) -> str:
    """A line of mdoc as text."""
    words = [word for word in line.split() if not re.fullmatch(r"\.?[A-Z][a-z]", word)]
    text = " ".join(re.sub(r"^-(\w\w)", r"--\1", word) for word in words)
    return re.sub(r" ([,.:;])", r"\1", text.replace("\\&", ""))


def page_of(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    head = text.partition(".Sh SYNOPSIS")[0]
    names = [line.split()[1] for line in head.splitlines() if line.startswith(".Nm")]
    meaning = next(line[4:] for line in head.splitlines() if line.startswith(".Nd "))
    _, _, rest = text.partition(".Sh EXIT STATUS\n")
    exits: List[Tuple[str, str]] = []
    for line in rest.split(".Sh ")[0].splitlines():
        if line.startswith(".It"):
            exits.append((plain(line), ""))
        elif exits and not re.match(r"\.(El|Bl|Pp)\b", line):
            exits[-1] = (exits[-1][0], f"{exits[-1][1]} {plain(line)}".strip())
    return Page(names, path.suffix[1:], meaning, exits)


def commands_without_page(pages: List[Page]) -> List[Page]:
    """Those that only cairn(1) lists."""
    known = {name.rstrip(",") for page in pages for name in page.names}
    listed = re.findall(r"^\.It Cm (\S+)\n(.*?)(?:; see)?\.?$", (MANUAL / "cairn.1").read_text(encoding="utf-8"), re.MULTILINE)
    return [Page([f"cairn-{name}"], "", meaning, []) for name, meaning in listed if f"cairn-{name}" not in known]


def commands_page() -> str:
    pages = [page_of(path) for path in sorted(MANUAL.iterdir())
             if path.suffix in (".1", ".8") and not path.read_text(encoding="utf-8").startswith(".so")]
    lines = ["# Commands", "",
             "<!-- Generated by docs/reference/generate.py from docs/man. Do not edit. -->", "",
             "`man cairn-run` and so on describe every option; so does `cairn run --help`. [Guides](../guides/README.md) are by",
             "task.", "", "| command | also called | what it does | page |", "|---|---|---|---|"]
    for page in sorted(pages + commands_without_page(pages)):
        name, *others = [name.rstrip(",") for name in page.names]
        command = name.replace("cairn-", "cairn ", 1)
        manual = f"{name}({page.section})" if page.section else f"cairn(1), `{command} --help`"
        also = ", ".join(f"`{other}`" for other in others if other != name)
        lines.append(f"| `{command}` | {also} | {page.meaning} | {manual} |".replace("|  |", "| |"))
    lines += ["", "## Exit codes", "", "| command | code | meaning |", "|---|---|---|"]
    for page in pages:
        command = page.names[0].rstrip(",").replace("cairn-", "cairn ", 1)
        for code, meaning in page.exits:
            lines.append(f"| `{command}` | {code} | {meaning} |")
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"settings.md": settings_page, "commands.md": commands_page}


def main() -> int:
    for name, make in PAGES.items():
        (Path(__file__).parent / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
