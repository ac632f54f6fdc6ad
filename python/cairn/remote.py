"""Commands on nodes by ssh."""

from __future__ import annotations

import subprocess
from typing import Dict, Mapping

from cairn.native import Trouble
from cairn.roles import Answer, RemoteExecution

SSH_OPTIONS = ("-oBatchMode=yes", "-oConnectTimeout=5", "-oForwardX11=no", "-oForwardAgent=no")


class Ssh(RemoteExecution):
    """Many at once by ClusterShell, single ones that go on for long by ssh itself."""

    name = "ssh"

    def run(self, commands: Mapping[str, str], timeout_s: float) -> Dict[str, Answer]:
        try:
            from ClusterShell.Task import task_self  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise Trouble("the Python module ClusterShell is not there; Debian's package is "
                          "python3-clustershell") from error
        task = task_self()
        task.set_info("ssh_options", " ".join(SSH_OPTIONS))
        workers = {node: task.shell(command, nodes=node, timeout=timeout_s)
                   for node, command in commands.items()}
        task.run()
        late = set(task.iter_keys_timeout())
        answers = {}
        for node, worker in workers.items():
            text = bytes(worker.node_buffer(node) or b"").decode("utf-8", "replace")
            if node in late:
                answers[node] = Answer(124, f"has not answered for {timeout_s:g} s")
            else:
                answers[node] = Answer(worker.node_retcode(node), text)
        return answers

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["ssh", "-n", *SSH_OPTIONS, node, command],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, start_new_session=True)
