"""LAMMPS under `cairn run`: one restart file per process and a base file, and two files in turn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import KeptJob, require

MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
"""
FORCES = """
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
"""
COMMON = FORCES + """
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
"""
STEPS_AFTER_RESTART = 700
# The command that writes, the pattern, the file that the restart reads, and the steps from one number of a checkpoint to the next.
WAYS = {
    # One file of each process, and one that rank 0 writes and all read. LAMMPS looks for the newest.
    "of each process": ("restart 100 rest.*.%", r"rest\.(?<step>\d+)\.(\d+|base)$", "rest.*.%", 1),
    # Before MPI_Init the spare has none, so the script gets the number of the checkpoint from cairn run.
    "in turn": ("restart 100 rest.a.% rest.b.%", r"rest\.(?<step>[ab])\.(\d+|base)$", "rest.${newest}.%", 100),
}
GO_ON = """
case ${1#step.} in *[13579]) newest=a ;; *) newest=b ;; esac
exec """


def thermo(log: Path) -> "list[str]":
    """The lines of the table, each of which begins with its step."""
    rows = [line.split() for line in log.read_text().splitlines() if re.match(r"\s*\d+(\s+-?[\d.]+){5}\s*$", line)]
    return [" ".join(row) for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_thermodynamics_are_the_same_after_a_lost_node(pytestconfig, tmp_path, way):
    """Two ranks on each node; cairn run starts LAMMPS again with its script for a restart."""
    write, pattern, read, steps_apart = WAYS[way]
    lmp = [require("lmp"), "-log", "log.lammps", "-in"]
    job, whole = tmp_path / "job", tmp_path / "whole"
    for folder in (job, whole):
        folder.mkdir()
    again = f"{{}}\n{COMMON.replace(FORCES, '')}{write}\nrun {STEPS_AFTER_RESTART}\n"
    # The first run would take minutes.
    (job / "in.start").write_text(f"{MELT}{COMMON}{write}\nrun 30000\n")
    (job / "in.again").write_text(again.format(f"read_restart {read}"))
    kept = KeptJob(Path(pytestconfig.getoption("--build")), job, 8)
    (job / "go_on").write_text(GO_ON + kept.wrapped(pattern, [*lmp, "in.again", "-var", "newest"]) + " $newest\n")
    restart = kept.lose("n1", 5, kept.wrapped(pattern, [*lmp, "in.start"]), "sh go_on SCR_CKPT_NAME")
    ours = thermo(job / "log.lammps")
    from_step = int(restart.checkpoint[len("step."):]) * steps_apart
    assert ours and int(ours[0].split()[0]) == from_step >= 500, restart.log
    # A run without Cairn that writes at the same step and restarts there.
    (whole / "in.start").write_text(f"{MELT}{COMMON}restart 100 rest.*.%\nrun {from_step}\n")
    (whole / "in.again").write_text(again.format(f"read_restart rest.{from_step}.%"))
    for script in ("in.start", "in.again"):
        kept.reference(whole, [*lmp, script])
    theirs = thermo(whole / "log.lammps")
    assert len(ours) == STEPS_AFTER_RESTART // 50 + 1 and ours == theirs
