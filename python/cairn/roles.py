"""The roles that a site may have to implement: each a small class with one job.

To add a resource manager or a launcher, add one file with a class below to `cairn/resources` or `cairn/launchers`, and
add its name to the `__init__.py` there. tests/jobcontrol/test_conformance.py then checks it against the contracts here. A
resource manager also needs an entry in the table WORKING of that test: the environment of an allocation of four nodes,
and the output of the manager's commands there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import AbstractSet, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cairn.native import WrongUsage
from cairn.processes import Group, allow_files


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    text: str


# A code: the connection has failed, and the state of the node is unknown.
UNKNOWN = -1
# The kernel of the node answered before, and no longer does.
GONE = Answer(124, "its host no longer answers")


class Beats(NamedTuple):
    """A process that writes lines with the names of its nodes, as signs of life."""

    process: "subprocess.Popen[bytes]"
    nodes: Tuple[str, ...]


class Ended(NamedTuple):
    """A run whose launcher has ended."""

    launcher: int  # its process id
    name: str  # the name of the run in the resource manager, if the launcher has given it one
    by_force: bool = False  # ended by cairn run although its nodes were fit, so the rest of it can end soon
    returned_0: bool = False  # the launcher returned 0 by itself


# Runs a command of the resource manager on this node. Tests replace it by recorded answers.
Ask = Callable[[Sequence[str]], Answer]


def ask_here(command: Sequence[str]) -> Answer:
    """The answer of a command on this node; 127 if it cannot be started, 124 if it hangs."""
    try:
        done = subprocess.run(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    except OSError as error:  # with an unreadable directory in PATH the error is not "no such file"
        return Answer(127, f"there is no command {command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Answer(124, f"{command[0]} has not answered for 30 s")
    return Answer(done.returncode, done.stdout if done.returncode == 0 else done.stderr + done.stdout)


class RemoteExecution(ABC):
    """Runs shell commands on nodes."""

    name = ""  # what the site must allow, for messages

    @abstractmethod
    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        """Runs the command of each node on that node, all at once, and returns an answer for every node. A node that
        cannot be reached has a code other than 0, and a text with the reason. If the fault may not be the node's, the
        code is UNKNOWN. `alike`: the commands should take about the same time, so a node that takes much longer than the
        others need not get the whole timeout."""

    @abstractmethod
    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        """Starts a command on the node, with its output in `stdout`. It must end when this process ends."""

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        """Starts processes that send signs of life of the nodes every `period_s`. They must end when this process ends.
        Raises OSError if they cannot be started."""
        allow_files(len(nodes))
        begun: List[Beats] = []
        try:
            for node in nodes:
                command = f"while echo {shlex.quote(node)}; do sleep {period_s:g}; done"
                begun.append(Beats(self.start(node, command), (node,)))
        except OSError:
            for beats in begun:
                Group(beats.process).close()
            raise
        return begun

    def gone(self, nodes: Sequence[str]) -> AbstractSet[str]:
        """The nodes whose kernel no longer answers, if that can be known."""
        del nodes
        return frozenset()

    def expect(self, nodes: Sequence[str]) -> None:
        """A hint: `run` may soon be called for these silent nodes, so slow tests may begin."""


class ResourceManager(ABC):
    """Knows the allocation: its nodes, its end, and the nodes that are reported as down."""

    name = ""

    def __init__(self, environment: Mapping[str, str], ask: Ask = ask_here) -> None:
        self.environment = environment
        self.ask = ask

    @classmethod
    @abstractmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        """True if this process runs in an allocation of this manager."""

    @abstractmethod
    def job_id(self) -> Optional[str]:
        """The id of the job; None if it has none."""

    @abstractmethod
    def nodes(self) -> List[str]:
        """All nodes of the allocation, in its order, each once; raises Trouble if they are unknown."""

    @abstractmethod
    def seconds_left(self, now_s: float) -> Optional[float]:
        """The time until the allocation ends; None if it is unknown or unlimited. Must not raise."""

    @abstractmethod
    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        """The nodes that the manager reports as unusable, each with the reason. Must not raise: without an answer the
        result is empty."""

    @abstractmethod
    def remote(self) -> RemoteExecution:
        """The way to run commands on its nodes."""

    def settings(self) -> Dict[str, str]:
        """Additions to the user's environment for the program."""
        return {}

    def wrap(self, nodes: Sequence[str], ranks: Optional[int]) -> List[str]:
        """The words before the program on its command line."""
        del nodes, ranks
        return []

    def end_leftovers(self, run: Ended) -> str:
        """Ends the processes of a run that have outlived its launcher. Returns a message with the remedy if that failed.
        Takes a bounded time. Must not raise."""
        del run
        return ""

    def names_are_hosts(self) -> bool:
        """True if launchers and ping accept the names of the nodes."""
        return True

    def wanted(self) -> Optional[int]:
        """The number of nodes for the program if neither the user nor the launcher's options give it; None: all."""
        return None


