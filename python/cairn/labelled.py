"""Commands that one process runs on many nodes. It puts the node's name before each line of output."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Callable, Dict, List, Mapping, Sequence

from cairn.processes import Group, readable
from cairn.roles import UNKNOWN, Answer

# The last line of a command says how it ended.
WITH_EXIT_CODE = """said=$({{ {command}
}} 2>&1); code=$?; printf '%s\\n' "$said"; echo "= $code" """
# A node is late if it has not answered within LATE_TIMES the time of the slowest other node, and within LATE_S: a node
# that only stalls for a while must not be excluded.
LATE_S, LATE_TIMES = 5.0, 5
SILENT, REFUSED = 124, 255
PATIENCE_S = 0.5


def groups_of(commands: Mapping[str, str]) -> List[List[str]]:
    """The nodes that run the same command."""
    return [[node for node, one in commands.items() if one == command] for command in dict.fromkeys(commands.values())]


class Question:
    """A process that runs one command on some nodes."""

    def __init__(self, process: "subprocess.Popen[bytes]", nodes: Sequence[str], refused: str) -> None:
        """`refused`: the message for nodes where the command did not run."""
        assert process.stdout is not None
        self.group, self.pipe, self.is_open = Group(process), process.stdout.fileno(), True
        self._rest, self._refused = b"", refused
        self._lines: Dict[str, List[str]] = {node: [] for node in nodes}
        self._codes: Dict[str, int] = {}
        self._complaint = ""
        # Some tools cut off the domain.
        short = [node.partition(".")[0] for node in nodes]
        self._by_label = {name: node for node, name in zip(nodes, short) if short.count(name) == 1}
        self._by_label.update({node: node for node in nodes})

    def read(self) -> bool:
        """Reads the available output. True if the command has ended on a node."""
        before = len(self._codes)
        added = os.read(self.pipe, 65536)
        *lines, self._rest = (self._rest + added).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "replace"))
        self.is_open = bool(added) and len(self._codes) < len(self._lines)
        return len(self._codes) > before

    def answers(self, silence: Answer) -> Dict[str, Answer]:
        """The answers of all its nodes."""
        return {node: Answer(self._codes[node], "\n".join(lines)) if node in self._codes else
                silence if self.is_open else
                Answer(REFUSED, f"{self._refused}: {lines[-1] if lines else self._complaint}")
                for node, lines in self._lines.items()}

    def close(self) -> None:
        """Ends the process; if all nodes have answered, it gets a moment to end by itself."""
        if len(self._codes) == len(self._lines):
            self.group.wait(PATIENCE_S)
        self.group.close()

    def _take(self, line: str) -> None:
        label, colon, text = line.partition(": ")
        node = self._by_label.get(label) if colon else None
        sign, _, code = text.partition("= ")
        if node is None:
            self._complaint = line
        elif sign == "" and code.isdigit():
            self._codes[node] = int(code)
        else:
            self._lines[node].append(text)


def answers_of(groups: Sequence[Sequence[str]], ask: Callable[[Sequence[str]], Question], timeout_s: float,
               alike: bool) -> Dict[str, Answer]:
    """The answers of all nodes. Calls `ask` for each group; `alike` as in RemoteExecution.run. If a process cannot be
    started here, all answers are UNKNOWN."""
    begin, limit_s = time.monotonic(), timeout_s
    questions: List[Question] = []
    try:
        for nodes in groups:
            questions.append(ask(nodes))
        while any(question.is_open for question in questions):
            waited_s = time.monotonic() - begin
            if waited_s >= limit_s:
                break
            if _read(questions, min(0.1, limit_s - waited_s)) and alike:
                limit_s = min(timeout_s, max(LATE_S, LATE_TIMES * waited_s))
        silence = Answer(SILENT, f"has not answered for {limit_s:.3g} s")
        return {node: answer for question in questions for node, answer in question.answers(silence).items()}
    except OSError as error:
        return {node: Answer(UNKNOWN, f"cannot be asked: {error}") for nodes in groups for node in nodes}
    finally:
        for question in questions:
            question.close()


def _read(questions: Sequence[Question], seconds: float) -> bool:
    """Waits up to `seconds` for output. True if the command has ended on a node."""
    by_pipe = {question.pipe: question for question in questions if question.is_open}
    return any([by_pipe[pipe].read() for pipe in readable(by_pipe, seconds)])
