"""What a page of documentation asks its reader to do: its fenced blocks, by section."""

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

FENCE = re.compile(r"^```(?P<language>\S*) ?(?P<marks>.*)$")


class Block(NamedTuple):
    """A fenced block: ```LANGUAGE NAME=VALUE"""

    section: str
    language: str
    marks: Dict[str, str]
    text: str


class Step(NamedTuple):
    """A command of a console block, and what the page shows that it prints."""

    command: str
    output: List[str]

    @property
    def is_interrupted(self) -> bool:
        """The reader presses Ctrl-C after the last line."""
        return self.output[-1:] == ["^C"]


def blocks_of(page: Path) -> List[Block]:
    """In the order of the page; the section is the text of the last heading of level 2."""
    section, open_block, blocks = "", None, []
    for line in page.read_text().splitlines():
        fence = FENCE.match(line)
        if open_block is None and line.startswith("## "):
            section = line[3:]
        if fence and open_block is None:
            marks = dict(mark.split("=", 1) for mark in fence["marks"].split())
            open_block = Block(section, fence["language"], marks, "")
        elif fence:
            blocks.append(open_block)
            open_block = None
        elif open_block is not None:
            open_block = open_block._replace(text=open_block.text + line + "\n")
    assert open_block is None, f"{page}: a block does not end"
    return blocks


def steps_of(block: Block) -> List[Step]:
    """Of a console block, the commands after "$ "; of a shell script, all of it."""
    if block.language == "sh":
        return [Step(block.text, [])]
    steps: List[Step] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:], []))
        elif not steps[-1].output and steps[-1].command.endswith("\\"):
            steps[-1] = Step(steps[-1].command + "\n" + line, [])
        else:
            steps[-1].output.append(line)
    return steps


def apply_change(text: str, change: str) -> str:
    """Does to `text` what a diff block shows: the lines without "+" are there once."""
    lines = [line or " " for line in change.splitlines()]
    before = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
    after = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"{text.count(before)} places in the program for\n{change}"
    return text.replace(before, after)


def names_of_mpi(page: Path, label: str) -> Optional[List[str]]:
    """The row of the table of names that begins with `label`."""
    row = re.search(rf"^\| {re.escape(label)} \|(.*)\|$", page.read_text(), re.MULTILINE)
    return re.findall(r"`(\S+)`", row[1]) if row else None
