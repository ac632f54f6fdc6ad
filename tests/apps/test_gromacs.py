"""GROMACS under `cairn run`: rank 0 writes each checkpoint alone, and its node is lost."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import List

import pytest
from conftest import KeptJob, require

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


def dump(checkpoint: Path) -> str:
    return subprocess.run([require("gmx"), "-quiet", "dump", "-cp", checkpoint], check=True, text=True, capture_output=True).stdout


def atoms(checkpoint: Path) -> List[str]:
    """Places and velocities."""
    return re.findall(r"^ *[xv]\[.*$", dump(checkpoint), re.MULTILINE)


def step_of(checkpoint: Path) -> int:
    found = re.search(r"^step = (\d+)$", dump(checkpoint), re.MULTILINE)
    assert found, checkpoint
    return int(found[1])


@pytest.mark.parametrize("way", WAYS)
def test_energies_and_atoms_are_equal_bit_for_bit_after_the_loss_of_the_node_that_writes(pytestconfig, tmp_path, way):
    pattern, options, named = WAYS[way]
    job, whole = tmp_path / "job", tmp_path / "whole"
    for folder in (job, whole):
        folder.mkdir()
        make_system(folder)
    kept = KeptJob(Path(pytestconfig.getoption("--build")), job, 4)
    mdrun = [require("gmx_mpi"), *MDRUN, *options]
    wrapped = kept.wrapped(pattern, mdrun)
    # What is left in the plain place of the first run shows how old the checkpoint may be.
    (job / "go_on").write_text("test ! -e state_prev.cpt || cp state_prev.cpt seen.cpt\n"
                               f"exec {wrapped} -nsteps {STEPS_AFTER_RESTART} -cpi {named}\n")
    # Without a checkpoint the second run would begin anew; 72 seconds end it then.
    restart = kept.lose("n0", 2, f"{wrapped} -maxh 0.02", "sh go_on SCR_CKPT_NAME")
    found = re.search(r"continuing from step (\d+)", restart.log)
    assert found, restart.log
    continued = int(found[1])
    if "(?<step>" in pattern:
        assert restart.checkpoint == f"step.{continued}"
    else:
        assert continued >= step_of(job / "seen.cpt") > 0
    end = continued + STEPS_AFTER_RESTART
    kept.reference(whole, [*mdrun, "-nsteps", str(end)])
    for name in ("final.g96", "state.edr"):
        assert (job / name).read_bytes() == (whole / name).read_bytes(), name
    last = f"state_step{end}.cpt" if "-cpnum" in options else "state.cpt"
    assert atoms(job / last) and atoms(job / last) == atoms(whole / last)
