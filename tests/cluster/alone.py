#!/usr/bin/env python3
"""Runs a command as if on a machine of its own: alone.py [--root] [--needs PROGRAM ...] -- COMMAND ...

Processes, network, host name, mounts and shared memory are namespaces of its own; /run and /dev/shm are new and in
memory. The command's process namespace dies with this process, however that ends, and with it all that was started,
all mounts and all networks: nothing outlives it. Where that cannot be had this says why and exits with 77, which
CTest shows as skipped.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from typing import List, NoReturn

SKIPPED = 77
UNSHARE = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc"]
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]  # --kill-child of util-linux 2.38 complains about signals
# The same calls as those of the cluster, so that a container that forbids one is found out before the tests.
PROBE = """
mount -t tmpfs tmpfs /run
mount --bind /etc/hosts /etc/hosts
ip link add probe type bridge
ip link add probe0 type veth peer name probe1
unshare --mount --uts --ipc --net --pid --fork --mount-proc hostname probe
cat /proc/$$/task/$$/children
"""
NEW = ("/run", "/dev/shm")


def skip(reason: str) -> NoReturn:
    """Ends this process."""
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--needs", nargs="*", default=[], metavar="PROGRAM", help="skipped without these")
    parser.add_argument("--root", action="store_true", help="skipped for users other than root")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def remedy(said: str, user: int) -> str:
    """What helps where the kernel refuses namespaces with these words."""
    if "propagation" in said:
        return "/ is no mount point, as in a chroot: have root bind-mount the chroot's folder onto itself first"
    if user == 0:
        return "a container must be started with what they need (docker run --privileged)"
    return ("run this as root, or have root allow them to users by sysctl: user.max_user_namespaces, and where they exist "
            "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0; "
            "in a container, where root is refused too, start that with what they need (docker run --privileged)")


def unshare() -> List[str]:
    """How to get the namespaces here; skips where there is no way."""
    words = UNSHARE if os.getuid() == 0 else [*UNSHARE, "--user", "--map-root-user"]
    tried = subprocess.run([*words, "sh", "-ec", PROBE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
    if tried.returncode != 0:
        said = " ".join(tried.stdout.split())
        skip(f"no namespaces for a cluster can be had here ({said or tried.returncode}); {remedy(said, os.getuid())}")
    return words


def run_inside(command: List[str]) -> int:
    """As the first process of the new namespace: prepares the machine, and reaps what others leave."""
    for folder in NEW:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # the command gets it too, and decides
    child = subprocess.Popen(command)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def main() -> None:
    """Becomes the namespaces' keeper; inside them, runs the command."""
    options = parsed()
    if options.inside:
        code = run_inside(options.command)
        sys.exit(code if code >= 0 else 128 - code)
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # daemons, and ip
    if options.root and os.getuid() != 0:
        skip("only root can do this: sudo make test-cluster")
    hidden = [folder for folder in NEW if os.path.realpath(__file__).startswith(folder + "/")]
    if hidden:
        skip(f"this checkout lies in {hidden[0]}, which would be hidden")
    missing = [program for program in ["unshare", "nsenter", "mount", "ip", *options.needs]
               if not shutil.which(program)]
    if missing:
        skip(f"not installed: {', '.join(missing)}")
    words = [*unshare(), *DIE_WITH_PARENT, sys.executable, "-B", os.path.abspath(__file__), "--inside", "--", *options.command]
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
