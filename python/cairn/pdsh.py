"""Commands on nodes by pdsh, with the remote command that pdsh itself uses (PDSH_RCMD_TYPE)."""

from __future__ import annotations

import subprocess
from typing import Dict, List, Mapping, Sequence, Set

from cairn.labelled import WITH_EXIT_CODE, Question, answers_of, groups_of
from cairn.login_shell import for_any_shell
from cairn.processes import ends_with_us
from cairn.reach import Reach
from cairn.roles import GONE, Answer, Beats, RemoteExecution

AT_ONCE = 256
SSH_OPTIONS = "-oBatchMode=yes -oForwardX11=no -oForwardAgent=no"


class Pdsh(RemoteExecution):
    """One process for all nodes that run the same command. Does not wait for a node whose kernel no longer answers."""

    name = "pdsh"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {"PDSH_SSH_ARGS_APPEND": SSH_OPTIONS, **environment}
        self._reach = Reach()

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        gone = self._reach.silent(commands, timeout_s / 8)
        asked = {node: command for node, command in commands.items() if node not in gone}

        def ask(nodes: Sequence[str]) -> Question:
            process = self._started(nodes, WITH_EXIT_CODE.format(command=asked[nodes[0]]), errors=subprocess.STDOUT)
            return Question(process, nodes, "pdsh has run nothing there")
        found = answers_of(groups_of(asked), ask, timeout_s, alike)
        return {node: GONE if node in gone else found[node] for node in commands}

    def gone(self, nodes: Sequence[str]) -> Set[str]:
        return self._reach.silent(nodes)

    def expect(self, nodes: Sequence[str]) -> None:
        self._reach.ask(nodes)

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        self._reach.learn(nodes)
        return super().beats(nodes, period_s)

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return self._started([node], command, "-N")

    def _started(self, nodes: Sequence[str], command: str, *options: str,
                 errors: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        words = ["pdsh", *options, "-t", "5", "-f", str(min(len(nodes), AT_ONCE)), "-w", ",".join(nodes),
                 for_any_shell(command)]
        return subprocess.Popen(words, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=errors, start_new_session=True, preexec_fn=ends_with_us())
