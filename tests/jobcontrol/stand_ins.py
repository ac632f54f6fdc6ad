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
# Of the program's step it starts one process, and keeps what it was told. Of the steps by which commands run on nodes
# it starts one on each node that is not dead.
SRUN = """#!/bin/sh
case " $* " in *" --input=none "*) ours=yes;; *) echo "$*" >> "{folder}/srun.told";; esac
while :; do case $1 in --nodelist=*) nodes=${1#*=}; shift;; -n*|-N*|--*) shift;; *) break;; esac; done
[ "$ours" ] || exec "$@"
code=0
for node in $(python3 -m ClusterShell.CLI.Nodeset -e "$nodes"); do
  if grep -qx "$node" "{folder}/dead"; then code=1; else SLURMD_NODENAME=$node "$@" & fi
done
wait
exit $code
"""
SCONTROL = """#!/bin/sh
echo "Slurmctld(primary) at login is UP"
"""


def put_on_path(folder: Path) -> str:
    """PATH with all of them; none of node0 to node4 is dead."""
    binaries = folder / "stand-ins"
    binaries.mkdir()
    (folder / "dead").touch()
    for name, text in (("ssh", SSH), ("squeue", SQUEUE), ("sinfo", SINFO), ("srun", SRUN), ("scontrol", SCONTROL)):
        (binaries / name).write_text(text.replace("{folder}", str(folder)))
        (binaries / name).chmod(0o755)
    return f"{binaries}:/usr/bin:/bin"
