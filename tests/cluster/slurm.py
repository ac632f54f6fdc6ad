"""A real Slurm on the nodes of a cluster: munge and slurmctld here, a slurmd on each node."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence

from nodes import LOCAL, Cluster, address

FOLDER = Path("/run/slurm")
CONFIG = FOLDER / "slurm.conf"
# On each node's own storage, and of one name: the plugin for PMIx sends to the name as it is here, with %n unresolved.
SPOOL = LOCAL / "slurmd"
# States of a job that is not at its end; SIGNALING for the moment in which sbatch --signal acts.
NOT_OVER = ("PENDING", "RUNNING", "CONFIGURING", "RESIZING", "SIGNALING", "SUSPENDED")
# Each node offers more processors than there are: ranks of several tests, and signs of life, share two cores.
CONFIGURATION = """
ClusterName=test
SlurmctldHost=login({login})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}
TmpFS={local}
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=30
KillWait=2
Waittime=0
RebootProgram=/bin/true
NodeName=node[0-{last}] NodeAddr={network}.[1-{count}] CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 OverSubscribe=NO
"""


def as_munge(*command: str) -> None:
    subprocess.run(["setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups", *command], check=True,
                   timeout=20)


class Slurm:
    """Running on the first nodes of a cluster. A context manager; its daemons end with the namespaces."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.count = cluster, len(cluster.nodes)

    def __enter__(self) -> "Slurm":
        os.environ["SLURM_CONF"] = str(CONFIG)
        (FOLDER / "state").mkdir(parents=True)
        (FOLDER / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        network, _, _ = address(0).rpartition(".")
        CONFIG.write_text(CONFIGURATION.format(folder=FOLDER, local=LOCAL, spool=SPOOL, login=address(253), network=network,
                                               count=self.count, last=self.count - 1))
        self._start_munge()
        subprocess.run(["slurmctld", "-i", "-c"], check=True, timeout=20)
        for name in self.cluster.nodes:
            self.start_node(name)
        self.until_well(list(self.cluster.nodes))
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def _start_munge() -> None:
        """With a key of its own; the socket is where clients look for it."""
        for folder, mode in (("munge", 0o755), ("munge.private", 0o700)):
            path = Path("/run") / folder
            path.mkdir(mode=mode)
            shutil.chown(path, "munge", "munge")
        key = "/run/munge.private/key"
        as_munge("sh", "-c", f"umask 077; head -c 128 /dev/urandom > {key}")
        as_munge("munged", "--key-file", key, "--log-file", "/run/munge.private/log", "--pid-file",
                 "/run/munge.private/pid", "--seed-file", "/run/munge.private/seed")

    def start_node(self, name: str) -> None:
        """Its slurmd."""
        self.cluster.run(name, "sh", "-c", f"mkdir {SPOOL} && exec slurmd -N {name}")

    def until_well(self, names: Sequence[str], timeout_s: float = 20) -> None:
        """Waits until each is idle and answers."""
        end = time.monotonic() + timeout_s
        while True:
            states = dict(line.split() for line in self.ask("sinfo", "-hN", "-o", "%N %T").splitlines())
            if all(states[name] == "idle" for name in names):
                return
            assert time.monotonic() < end, f"{states}\n{self.logs()}"
            time.sleep(0.05)

    def lose(self, *names: str, printed: bool = True) -> float:
        """The nodes die. Either Slurm hears of it from the administrator; or nobody does, as with their power the
        network goes, and no connection is closed. Returns when that was."""
        dead_s = time.time()
        for name in names:
            if not printed:
                self.cluster.nodes[name].cut()
            self.cluster.kill(name)
        if printed:
            self._set_down(names)
        return dead_s

    def _set_down(self, names: Sequence[str]) -> None:
        self.ask("scontrol", "update", f"nodename={','.join(names)}", "state=down", "reason=killed")

    def mend(self) -> None:
        """All jobs end, nodes that were killed come back, empty."""
        names = [f"node{number}" for number in range(self.count)]
        dead = [name for name in names if name not in self.cluster.nodes]
        if dead:
            self._set_down(dead)
        self.ask("scancel", "--partition=main")
        for name in dead:
            self.cluster.add(int(name[len("node"):]))
            self.start_node(name)
        self.until_well(names)

    def ask(self, *command: str, timeout_s: float = 20) -> str:
        """A command of Slurm that must succeed."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=timeout_s, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{self.logs()}"
        return done.stdout

    @staticmethod
    def logs() -> str:
        """The last errors of all daemons."""
        printed = []
        for path in sorted(FOLDER.glob("*.log")):
            errors = [line for line in path.read_text(errors="replace").splitlines() if "error:" in line]
            printed += [f"== {path.name}", *errors[-8:]]
        return "\n".join(printed)


class BatchJob:
    """A script in an allocation of its own. What it says goes into `folder`."""

    def __init__(self, slurm: Slurm, folder: Path, options: Sequence[str], script: str,
                 environment: Optional[Mapping[str, str]] = None) -> None:
        self.folder, self._slurm = folder, slurm
        path = folder / f"script.{time.monotonic_ns()}"
        path.write_text(f"#!/bin/sh\n{script}\n")
        self._printed, self._output = path.with_suffix(".printed"), path.with_suffix(".output")
        said = subprocess.run(
            ["sbatch", "--parsable", f"--output={self._output}", f"--error={self._printed}", f"--chdir={folder}", *options,
             str(path)], env=None if environment is None else dict(environment), text=True, timeout=20, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert said.returncode == 0, said.stdout
        self.id = said.stdout.strip()

    def output(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def printed(self) -> str:
        return self._printed.read_text(errors="replace") if self._printed.exists() else ""

    def fields(self) -> Dict[str, str]:
        """What Slurm knows of it."""
        said = self._slurm.ask("scontrol", "show", "job", self.id)
        return dict(re.findall(r"(\w+)=(\S*)", said))

    def wait(self, timeout_s: float) -> int:
        """Its exit code, or 128 and the signal that has ended it."""
        end = time.monotonic() + timeout_s
        while True:
            fields = self.fields()
            if fields["JobState"] not in NOT_OVER and fields["EndTime"] != "Unknown":
                code, _, number = fields["ExitCode"].partition(":")
                return int(code) or (128 + int(number) if int(number) else 0)
            assert time.monotonic() < end, f"not done in {timeout_s} s: {fields}\n{self.said()}"
            time.sleep(0.05)

    def failure(self) -> Optional[str]:
        """Why nothing more is to be expected of it."""
        state = self.fields()["JobState"]
        return None if state in NOT_OVER else f"{state}\n{self.said()}"

    def said(self) -> str:
        return f"-- output\n{self.output()}\n-- printed\n{self.printed()}\n{self._slurm.logs()}"

    def steps(self) -> List[str]:
        """Those that Slurm still knows of, without that of the script."""
        said = self._slurm.ask("squeue", "-hs", "-j", self.id, "-o", "%i")
        return [step for step in said.split() if not step.endswith(".batch")]