@dataclass(frozen=True)
class Parts:
    """The two parts of a launch command: the launcher's options, and the program with its arguments."""

    options: Tuple[str, ...]
    program: Tuple[str, ...]


class Launcher(ABC):
    """The command line of a launcher."""

    names: Tuple[str, ...] = ()  # of the command
    mpi: Optional[str] = None  # the MPI of its programs; None: any MPI, or unknown
    subcommand = 0  # the number of words after its name that belong to the command, as `run` in `flux run`
    # Options with the number of words that follow them. Options with "=" have no such words.
    takes: Mapping[str, int] = {}
    flags: AbstractSet[str] = frozenset()  # long options without a value
    one_dash = False  # long options may begin with one dash
    colon_joins = True  # ":" joins several programs to one job
    patience_s = 5.0  # how long it may take to end after SIGTERM
    lost_patience_s = 5.0  # the same if it may be waiting for a dead node; then it is killed
    ranks_options: Tuple[str, ...] = ()  # options with the number of ranks
    nodes_options: Tuple[str, ...] = ()  # options with the number of nodes
    name_option = ""  # the option for the name of a run, if the resource manager finds runs by name

    def split(self, words: Sequence[str], also: Mapping[str, int]) -> Parts:
        """Splits the words after the launcher's name at the program. `also`: further options, like `takes`. Raises
        WrongUsage if the beginning of the program is unclear."""
        takes = {**self.takes, **also}
        if self.colon_joins and ":" in words:
            raise WrongUsage('":" joins several programs to one job, and only the first would be kept on its nodes: start '
                             "one program that calls the others by its rank")
        at, option = self.subcommand, ""
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "--":
                at += 1
                break
            if words[at] not in takes:
                self._reject_unknown(words[at], words[at + 1:at + 2])
            option = words[at]
            at += 1 + takes.get(option, 0)
        if at > len(words):
            raise WrongUsage(f"{option} has too few words: something must follow the last word of the command")
        return Parts(tuple(words[:at]), tuple(words[at:]))

    def _reject_unknown(self, word: str, following: Sequence[str]) -> None:
        """Raises WrongUsage for an unknown long option, perhaps of another version of the launcher: the next word may be
        its value, which may be a secret, or the program."""
        is_long = word.startswith("--") or self.one_dash and len(word) > 2
        if is_long and word not in self.flags and "=" not in word and following and not following[0].startswith("-"):
            raise WrongUsage(f"{word} is not an option of {self.names[0]} that cairn run knows: if the word after it is its "
                             f"value, write {word}=VALUE; if the program begins there, write -- before it")

    def ranks(self, options: Sequence[str]) -> Optional[int]:
        """The number of ranks in the options; None if they do not have it."""
        return self._number(options, self.ranks_options)

    def nodes(self, options: Sequence[str]) -> Optional[int]:
        """The number of nodes in the options; None if they do not have it."""
        return self._number(options, self.nodes_options)

    def run_name(self, options: Sequence[str], program: Sequence[str]) -> str:
        """A unique name, which begins with the name in the options or that of the program; empty if runs of this launcher
        have no names."""
        if not self.name_option:
            return ""
        return f"{self._value(options, (self.name_option,)) or os.path.basename(program[0])}.{uuid.uuid4().hex[:8]}"

    @abstractmethod
    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        """The options with which a run uses exactly these nodes of the allocation, and none of those left out."""

    def passing(self, variables: Sequence[str], options: Sequence[str], environment: Mapping[str, str]) -> List[str]:
        """Additional options with which the launcher passes these variables of its environment to the program, if it
        needs any. They have the names only, as the values must not be on a command line."""
        del variables, options, environment
        return []

    def trouble_as_root(self, options: Sequence[str], environment: Mapping[str, str]) -> str:
        """Why the launcher would not start a program for root, with the remedy; empty if it would."""
        del options, environment
        return ""

    def _number(self, options: Sequence[str], names: Sequence[str]) -> Optional[int]:
        found = self._value(options, names)
        return int(found) if found and found.isdigit() else None

    def _value(self, options: Sequence[str], names: Sequence[str]) -> Optional[str]:
        """The value of the last such option; a number may follow a short name without a space."""
        found = None
        for at, word in enumerate(options):
            for name in names:
                short = len(name) == 2
                if word == name and at + 1 < len(options):
                    found = options[at + 1]
                elif word.startswith(name + "="):
                    found = word[len(name) + 1:]
                elif short and word.startswith(name) and word[2:].isdigit():
                    found = word[2:]
        return found


def per_node(ranks: Optional[int], nodes: int) -> Optional[int]:
    """The largest number of ranks per node."""
    return -(-ranks // nodes) if ranks else None


class NodeTest(ABC):
    """Finds the nodes that are not fit for a run."""

    name = ""
    # True if a running program has lost a node that fails this test. Other tests count only before a launch: a node
    # with too little space, or without an answer to ping, may still run its program.
    tells_loss = False

    @abstractmethod
    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        """The nodes that fail, each with the reason. Must not raise."""
