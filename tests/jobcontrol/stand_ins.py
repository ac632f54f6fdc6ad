"""Commands of a site that this machine does not have: small programs of their names, put on PATH. They do what the
tests need of them; what the real ones answer is not shown by this."""

from pathlib import Path

# Node by node what the real one does with a session there, which begins in the home folder, with nothing of the environment
# here. A node whose name is in the file `dead` is not reached, one in `mute` says nothing. Each has a folder of its own for
# what is temporary: two daemons of Open MPI would write the machine's topology, with addresses, to one file, and crash.
SSH = """#!/bin/sh
while :; do case $1 in -o|-l|-p) shift 2;; -*) shift;; *) break;; esac; done
node=$1; shift
grep -qx "$node" "{folder}/mute" && exec sleep 60
grep -qx "$node" "{folder}/dead" && { echo "ssh: connect to host $node port 22: No route to host"; exit 255; }
mkdir -p "{folder}/tmp.$node"
cd && exec env -i HOME="$HOME" USER="$USER" PATH=/usr/bin:/bin TMPDIR="{folder}/tmp.$node" "{folder}/login_shell" -c "$*"
"""
# A login shell that is none of sh's kin: all that it takes is one simple command, on one line.
NO_SH = """#!/bin/sh
if [ "$(printf %s "$2" | sed "s/'[^']*'//g" | tr -d 'a-zA-Z0-9 ./_=-')" ] || [ "$(printf '%s\n' "$2" | wc -l)" != 1 ]; then
  echo "Illegal variable name." >&2
  exit 1
fi
exec sh -c "$2"
"""
PING = """#!/bin/sh
for node; do :; done
echo "$node" >> "{folder}/pinged"
sleep 0.5
! grep -qx "$node" "{folder}/dead"
"""
SQUEUE = """#!/bin/sh
echo 1:00:00
"""
SINFO = """#!/bin/sh
for node in $(seq -f node%.0f 0 4); do
  grep -qx $node "{folder}/dead" && echo "$node down*" || echo "$node allocated"
done
"""
# Of the program's step it starts one process, and keeps its arguments. Of the steps by which commands run on nodes
# it starts one on each node that is not dead, and writes down where; with a mute one it hangs.
SRUN = """#!/bin/sh
case " $* " in *" --input=none "*) ours=yes;; *) echo "$*" >> "{folder}/srun.printed";; esac
while :; do case $1 in --nodelist=*) nodes=${1#*=}; shift;; -n*|-N*|--*) shift;; *) break;; esac; done
[ "$ours" ] || exec "$@"
echo "$nodes" >> "{folder}/srun.steps"
code=0
for node in $(python3 -m ClusterShell.CLI.Nodeset -e "$nodes"); do
  grep -qx "$node" "{folder}/mute" && exec sleep 60
  if grep -qx "$node" "{folder}/dead"; then code=1; else SLURMD_NODENAME=$node "$@" & fi
done
wait
exit $code
"""
# Goes by ssh. As the real one does then, it replaces %h, %n and %u in the command; and it cuts domains off.
PDSH = """#!/bin/sh
while :; do case $1 in -N) bare=yes; shift;; -w) nodes=$2; shift 2;; -*) shift 2;; *) break;; esac; done
for node in $(echo "$nodes" | tr , ' '); do
  command=$(printf '%s' "$*" | sed "s/%h/$node/g; s/%n/0/g; s/%u/me/g; s/%%/%/g")
  if [ "$bare" ]; then ssh "$node" "$command" & else ssh "$node" "$command" 2>&1 | sed -u "s/^/${node%%.*}: /" & fi
done
wait
"""
# `run` is the client of a job that is a process of its own, and goes on when the client dies; `cancel` ends it a while later.
# What goes on already when a job begins is in the file `flux.met`.
FLUX = """#!/bin/sh
cd "{folder}" && mkdir -p flux.jobs
jobs() { for job in $(ls flux.jobs); do
  read -r pid name < flux.jobs/$job && grep -q . /proc/$pid/cmdline 2> /dev/null && echo "$job RUN $name"
done; }
case $1 in
run) shift
  while :; do case $1 in --job-name=*) name=${1#*=}; shift;; -n|-N) shift 2;; -*) shift;; *) break;; esac; done
  jobs >> flux.met
  setsid "$@" > /dev/null 2>&1 &
  job=0x$(date +%s%N); echo "$! $name" > flux.jobs/$job
  while jobs | grep -q $job; do sleep 0.1; done;;
cancel) shift
  for job; do (sleep 0.5; read -r pid name < flux.jobs/$job; kill -s KILL -- "-$pid") > /dev/null 2>&1 & done;;
jobs) [ "$*" = "jobs -n -c 100000 -o {id.hex} {state} {name}" ] && { jobs; true; };;
resource) [ "$5" = all ] && echo "node[0-1]";;
*) exit 1;;
esac
"""
SCONTROL = """#!/bin/sh
echo "Slurmctld(primary) at login is UP"
"""


