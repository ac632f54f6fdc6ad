"""The roles that a site may have to fill: each a small class with one job.

To add a resource manager or a launcher is to add one file with a class below to `cairn/resources` or
`cairn/launchers`, and to name it in the `__init__.py` there. tests/jobcontrol/test_conformance.py then
holds it to what is written here; for a resource manager it needs an entry in its table WORKING, the environment of
an allocation of four nodes and the answers of the manager's commands there.
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
    """What a command has returned and said."""

    code: int
    text: str


# A code: the way to the node has failed, which tells nothing of the node.
UNKNOWN = -1
# The kernel of the node does not answer, as it did before.
GONE = Answer(124, "its host answers no more")


class Beats(NamedTuple):
    """A process that writes, for each of some nodes, lines with the node's name."""

    process: "subprocess.Popen[bytes]"
    nodes: Tuple[str, ...]


class Ended(NamedTuple):
    """A run whose launcher is gone."""

    launcher: int  # its process id
    name: str  # by which the resource manager knows the run, where the launcher has given it one
    by_force: bool = False  # though its nodes were well: what is left of it can end soon
    returned_0: bool = False  # the launcher, by itself


# Runs a command of the resource manager here. Tests put recorded answers in its place.
Ask = Callable[[Sequence[str]], Answer]


