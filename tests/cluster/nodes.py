"""A cluster on one machine: a node is a set of namespaces, with a host name, an address, processes, memory and
node-local storage of its own. The rest of the files are shared by all, as a parallel file system is.

To be run under alone.py. Killing a node is real: all its processes die, and with them its storage and its network.
"""

import os
import select
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence

FOLDER = Path("/run/cluster")
LOCAL = FOLDER / "local"  # on each node its own storage
AGENT = Path(__file__).resolve().parent / "into_node"
SSH = FOLDER / "bin"  # where it has the name ssh, and is that
NODES_MAX = 16
# Reaps its orphans, as an init does.
INIT = """
mount -t tmpfs -o size={bytes} tmpfs {local}
mount -t tmpfs -o size={bytes} tmpfs /dev/shm
mount -t sysfs sysfs /sys 2>/dev/null || :
hostname {name}
ip link set lo up
echo up
while :; do sleep 1000 & wait $!; done
"""


def address(number: int) -> str:
    return f"10.77.0.{number + 1}"


def shell(script: str) -> None:
    subprocess.run(["sh", "-ec", script], check=True, stdin=subprocess.DEVNULL, timeout=20)


class Node:
    """One that is on, until `kill`."""

    def __init__(self, number: int, storage_bytes: int) -> None:
        self.number, self.name = number, f"node{number}"
        script = INIT.format(bytes=storage_bytes, local=LOCAL, name=self.name)
        self._keeper = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc",
             "setpriv", "--pdeathsig", "KILL", "sh", "-ec", script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == "up\n", f"{self.name} does not start"
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children").read_text().split()
        self.init = int(children[0])
        self._handle = os.pidfd_open(self.init)
        shell(f"""ip link add v{number} type veth peer name eth0 address 02:00:00:00:00:{number + 1:02x} netns {self.init}
                  ip link set v{number} master eth0 up
                  nsenter -t {self.init} -n ip addr add {address(number)}/24 dev eth0
                  nsenter -t {self.init} -n ip link set eth0 up""")
        (FOLDER / "inits" / self.name).write_text(f"{self.init}\n")

    def enter(self, command: Sequence[str]) -> List[str]:
        """The words that run a command on the node."""
        return [str(AGENT), self.name, shlex.join(command)]

    def is_on(self) -> bool:
        return self._keeper.poll() is None

    def cut(self) -> None:
        """Its link goes down; nothing dies."""
        shell(f"ip link set v{self.number} down")

    def kill(self) -> None:
        """At once, and it returns when the last process is gone."""
        (FOLDER / "inits" / self.name).unlink()
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        gone, _, _ = select.select([self._handle], [], [], 20)
        assert gone, f"{self.name} does not die"
        os.close(self._handle)
        self._keeper.wait(20)
        # Else the network lives until the kernel finds time to remove it, and keeps the name.
        subprocess.run(["ip", "link", "del", f"v{self.number}"], check=False, stderr=subprocess.DEVNULL)


class Cluster:
    """Nodes, numbered, behind one switch, to which this process belongs too. A context manager."""

    def __init__(self, count: int = 0, storage_bytes: int = 1 << 30) -> None:
        self._bytes, self._count = storage_bytes, count
        self.nodes: Dict[str, Node] = {}

    def __enter__(self) -> "Cluster":
        for folder in (LOCAL, SSH, FOLDER / "inits"):
            folder.mkdir(parents=True, exist_ok=True)
        names = "".join(f"{address(number)} node{number}\n" for number in range(NODES_MAX))
        (FOLDER / "hosts").write_text(f"127.0.0.1 localhost\n{address(253)} login\n{names}")
        # A switch with no address of its own takes the lowest of its ports', and so another one when that node dies:
        # then nobody reaches us for the seconds in which the nodes go on with the old one.
        shell(f"""mount --bind {FOLDER}/hosts /etc/hosts
                  hostname login
                  ip link add eth0 address 02:00:00:00:00:fe type bridge
                  ip addr add {address(253)}/24 dev eth0
                  ip link set eth0 up
                  ln -s {AGENT} {SSH}/ssh""")
        for number in range(self._count):
            self.add(number)
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def add(self, number: int) -> Node:
        """A new node, or one that was killed: it comes back empty."""
        node = Node(number, self._bytes)
        self.nodes[node.name] = node
        return node

    def kill(self, name: str) -> None:
        self.nodes.pop(name).kill()

    def list(self) -> List[str]:
        return [name for name, node in self.nodes.items() if node.is_on()]

    def down(self) -> None:
        for name in list(self.nodes):
            self.kill(name)

    def start(self, name: str, command: Sequence[str],
              environment: Optional[Mapping[str, str]] = None) -> "subprocess.Popen[str]":
        """A command on a node."""
        return subprocess.Popen(self.nodes[name].enter(command), env=None if environment is None else dict(environment),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name: str, *command: str, timeout_s: float = 30) -> str:
        """The same for one that must succeed: what it says."""
        process = self.start(name, command)
        try:
            said, _ = process.communicate(timeout=timeout_s)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        assert process.returncode == 0, f"{name}: {' '.join(command)}: {process.returncode}\n{said}"
        return said
