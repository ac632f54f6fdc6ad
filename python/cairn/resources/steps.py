"""Commands on nodes by Slurm itself: a job may always start steps on its nodes, with or without ssh."""

from __future__ import annotations

import subprocess
from typing import Dict, List, Mapping, Sequence, Set

from cairn.hosts import fold
from cairn.labelled import REFUSED, SILENT, WITH_EXIT_CODE, Question, answers_of, groups_of
from cairn.processes import ends_with_us
from cairn.reach import Reach
from cairn.roles import GONE, UNKNOWN, Answer, Ask, Beats, RemoteExecution

# Shares the resources of the allocation with the program's step, so it starts at once. The death of a node does not end
# it.
SRUN = ("srun", "--overlap", "--no-kill", "--mpi=none", "--input=none", "--quiet", "--mem=0", "--gres=none",
        "--cpus-per-task=1", "--ntasks-per-node=1", "--chdir=/")
# Each line begins with the node's name.
LABELLED = """{{ {command}; }} | while IFS= read -r line; do printf '%s: %s\\n' "$SLURMD_NODENAME" "$line"; done"""
BEAT = "while echo $SLURMD_NODENAME; do sleep {:g}; done"


class Steps(RemoteExecution):
    """Runs steps beside the program's step (srun --overlap): one for all nodes with the same command."""

    name = "srun --overlap"

    def __init__(self, environment: Mapping[str, str], job: str, ask: Ask) -> None:
        # Without the variables that sbatch and the user have set for the program's step.
        self._environment = {key: value for key, value in environment.items()
                             if not key.startswith(("SLURM_", "SRUN_")) or key == "SLURM_CONF"}
        self._here = environment.get("SLURMD_NODENAME", "")
        self._job, self._ask = job, ask
        self._reach = Reach()
        self._answered: Set[str] = set()  # nodes that answered their last command

    def run(self, commands: Mapping[str, str], timeout_s: float, alike: bool = True) -> Dict[str, Answer]:
        """Also runs a command on another node, a witness: on this one if it belongs to the job. If the witness answers, a
        node without an answer has failed, and not Slurm. Does not wait for nodes whose kernel has not answered for an
        eighth of `timeout_s`."""
        gone = self._reach.silent(commands, timeout_s / 8)
        asked = {node: command for node, command in commands.items() if node not in gone}
        witness = self._here or next((node for node in sorted(self._answered) if node not in commands), "")
        if witness:
            asked.setdefault(witness, "true")
        groups = groups_of(asked)
        found = self._asked(groups, asked, timeout_s, alike)
        # If Slurm no longer gives one of its nodes, the whole step fails.
        refused = [group for group in groups if len(group) > 1 and all(found[node].code == REFUSED for node in group)]
        if refused and self._is_up():
            found.update(self._asked([[node] for group in refused for node in group], asked, timeout_s, alike))
        answered = {node for node, answer in found.items() if answer.code not in (SILENT, REFUSED, UNKNOWN)}
        self._answered = (self._answered - found.keys() - gone) | answered
        if not answered and (self._here or not self._is_up()):
            return {node: Answer(UNKNOWN, found.get(node, GONE).text) for node in commands}
        return {node: GONE if node in gone else found[node] for node in commands}

    def gone(self, nodes: Sequence[str]) -> Set[str]:
        return self._reach.silent(nodes)

    def expect(self, nodes: Sequence[str]) -> None:
        self._reach.ask(nodes)

    def start(self, node: str, command: str) -> "subprocess.Popen[bytes]":
        return self._step([node], command)

    def beats(self, nodes: Sequence[str], period_s: float) -> List[Beats]:
        self._reach.learn(nodes)
        return [Beats(self._step(nodes, BEAT.format(period_s)), tuple(nodes))]

    def _step(self, nodes: Sequence[str], command: str, errors: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        words = [*SRUN, f"--jobid={self._job}", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}",
                 f"--nodelist={fold(nodes)}", "sh", "-c", command]
        # srun does not end when its reader ends.
        return subprocess.Popen(words, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=errors, start_new_session=True, preexec_fn=ends_with_us())

    def _asked(self, groups: Sequence[Sequence[str]], commands: Mapping[str, str],
               timeout_s: float, alike: bool) -> Dict[str, Answer]:
        """Runs one step for each group."""
        def ask(nodes: Sequence[str]) -> Question:
            command = LABELLED.format(command=WITH_EXIT_CODE.format(command=commands[nodes[0]]))
            return Question(self._step(nodes, command, subprocess.STDOUT), nodes, "Slurm starts no step there")
        return answers_of(groups, ask, timeout_s, alike)

    def _is_up(self) -> bool:
        return self._ask(["scontrol", "ping"]).code == 0
