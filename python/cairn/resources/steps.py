"""Commands on nodes by Slurm itself: where a job may start its program it may start these, with or without ssh."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Dict, Iterable, List, Mapping, Sequence, Set

from cairn.hosts import fold
from cairn.processes import Group, ends_with_us, readable
from cairn.reach import Reach
from cairn.roles import GONE, UNKNOWN, Answer, Ask, Beats, RemoteExecution

# Shares what the allocation has with the program's step, and waits for nothing. A node that dies does not end it.
SRUN = ("srun", "--overlap", "--no-kill", "--mpi=none", "--input=none", "--quiet", "--mem=0", "--gres=none",
        "--cpus-per-task=1", "--ntasks-per-node=1", "--chdir=/")
# Each line begins with the node's name, the last one of a command says how it ended.
TOLD = """said=$({{ {command}
}} 2>&1); code=$?
printf '%s\\n' "$said" | while IFS= read -r line; do printf '%s: %s\\n' "$SLURMD_NODENAME" "$line"; done
echo "$SLURMD_NODENAME= $code" """
BEAT = "while echo $SLURMD_NODENAME; do sleep {:g}; done"
# A node is late that has not answered in five times the time of the slowest other one, and for so long: one that only
# stands still for a while must not be left out.
LATE_S, LATE_TIMES = 5.0, 5
SILENT, REFUSED = 124, 255
PATIENCE_S = 0.5


class Steps(RemoteExecution):
    """By steps of their own beside the program's (srun --overlap): one for all nodes that run the same command."""

    name = "srun --overlap"

    def __init__(self, environment: Mapping[str, str], job: str, ask: Ask) -> None:
        # What sbatch and the user have set for the program's step is not for these.
        self._environment = {key: value for key, value in environment.items()
                             if not key.startswith(("SLURM_", "SRUN_")) or key == "SLURM_CONF"}
        self._here = environment.get("SLURMD_NODENAME", "")
        self._job, self._ask = job, ask
        self._reach = Reach()
        self._answered: Set[str] = set()  # nodes that have, when they were asked the last time

    def run(self, commands: Mapping[str, str], timeout_s: float) -> Dict[str, Answer]:
        """Asks a node too that is not in question, this one if it belongs to the job: where that answers and another does
        not, it is not the fault of the way there. Nodes of which not even the kernel answers for an eighth of `timeout_s`
        are not waited for."""
        gone = self._reach.silent(commands, timeout_s / 8)
        asked = {node: command for node, command in commands.items() if node not in gone}
        witness = self._here or next((node for node in sorted(self._answered) if node not in commands), "")
        if witness:
            asked.setdefault(witness, "true")
        groups = [_nodes_of(asked, command) for command in dict.fromkeys(asked.values())]
        found = self._asked(groups, asked, timeout_s)
        # With one node that Slurm gives no more, a step is refused as a whole.
        refused = [group for group in groups if len(group) > 1 and all(found[node].code == REFUSED for node in group)]
        if refused and self._is_up():
            found.update(self._asked([[node] for group in refused for node in group], asked, timeout_s))
        answered = {node for node, answer in found.items() if answer.code not in (SILENT, REFUSED)}
        self._answered = (self._answered - found.keys() - gone) | answered
        if not answered and (self._here or not self._is_up()):
            return {node: Answer(UNKNOWN, found.get(node, GONE).text) for node in commands}
        return {node: GONE if node in gone else found[node] for node in commands}

    def gone(self, nodes: Sequence[str]) -> Set[str]:
        return self._reach.silent(nodes)

    def expect(self, nodes: Sequence[str]) -> None:
        self._reach.ask(nodes)

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return self._step([node], command)

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        self._reach.learn(nodes)
        return [Beats(self._step(nodes, BEAT.format(period_s)), tuple(nodes))]

    def _step(self, nodes: Sequence[str], command: str, errors: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        words = [*SRUN, f"--jobid={self._job}", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}",
                 f"--nodelist={fold(nodes)}", "sh", "-c", command]
        # srun does not end when nobody listens any more.
        return subprocess.Popen(words, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=errors, start_new_session=True, preexec_fn=ends_with_us())

    def _asked(self, groups: Iterable[Sequence[str]], commands: Mapping[str, str],
               timeout_s: float) -> Dict[str, Answer]:
        """One step for each group."""
        questions = [_Question(self._step(nodes, TOLD.format(command=commands[nodes[0]]), subprocess.STDOUT), nodes)
                     for nodes in groups]
        begin, limit_s = time.monotonic(), timeout_s
        try:
            while any(question.is_open for question in questions):
                waited_s = time.monotonic() - begin
                if waited_s >= limit_s:
                    break
                if _read(questions, min(0.1, limit_s - waited_s)):
                    limit_s = min(timeout_s, max(LATE_S, LATE_TIMES * waited_s))
            silence = Answer(SILENT, f"has not answered for {limit_s:.3g} s")
            return {node: answer for question in questions for node, answer in question.answers(silence).items()}
        finally:
            for question in questions:
                question.close()

    def _is_up(self) -> bool:
        return self._ask(["scontrol", "ping"]).code == 0


def _nodes_of(commands: Mapping[str, str], command: str) -> List[str]:
    return [node for node, one in commands.items() if one == command]


class _Question:
    """A step that runs one command on some nodes."""

    def __init__(self, process: "subprocess.Popen[bytes]", nodes: Sequence[str]) -> None:
        assert process.stdout is not None
        self.group, self.pipe, self.is_open = Group(process), process.stdout.fileno(), True
        self._rest = b""
        self._lines: Dict[str, List[str]] = {node: [] for node in nodes}
        self._codes: Dict[str, int] = {}
        self._complaint = ""

    def read(self) -> bool:
        """Takes what is there; whether a node has come to its end."""
        before = len(self._codes)
        added = os.read(self.pipe, 65536)
        *lines, self._rest = (self._rest + added).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "replace"))
        self.is_open = bool(added) and len(self._codes) < len(self._lines)
        return len(self._codes) > before

    def answers(self, silence: Answer) -> Dict[str, Answer]:
        """Of all its nodes."""
        other = silence if self.is_open else Answer(REFUSED, f"Slurm starts no step there: {self._complaint}")
        return {node: Answer(self._codes[node], "\n".join(lines)) if node in self._codes else other
                for node, lines in self._lines.items()}

    def close(self) -> None:
        """A step that has told all is about to end; the others are ended."""
        if len(self._codes) == len(self._lines):
            self.group.wait(PATIENCE_S)
        self.group.close()

    def _take(self, line: str) -> None:
        node, colon, text = line.partition(": ")
        if colon and node in self._lines:
            self._lines[node].append(text)
            return
        node, sign, code = line.partition("= ")
        if sign and node in self._lines and code.isdigit():
            self._codes[node] = int(code)
        else:
            self._complaint = line  # of srun


def _read(questions: Sequence[_Question], seconds: float) -> bool:
    """Waits so long for any of them; whether a node has come to its end."""
    by_pipe = {question.pipe: question for question in questions if question.is_open}
    return any([by_pipe[pipe].read() for pipe in readable(by_pipe, seconds)])
