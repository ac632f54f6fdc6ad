"""GROMACS under `cairn run`: rank 0 writes each checkpoint alone, and its node is lost."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest
from cluster import OPENMPI_SETTINGS, SETTINGS, launcher_of
from conftest import require

WATER = """
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
[ system ]
water
[ molecules ]
"""
BOX = ["-box", "3.72412", "1.86206", "1.86206"]  # two of the boxes of spc216
METHOD = """
integrator = md
nsteps = -1
dt = 0.002
nstcalcenergy = 50
nstenergy = 50
nstlog = 50
coulombtype = Reaction-Field
rcoulomb = 0.8
rvdw = 0.8
tcoupl = v-rescale
tc-grps = system
tau-t = 0.1
ref-t = 300
ld-seed = 1
gen-vel = yes
gen-seed = 1
"""
MDRUN = ["-quiet", "mdrun", "-reprod", "-ntomp", "1", "-deffnm", "state", "-s", "topol.tpr", "-c", "final.g96"]
STEPS_AFTER_RESTART = 2000
# The pattern, the options of mdrun, and the checkpoint that the restart script names.
WAYS = {
    # Each checkpoint keeps its name. Before MPI_Init the spare has none, so the script gets the name from cairn run.
    "a name for each step": (r"state_step(?<step>\d+)\.cpt$", ["-cpnum", "-cpt", "0.01"], "state_step${1#step.}.cpt"),
    # state_step1234.cpt is renamed to state.cpt; the one before is copied to state_prev.cpt, which stays in its place.
    "one name, by rename": (r"state\.cpt$", ["-cpt", "0.03"], "state.cpt"),
}


def make_system(folder: Path) -> None:
    (folder / "topol.top").write_text(WATER)
    (folder / "grompp.mdp").write_text(METHOD)
    for words in (["solvate", "-cs", "spc216", *BOX, "-o", "conf.gro", "-p", "topol.top"], ["grompp"]):
        subprocess.run([require("gmx"), "-quiet", *words], cwd=folder, check=True, capture_output=True)


def environment() -> Dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    return {**ours, **OPENMPI_SETTINGS, "SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": "4", "SCR_FLUSH": "1000"}


def run(folder: Path, command: List[str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(), text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def made_on(node: str, folder: Path) -> List[str]:
    """The names of the checkpoints that were made while rank 0 was on this node."""
    entries = map(json.loads, (folder / ".cairn" / "log.json").read_text().splitlines())
    return [entry["name"] for entry in entries if entry.get("event") == "CHECKPOINT_END" and entry["host"] == node]


def atoms(checkpoint: Path) -> List[str]:
    """Places and velocities."""
    dump = subprocess.run([require("gmx"), "-quiet", "dump", "-cp", checkpoint], check=True, text=True, capture_output=True)
    return re.findall(r"^ *[xv]\[.*$", dump.stdout, re.MULTILINE)


@pytest.mark.parametrize("way", WAYS)
def test_energies_and_atoms_are_equal_bit_for_bit_after_the_loss_of_the_node_that_writes(pytestconfig, tmp_path, way):
    pattern, options, named = WAYS[way]
    job, whole = tmp_path / "job", tmp_path / "whole"
    for folder in (job, whole):
        folder.mkdir()
        make_system(folder)
    cairn = str((Path(pytestconfig.getoption("--build")) / "src" / "tools" / "cairn").resolve())
    mpirun = [launcher_of("openmpi") or "", "-np", "4"]
    mdrun = [require("gmx_mpi"), *MDRUN, *options]
    wrapped = shlex.join([cairn, "wrap", "--checkpoint", pattern, "--", *mdrun])
    (job / "go_on").write_text(f"exec {wrapped} -nsteps {STEPS_AFTER_RESTART} -cpi {named}\n")
    # Without a checkpoint the second run would begin anew; 72 seconds end it then.
    log = run(job, [cairn, "run", "--nodes", "4", "--spares", "1", "--runs", "2", "--kill-node", "n0@checkpoint:2",
                    "--run-cmd", f"{wrapped} -maxh 0.02", "--restart-cmd", "sh go_on SCR_CKPT_NAME", *mpirun])
    restored = re.search(r"the program finds (step\.\d+) as its newest checkpoint", log)
    continued = re.search(r"continuing from step (\d+)", log)
    assert restored and continued and "rebuilt rank 0 (n0)" in log, log
    made = made_on("n0", job)
    assert len(made) >= 2 and restored[1] == made[-1], (made, log)
    if "(?<step>" in pattern:
        assert restored[1] == f"step.{continued[1]}"
    end = int(continued[1]) + STEPS_AFTER_RESTART
    run(whole, [*mpirun, *mdrun, "-nsteps", str(end)])
    for name in ("final.g96", "state.edr"):
        assert (job / name).read_bytes() == (whole / name).read_bytes(), name
    last = f"state_step{end}.cpt" if "-cpnum" in options else "state.cpt"
    assert atoms(job / last) and atoms(job / last) == atoms(whole / last)
