"""Runs commands on nodes by ssh or pdsh, for resource managers that do not run them."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, Dict, List, Mapping, Sequence, Set

from cairn.login_shell import for_any_shell
from cairn.native import Trouble
from cairn.pdsh import Pdsh
from cairn.reach import PATIENCE_S, Reach
from cairn.roles import GONE, Answer, Ask, Beats, RemoteExecution, ResourceManager, ask_here

TICK_S = 0.1
SSH_OPTIONS = ("-oBatchMode=yes", "-oConnectTimeout=5", "-oForwardX11=no", "-oForwardAgent=no")


class Ssh(RemoteExecution):
    """Runs many commands at once with ClusterShell, and single long ones with ssh. Does not wait for a node whose kernel
    no longer answers."""

    name = "ssh"

    def __init__(self) -> None:
        self._reach = Reach()

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        try:
            from ClusterShell.Task import task_self  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise Trouble("the Python module ClusterShell is missing; Debian's package is "
                          "python3-clustershell") from error
        task = task_self()
        task.set_info("ssh_options", " ".join(SSH_OPTIONS))
        workers = {node: task.shell(for_any_shell(command), nodes=node, timeout=timeout_s)
                   for node, command in commands.items()}
        patience_s = max(PATIENCE_S, timeout_s / 8)
        hurry = _Hurry(self._reach, workers, patience_s)
        # Ends with the commands. It fires earlier for nodes whose test has begun before.
        task.timer(max(TICK_S, patience_s - self._reach.asked_for_s(workers)), handler=hurry, autoclose=True)
        task.run()
        late = set(task.iter_keys_timeout())
        answers = {}
        for node, worker in workers.items():
            text = bytes(worker.node_buffer(node) or b"").decode("utf-8", "replace")
            if node in hurry.gone:
                answers[node] = GONE
            elif node in late:
                answers[node] = Answer(124, f"has not answered for {timeout_s:g} s")
            else:
                answers[node] = Answer(worker.node_retcode(node), text)
        return answers

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["ssh", "-n", *SSH_OPTIONS, node, for_any_shell(command)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        self._reach.learn(nodes)
        return super().beats(nodes, period_s)

    def gone(self, nodes: Sequence[str]) -> Set[str]:
        return self._reach.silent(nodes)

    def expect(self, nodes: Sequence[str]) -> None:
        self._reach.ask(nodes)


class _Hurry:
    """An event handler of ClusterShell: ends commands on dead nodes."""

    def __init__(self, reach: Reach, workers: Mapping[str, Any], patience_s: float) -> None:
        self.gone: Set[str] = set()
        self._reach, self._workers, self._patience_s = reach, workers, patience_s
        reach.ask(workers)

    def ev_timer(self, _: object) -> None:
        """The kernels have had time to answer."""
        late = [node for node, worker in self._workers.items() if not _has_ended(worker, node)]
        self.gone = self._reach.silent(late, self._patience_s)
        for node in self.gone:
            self._workers[node].abort()


def _has_ended(worker: Any, node: str) -> bool:
    try:
        return worker.node_retcode(node) is not None
    except KeyError:
        return False


WAY = "CAIRN_REMOTE"  # the setting that chooses ssh or pdsh


def way_to_nodes(environment: Mapping[str, str]) -> RemoteExecution:
    """Chooses the command of the setting, else ssh, or pdsh if only that exists. Raises Trouble if the command of the
    setting does not exist."""
    def is_there(command: str) -> bool:
        return shutil.which(command, path=environment.get("PATH")) is not None
    chosen = environment.get(WAY, "auto")
    if chosen == "pdsh" and not is_there("pdsh"):
        raise Trouble(f"{WAY}=pdsh, and there is no command pdsh: install it, or set {WAY}=ssh")
    by_pdsh = chosen == "pdsh" or (chosen == "auto" and is_there("pdsh") and not is_there("ssh"))
    return Pdsh(environment) if by_pdsh else Ssh()


class BySsh(ResourceManager):
    """A resource manager that uses ssh or pdsh for commands on nodes."""

    def __init__(self, environment: Mapping[str, str], ask: Ask = ask_here) -> None:
        super().__init__(environment, ask)
        self._remote = way_to_nodes(environment)

    def remote(self) -> RemoteExecution:
        return self._remote