def ask_here(command: Sequence[str]) -> Answer:
    """The answer of a command on this node; 127 if there is none that may be started, 124 if it hangs."""
    try:
        done = subprocess.run(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    except OSError as error:  # with a folder in PATH that may not be read, it is not "no such file"
        return Answer(127, f"there is no command {command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Answer(124, f"{command[0]} has not answered for 30 s")
    return Answer(done.returncode, done.stdout if done.returncode == 0 else done.stderr + done.stdout)


class RemoteExecution(ABC):
    """Runs shell commands on nodes."""

    name = ""  # what the site must allow for it

    @abstractmethod
    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        """The command of each node on it, all at once. A node that cannot be reached answers with a
        code other than 0 and a text that says so; every node answers. Only what is known to be the node's
        fault may count against it: else the code is UNKNOWN. `alike`: it should take about as long on each of them, so
        one that takes much longer than another need not be given all of the time."""

    @abstractmethod
    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        """Starts a command on the node, its output in `stdout`. It is to end when this process does."""

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        """Starts what tells every `period_s` that the nodes are alive. It is to end when this process does. Raises OSError
        if it cannot be started."""
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
        """Those of which not even the kernel answers any more, where that can be known."""
        del nodes
        return frozenset()

    def expect(self, nodes: Sequence[str]) -> None:
        """`run` may be asked about these soon, as they have been quiet for a while: what takes its time may begin."""


class ResourceManager(ABC):
    """Knows the allocation: its nodes, its end, and which of its nodes are said to be down."""

    name = ""

    def __init__(self, environment: Mapping[str, str], ask: Ask = ask_here) -> None:
        self.environment = environment
        self.ask = ask

    @classmethod
    @abstractmethod
    def is_here(cls, environment: Mapping[str, str]) -> bool:
        """Whether this process runs in an allocation of this manager."""

    @abstractmethod
    def job_id(self) -> Optional[str]:
        """The id of the job; None if it has none."""

    @abstractmethod
    def nodes(self) -> List[str]:
        """All nodes of the allocation, in its order, each once; raises Trouble if that is not known."""

    @abstractmethod
    def seconds_left(self, now_s: float) -> Optional[float]:
        """Until the allocation ends; None if that is not known, or never. Must not raise."""

    @abstractmethod
    def down(self, nodes: Sequence[str]) -> Dict[str, str]:
        """Those that it says cannot be used, each with the reason. Must not raise: where it does not
        answer, nothing is known to be down."""

    @abstractmethod
    def remote(self) -> RemoteExecution:
        """How commands are run on its nodes."""

    def settings(self) -> Dict[str, str]:
        """What the program's environment needs beside the user's."""
        return {}

    def wrap(self, nodes: Sequence[str], ranks: Optional[int]) -> List[str]:
        """What goes before the program on its command line."""
        del nodes, ranks
        return []

    def end_leftovers(self, run: Ended) -> str:
        """Ends what of a run has outlived its launcher; tells what could not be ended, and the remedy. Takes a bounded time.
        Must not raise."""
        del run
        return ""

    def names_are_hosts(self) -> bool:
        """Whether a launcher can be told the names of the nodes, and ping reaches them."""
        return True

    def wanted(self) -> Optional[int]:
        """Nodes that the program is to run on where neither the user nor the launcher's options say
        it; None: all."""
        return None


@dataclass(frozen=True)
class Parts:
    """A launch command in two: the launcher's options, the program with its arguments."""

    options: Tuple[str, ...]
    program: Tuple[str, ...]


class Launcher(ABC):
    """Knows the command line of a launcher."""

    names: Tuple[str, ...] = ()  # of the command
    mpi: Optional[str] = None  # whose programs it starts; None: those of any MPI, or that is not known
    subcommand = 0  # how many words of the command follow its name, as `run` in `flux run`
    # Options that take so many words after them, beside those that hold their value after "=".
    takes: Mapping[str, int] = {}
    flags: AbstractSet[str] = frozenset()  # long options that take none
    one_dash = False  # whether long options may begin with one dash
    colon_joins = True  # whether ":" joins several programs to one job
    patience_s = 5.0  # what it gets to end in by itself when it is asked to
    lost_patience_s = 5.0  # the same where it may wait for a node that is gone; then it is killed
    ranks_options: Tuple[str, ...] = ()  # that tell the number of ranks
    nodes_options: Tuple[str, ...] = ()  # that tell the number of nodes
    name_option = ""  # by which the resource manager finds a run, where it needs a name for that

    def split(self, words: Sequence[str], also: Mapping[str, int]) -> Parts:
        """Cuts what follows the launcher's name where the program begins. `also`: like `takes`. Raises WrongUsage where
        that cannot be known."""
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
                self._refuse_unknown(words[at], words[at + 1:at + 2])
            option = words[at]
            at += 1 + takes.get(option, 0)
        if at > len(words):
            raise WrongUsage(f"{option} has too few words: something must follow the last word of the command")
        return Parts(tuple(words[:at]), tuple(words[at:]))

    def _refuse_unknown(self, word: str, following: Sequence[str]) -> None:
        """An option of a version of the launcher that is not known here, before a word that may be its value, which may be
        a secret, or the program."""
        is_long = word.startswith("--") or self.one_dash and len(word) > 2
        if is_long and word not in self.flags and "=" not in word and following and not following[0].startswith("-"):
            raise WrongUsage(f"{word} is no option of {self.names[0]} that cairn run knows: if the word after it is its value, "
                             f"write {word}=VALUE; if the program begins there, write -- before it")

    def ranks(self, options: Sequence[str]) -> Optional[int]:
        """How many the options ask for, None if they do not tell."""
        return self._number(options, self.ranks_options)

    def nodes(self, options: Sequence[str]) -> Optional[int]:
        """How many they ask for, None if they do not tell."""
        return self._number(options, self.nodes_options)

    def run_name(self, options: Sequence[str], program: Sequence[str]) -> str:
        """A name that nothing else has, which begins with the one in the options, or the program's; empty where the runs get
        none."""
        if not self.name_option:
            return ""
        return f"{self._value(options, (self.name_option,)) or os.path.basename(program[0])}.{uuid.uuid4().hex[:8]}"

    @abstractmethod
    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        """The options that keep a run on exactly these nodes of the allocation, and off those that are
        left out."""

    def passing(self, variables: Sequence[str], options: Sequence[str], environment: Mapping[str, str]) -> List[str]:
        """What beside `options` brings these variables of its environment to the program, where the launcher does not do so
        by itself. By their names alone: their values must not be on a command line."""
        del variables, options, environment
        return []

    def trouble_as_root(self, options: Sequence[str], environment: Mapping[str, str]) -> str:
        """Why it would refuse to start a program for root, with the remedy; empty if it would not."""
        del options, environment
        return ""

    def _number(self, options: Sequence[str], names: Sequence[str]) -> Optional[int]:
        found = self._value(options, names)
        return int(found) if found and found.isdigit() else None

    def _value(self, options: Sequence[str], names: Sequence[str]) -> Optional[str]:
        """The last one; a number may follow a short name without a space."""
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
    """The most ranks that a node gets."""
    return -(-ranks // nodes) if ranks else None


class NodeTest(ABC):
    """Tells which nodes are not fit for a run."""

    name = ""
    # Whether a node that fails it is lost to a program that runs there. Others count before a launch only: a node that
    # has less room than it should, or does not answer to ping, may carry its program well.
    tells_loss = False

    @abstractmethod
    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        """Those of `nodes` that fail, each with the reason. Must not raise."""
