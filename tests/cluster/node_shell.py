#!/usr/bin/env python3
"""What ssh and sshd are to other clusters, over the nodes' network, so that who is cut off is not reached by it either.

    node_shell.py --serve            on a node, until that dies
    ssh [options] NODE COMMAND ...   under this name: runs the command there, in the home folder, and without the environment
"""

import getpass
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Dict, List

PORT = 2222
END = b"\0"  # after the output; the exit code follows
LOST = 255
PATIENCE_S = 5.0


def session() -> Dict[str, str]:
    """The environment that sshd gives."""
    return {"HOME": os.environ["HOME"], "SHELL": "/bin/sh", "PATH": "/usr/local/bin:/usr/bin:/bin",
            **dict.fromkeys(("USER", "LOGNAME"), getpass.getuser())}


def run_here(connection: socket.socket) -> None:
    """The command of one client; it goes on if the client goes away."""
    with connection, connection.makefile("rb") as asked:
        command = json.loads(asked.readline())
        done = subprocess.run(["sh", "-c", command], cwd=os.environ["HOME"], env=session(), check=False,
                              stdin=subprocess.DEVNULL, stdout=connection, stderr=connection, start_new_session=True)
        with suppress(OSError):
            connection.sendall(END + str(done.returncode % 256).encode())
            connection.shutdown(socket.SHUT_RDWR)


def serve() -> None:
    """Says `up` once it can be reached."""
    with socket.create_server(("", PORT), backlog=64) as server:
        print("up", flush=True)
        while True:
            threading.Thread(target=run_here, args=(server.accept()[0],), daemon=True).start()


def run_there(node: str, command: str) -> int:
    """Passes the output on. The exit code."""
    try:
        connection = socket.create_connection((node, PORT), PATIENCE_S)
    except OSError as error:
        print(f"ssh: connect to host {node}: {error}", file=sys.stderr)
        return LOST
    with connection:
        connection.settimeout(None)
        connection.sendall(json.dumps(command).encode() + b"\n")
        code = None
        for piece in iter(lambda: connection.recv(1 << 16), b""):
            output, end, rest = piece.partition(END)
            code = (code + piece) if code is not None else rest if end else None
            os.write(1, output if code is None or end else b"")
    return int(code) if code else LOST


def main(words: List[str]) -> int:
    """By the words that ssh understands."""
    if words == ["--serve"]:
        serve()
    while words[0].startswith("-"):
        del words[:2 if words[0] in ("-l", "-p", "-i", "-o") else 1]
    return run_there(words[0], " ".join(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
