"""Long commands on several nodes at once, with signs of life of each node."""

from __future__ import annotations

import shlex
import time
from typing import Callable, Dict, List, Mapping

from cairn.processes import Lines, readable
from cairn.roles import Answer, RemoteExecution

TEMPORARY = 75  # EX_TEMPFAIL: a transient error; nothing is lost, and the command can be repeated
GONE = 255  # the connection to the node has closed
AT_ONCE = 64  # nodes; each needs a connection
BEAT_S = 2.0
SILENT_S = 30.0  # a node that is busy copying may be slow
TICK_S = 0.2
# The last line has the exit code; a line with a dot is a sign of life. The command may write lines with a dot and a
# number, its progress.
SUPERVISED = """( {command} ) 2>&1 & work=$!
( while sleep {beat:g}; do echo .; done ) & beats=$!
wait $work; code=$?; kill $beats; echo "= $code" """


class LongWork:
    """Runs a command on each node. If this process dies, the commands may go on to their end."""

    def __init__(self, remote: RemoteExecution, why_stop: Callable[[], str] = lambda: "",
                 tick: Callable[[], None] = lambda: None) -> None:
        """Calls `why_stop` and `tick` repeatedly. A text from `why_stop` ends all work."""
        self._remote, self._why_stop, self._tick = remote, why_stop, tick
        self.done: Dict[str, int] = {}  # progress by node, of commands that report it

    def run(self, commands: Mapping[str, str]) -> Dict[str, Answer]:
        """Returns an answer for every node: GONE if the node died, TEMPORARY if there was no time."""
        waiting, open_works, answers = list(commands), [], {}  # type: List[str], List[_Work], Dict[str, Answer]
        try:
            while waiting or open_works:
                why = self._why_stop()
                if why:
                    answers.update({node: Answer(TEMPORARY, why) for node in waiting})
                    answers.update({work.node: Answer(TEMPORARY, why) for work in open_works})
                    break
                while waiting and len(open_works) < AT_ONCE:
                    node = waiting.pop(0)
                    open_works.append(_Work(self._remote, node, commands[node]))
                self._tick()
                readable([work.lines.pipe for work in open_works], TICK_S)
                for work in list(open_works):
                    answer = work.answer()
                    self.done[work.node] = work.done
                    if answer is not None:
                        answers[work.node] = answer
                        open_works.remove(work)
                        work.lines.group.close()
        finally:
            for work in open_works:
                work.lines.group.close()
        return answers


class _Work:
    """The command of one node."""

    def __init__(self, remote: RemoteExecution, node: str, command: str) -> None:
        supervised = SUPERVISED.format(command=command, beat=BEAT_S)
        self.node, self.lines = node, Lines(remote.start(node, f"sh -c {shlex.quote(supervised)}"))
        self.done = 0
        self._text: List[str] = []
        self._heard_s = time.monotonic()

    def answer(self) -> "Answer | None":
        """None until the command has ended."""
        for line in self.lines.news():
            self._heard_s = time.monotonic()
            sign, _, code = line.partition("= ")
            if sign == "" and code.isdigit():
                return Answer(int(code), "\n".join(self._text))
            dot, _, done = line.partition(" ")
            if dot == "." and done.isdigit():
                self.done = int(done)
            elif line != ".":
                self._text.append(line)
        if not self.lines.is_open:
            return Answer(GONE, "\n".join([*self._text, "the connection has closed before it was done"]))
        if time.monotonic() - self._heard_s > SILENT_S:
            return Answer(GONE, f"has been silent for {SILENT_S:g} s")
        return None
