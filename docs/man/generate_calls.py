#!/usr/bin/env python3
"""Writes the manual pages of section 3, one for each call, from the comments of the public headers.

    python3 docs/man/generate_calls.py

A test fails while a committed page differs from what this script makes.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
HEADERS = {"scr": "calls of SCR, as Cairn provides them",
           "cairn": "what a dataset survives, and when copies may use the machine",
           "rbio": "a series of steps in shared files, written by a few ranks for all"}
SUCCESS = {"scr": "SCR_SUCCESS", "cairn": "SCR_SUCCESS", "rbio": "RBIO_SUCCESS"}

CALL = re.compile(r"/\* ((?:(?!\*/).)*?) ?\*/\nCAIRN_EXPORT ([^;]*?)(\w+)\(([^;]*?)\)( CAIRN_PRINTF\([^)]*\))?;", re.DOTALL)
ITEM = re.compile(r"( *)(- |\d+\. +)")
TERM = re.compile(r"( *)(\S+(?: \S+)*?)(:? {2,}|(?<=[A-Z]): )(?=\S)")


class Call(NamedTuple):
    name: str
    result: str
    arguments: List[str]
    comment: List[str]  # its lines


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def comment_lines(text: str) -> List[str]:
    """Without the stars; at least the first line is not indented."""
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in text.split("\n")]


def calls_of(header: str) -> List[Call]:
    found = [Call(name, result.strip(), [" ".join(one.split()) for one in arguments.split(",")], comment_lines(comment))
             for comment, result, name, arguments, _ in CALL.findall(header)]
    assert len(found) == header.count("\nCAIRN_EXPORT "), "a call has no comment, or another form"
    return found


def marked(text: str) -> str:
    """For roff: names in backquotes become italic."""
    return re.sub(r"`([^`]*)`", r"\\fI\1\\fR", text.replace("\\", "\\e"))


def guarded(line: str) -> str:
    """A line that begins with a dot is not a macro."""
    return "\\&" + line if line[:1] in (".", "'") else line


def escaped(line: str) -> str:
    return guarded(marked(line))


def sentences(text: str) -> List[str]:
    """Each begins on a line of its own, as mdoc wants it."""
    lines: List[str] = []
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z`\"])", text):
        lines += textwrap.wrap(marked(sentence), 78, break_long_words=False, break_on_hyphens=False)
    return [guarded(line) for line in lines]


def paragraph(lines: List[str]) -> List[str]:
    return sentences(" ".join(line.strip() for line in lines))


def taken(lines: List[str], at: int, base: int) -> int:
    """Where the lines end that are indented by more than `base`; blank lines between them count."""
    end = at
    for i in range(at, len(lines)):
        if lines[i] and indent_of(lines[i]) <= base:
            break
        if lines[i]:
            end = i + 1
    return end


def item_list(lines: List[str], pattern: "re.Pattern[str]", kind: str) -> List[str]:
    """Every line at the base begins an item."""
    base, at = indent_of(lines[0]), 0
    out = [f".Bl -{kind}"]
    while at < len(lines):
        match = pattern.match(lines[at])
        assert match
        end = taken(lines, at + 1, base)
        rest = [" " * (base + 2) + lines[at][match.end():], *lines[at + 1:end]]
        # The first line belongs to those after it, whatever their indent.
        below = [line for line in rest[1:] if line]
        rest[0] = " " * min(map(indent_of, below), default=0) + rest[0].strip()
        out += [f".It {escaped(match.group(2).strip())}" if kind.startswith("tag") else ".It", *blocks(rest)]
        at = end
        while at < len(lines) and not lines[at]:
            at += 1
    return [*out, ".El"]


def deeper(lines: List[str]) -> List[str]:
    """An indented block: a list, a table of terms, or lines to keep as they are."""
    first = [line for line in lines if line and indent_of(line) == indent_of(lines[0])]
    if all(ITEM.match(line) for line in first):
        return item_list(lines, ITEM, "bullet -compact" if lines[0].lstrip().startswith("-") else "enum")
    if all(TERM.match(line) and "...." not in line for line in first):
        return item_list(lines, TERM, "tag -width Ds -compact")
    return [".Bd -literal", *(escaped(line) if line else "" for line in textwrap.dedent("\n".join(lines)).split("\n")), ".Ed"]


def blocks(lines: List[str]) -> List[str]:
    """Lines of mdoc."""
    out: List[str] = []
    lines = textwrap.dedent("\n".join(lines)).split("\n")
    at = 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            if out and at < len(lines) and not lines[at].startswith(" "):
                out.append(".Pp")
        elif lines[at].startswith(" "):
            end = taken(lines, at, 0)
            block = deeper(lines[at:end])
            follows = end < len(lines) and bool(lines[end])
            out += [".Pp"] * block[0].endswith("-compact") + block + [".Pp"] * follows
            at = end
        elif ITEM.match(lines[at]):
            end = next((i for i in range(at, len(lines)) if lines[i] and not lines[i].startswith(" ") and not ITEM.match(lines[i])), len(lines))
            out += deeper(lines[at:end])
            at = end
        else:
            end = next((i for i in range(at, len(lines)) if not lines[i] or lines[i].startswith(" ")), len(lines))
            out += paragraph(lines[at:end])
            at = end
    return out


def parts_of(comment: List[str]) -> Tuple[List[str], List[str]]:
    """What a call does, and its errors."""
    text = "\n".join(comment)
    match = re.search(r"(?:^|(?<=\.)\s)Errors:(?: |\n)", text, re.MULTILINE)
    if not match:
        return comment, []
    return text[:match.start()].rstrip().split("\n"), text[match.end():].split("\n")


def meaning_of(comment: List[str]) -> str:
    """The first sentence that says what the call does, in the form of .Nd."""
    text = re.sub(r"^(Local|Collective)\b[^.]*\.\s+", "", " ".join(" ".join(comment).split())).replace("`", "")
    sentence = re.split(r"[:.;](?: |$)", text)[0]
    own_name = re.match(r"(SCR|Cairn|rbio)_", sentence)
    return sentence if own_name else sentence[:1].lower() + sentence[1:]


def head(name: str, meaning: str) -> List[str]:
    return [f'.\\" Generated by docs/man/generate_calls.py from include. Do not edit.', ".Dd January 1, 2026", f".Dt {name.upper()} 3", ".Os Cairn",
            ".Sh NAME", f".Nm {name}", f".Nd {escaped(meaning)}", ".Sh SYNOPSIS"]


def page_of_call(call: Call, library: str) -> str:
    does, errors = parts_of(call.comment)
    lines = [*head(call.name, meaning_of(call.comment)), f".In {library}.h", f".Ft {call.result}",
             " ".join([f".Fn {call.name}", *(f'"{one}"' for one in call.arguments)]), ".Sh DESCRIPTION", *blocks(does)]
    if call.result == "int":
        lines += [".Sh RETURN VALUES", f"{SUCCESS[library]}, or a CAIRN_E_ code of", ".In cairn_errors.h ;", "see", f".Xr {library} 3 ."]
    if errors:
        lines += [".Sh ERRORS", "The codes, without CAIRN_E_ before them:", ".Pp", *blocks(errors)]
    return "\n".join([*lines, ".Sh SEE ALSO", f".Xr {library} 3"]) + "\n"


def page_of_header(library: str, meaning: str, text: str, calls: List[Call]) -> str:
    """The conventions at the top of a header, and the list of its calls."""
    comment = comment_lines(text[3:text.index("*/")])
    intro, _, conventions = "\n".join(comment).partition("Conventions\n")
    # Their numbers end below one another, but items of one list begin so.
    conventions = re.sub(r"^(?=\d\d\. )", " ", conventions, flags=re.MULTILINE)
    lines = [*head(library, meaning), f".In {library}.h", ".Sh DESCRIPTION",
             *blocks([line for line in intro.split("\n")[2:]]), ".Ss Conventions", *blocks(conventions.split("\n"))]
    lines += [".Ss Calls", ".Bl -tag -width Ds -compact"]
    for call in calls:
        lines += [f".It Xr {call.name} 3", *sentences(meaning_of(call.comment))]
    others = " ,\n.Xr ".join(f"{call.name} 3" for call in sorted(calls, key=lambda one: one.name.lower()))
    return "\n".join([*lines, ".El", ".Sh SEE ALSO", f".Xr cairn 1 ,\n.Xr {others}"]) + "\n"


def pages() -> Dict[str, str]:
    """By the names of their files."""
    made: Dict[str, str] = {}
    for library, meaning in HEADERS.items():
        text = (INCLUDE / f"{library}.h").read_text(encoding="utf-8")
        calls = calls_of(text)
        made[f"{library}.3"] = page_of_header(library, meaning, text, calls)
        made.update({f"{call.name}.3": page_of_call(call, library) for call in calls})
    return made


def main() -> int:
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
