"""Commands of a site that this machine does not have: small programs of their names, put on PATH. They do what the
tests need of them; what the real ones answer is not shown by this."""

from pathlib import Path

# Node by node what the real one does with a session there. A node whose name is in the file `dead` is not reached.
SSH = """#!/bin/sh
while :; do case $1 in -o|-l|-p) shift 2;; -*) shift;; *) break;; esac; done
node=$1; shift
grep -qx "$node" "{folder}/dead" && { echo "ssh: connect to host $node port 22: No route to host"; exit 255; }
exec sh -c "$*"
"""
SQUEUE = """#!/bin/sh
echo 1:00:00
"""
SINFO = """#!/bin/sh
for node in $(seq -f node%.0f 0 4); do
  grep -qx $node "{folder}/dead" && echo "$node down*" || echo "$node allocated"
done
"""
# Starts one process, and keeps what it was told.
SRUN = """#!/bin/sh
echo "$*" >> "{folder}/srun.told"
while :; do case $1 in -n*|-N*|--*=*) shift;; *) break;; esac; done
exec "$@"
"""


def put_on_path(folder: Path) -> str:
    """PATH with all of them; none of node0 to node4 is dead."""
    binaries = folder / "stand-ins"
    binaries.mkdir()
    (folder / "dead").touch()
    for name, text in (("ssh", SSH), ("squeue", SQUEUE), ("sinfo", SINFO), ("srun", SRUN)):
        (binaries / name).write_text(text.replace("{folder}", str(folder)))
        (binaries / name).chmod(0o755)
    return f"{binaries}:/usr/bin:/bin"