def put_on_path(folder: Path, login_shell: str = '#!/bin/sh\nexec sh "$@"\n') -> str:
    """PATH with all of them; none of node0 to node4 is dead or mute."""
    binaries = folder / "stand-ins"
    binaries.mkdir()
    (folder / "login_shell").write_text(login_shell)
    (folder / "login_shell").chmod(0o755)
    for name in ("dead", "mute"):
        (folder / name).touch()
    for name, text in (("ssh", SSH), ("pdsh", PDSH), ("ping", PING), ("squeue", SQUEUE), ("sinfo", SINFO), ("srun", SRUN),
                       ("scontrol", SCONTROL), ("flux", FLUX)):
        (binaries / name).write_text(text.replace("{folder}", str(folder)))
        (binaries / name).chmod(0o755)
    return f"{binaries}:/usr/bin:/bin"

# The command `cairn` with a native part that scavenges what a test has put into the nodes' storage: `held.json` has
# datasets with the ranks whose parts the node has; `answer`, if it is there, an exit code and what is said instead of
# copying; `trouble` is what of it cannot be read, `left` why a cache was left aside. A list takes `list_s` seconds, a rebuild
# what `rebuild_s` of the dataset says. A dataset can be rebuilt if one rank is missing. All else is the real command's.
CAIRN = '''{python}
import json, os, signal, sys, time
from pathlib import Path
REAL, PACKAGE = "{real}", "{package}"
words = sys.argv[1:]

def values(name):
    return [words[at + 1] for at, word in enumerate(words) if word == name]

def storage():
    return Path(os.environ["SCR_CACHE_BASE"].replace("%n", os.environ["SCR_NODE_NAME"]))

def scavenge_node(prefix):
    node, answer, trouble = os.environ["SCR_NODE_NAME"], storage() / "answer", storage() / "trouble"
    held = json.loads((storage() / "held.json").read_text()) if (storage() / "held.json").exists() else []
    with (prefix / "calls").open("a") as calls:
        calls.write(f"{node} {' '.join(values('--dataset')) or 'list'} {os.environ.get('SCR_JOB_ID')}\\n")
    code = 0 if not trouble.exists() else 1
    if "--list" in words:
        if (storage() / "list_s").exists():
            time.sleep(float((storage() / "list_s").read_text()))
        print("cairn: warning: something {odd", file=sys.stderr)
        left = [(storage() / "left").read_text()] if (storage() / "left").exists() else []
        print(json.dumps({"node": node, "datasets": held, "left": left}, indent=2), flush=True)
        code = 1 if left else code
        print("cairn: error:", trouble.read_text() if trouble.exists() else "none", file=sys.stderr)
        return code
    if answer.exists():
        code, _, text = answer.read_text().partition(" ")
        if text == "hang":
            (prefix / "hangs").touch()
            time.sleep(60)
        if text == "die":
            os.killpg(0, signal.SIGKILL)
        print("cairn: error:", text, file=sys.stderr)
        return int(code)
    for one in held:
        if one["uuid"] in values("--dataset"):
            folder = prefix / ".cairn" / "scavenged" / node
            folder.mkdir(parents=True, exist_ok=True)
            (folder / one["uuid"]).write_text(json.dumps(one))
    print(json.dumps({"node": node, "bytes": 1000, "saved_bytes": 1000,
                      "unreadable": [trouble.read_text()] if code else []}), flush=True)
    print("cairn: error:", trouble.read_text() if code else "none", file=sys.stderr)
    return code

def rebuild(prefix):
    (uuid,) = values("--dataset")
    parts = [json.loads(path.read_text()) for path in (prefix / ".cairn" / "scavenged").glob(f"*/{uuid}")]
    one = parts[0]
    time.sleep(one.get("rebuild_s", 0))
    missing = set(range(one["ranks"])) - {rank for part in parts for rank in part["parts"]}
    outcome = "published" if len(missing) <= 1 else "lost"
    if one.get("becomes"):
        outcome = one["becomes"]
    print(json.dumps({"datasets": [{"number": one["number"], "uuid": uuid, "outcome": outcome,
                                    "reason": f"{len(missing)} ranks are missing" if missing else ""}]}))
    return 0 if outcome == "published" else 1

if words[:1] == ["scavenge-node"]:
    sys.exit(scavenge_node(Path(values("--prefix")[0])))
if words[:1] == ["rebuild"] and "--prefix" in words:
    sys.exit(rebuild(Path(values("--prefix")[0])))
if words[:1] in (["run"], ["scavenge"]):
    sys.path.insert(0, PACKAGE)
    sys.dont_write_bytecode = True
    from cairn.commands import run, scavenge
    sys.exit({"run": run, "scavenge": scavenge}[words[0]].main(words[1:], Path(__file__).resolve()))
os.execv(REAL, [REAL, *words])
'''


def scavenging_cairn(folder: Path, real: Path) -> Path:
    """That command."""
    path = folder / "stand-in" / "cairn"
    path.parent.mkdir()
    package = Path(__file__).resolve().parents[2] / "python"
    python = (real.parent / "cairn-run").read_text().splitlines()[0]
    path.write_text(CAIRN.replace("{python}", python).replace("{real}", str(real)).replace("{package}", str(package)))
    path.chmod(0o755)
    return path
