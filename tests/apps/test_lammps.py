"""LAMMPS: one restart file per process and a base file, and two files in turn."""

from __future__ import annotations

import re

import pytest
from conftest import require

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
WAYS = {
    # One file of each process, and one that rank 0 writes and all read.
    "of each process": ("restart 100 rest.*.%", "read_restart rest.*.%", r"rest\.(?<step>\d+)\.(\d+|base)$"),
    "in turn": ("restart 100 rest.a.% rest.b.%", "read_restart rest.{}.%", r"rest\.(?<step>[ab])\.(\d+|base)$"),
}


def thermo(output: str, from_step: int) -> "list[str]":
    """The lines of the table from a step on."""
    rows = [line.split() for line in output.splitlines() if re.match(r"\s*\d+(\s+-?[\d.]+){5}\s*$", line)]
    return [" ".join(row) for row in rows if int(row[0]) >= from_step]


def is_at(step: int):
    return lambda output: f"\n{step:8d} " in output


@pytest.mark.parametrize("way", WAYS)
def test_thermodynamics_are_the_same_after_a_lost_node(job, tmp_path, way):
    lmp = require("lmp")
    restart, read, pattern = WAYS[way]
    start = MELT + COMMON + restart + "\nrun 1500\n"
    (job.prefix / "in.start").write_text(start)
    command = job.wrapped(pattern, [lmp, "-in", "in.start", "-log", "none"])
    job.kill_when(job.ranks(2), command, is_at(750))
    where = job.lose("n1", 2)
    # Which of two files in turn is there the job's script tries, as without Cairn.
    text = read + "\n" + COMMON.replace(FORCES, "") + restart + "\nrun 1500 upto\n"
    outcome = None
    for newest in ("a", "b"):
        (job.prefix / "in.again").write_text(text.format(newest))
        command = job.wrapped(pattern, [lmp, "-in", "in.again", "-log", "none"])
        code, output, log = job.cluster.run(where, command, {}, timeout_s=300)
        if code == 0:
            outcome = output
            break
    assert outcome, (output, log)
    assert re.search(r"the program finds step\.\S+ as its newest", log), log
    from_step = int(thermo(outcome, 0)[0].split()[0])
    assert 500 <= from_step <= 900, from_step
    # An uninterrupted run that restarts at the same step.
    (tmp_path / "in.start").write_text(start.replace("run 1500", f"run {from_step}").replace(restart, "restart 100 whole.*.%"))
    job.reference(tmp_path, 8, [lmp, "-in", "in.start", "-log", "none"])
    (tmp_path / "in.again").write_text(text.replace(read, f"read_restart whole.{from_step}.%").replace(restart, ""))
    reference = job.reference(tmp_path, 8, [lmp, "-in", "in.again", "-log", "none"])
    assert thermo(outcome, from_step) == thermo(reference, from_step)
