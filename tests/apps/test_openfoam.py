"""OpenFOAM: a directory for each process and time, the latest of which it looks for; old ones are purged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import require

CASE = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
PATTERN = r"processor\d+/(?<step>\d[\d.e-]*)/.+"
SETTINGS = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
CONTROL = {"startFrom": "latestTime", "deltaT": "0.001", "writeInterval": "10", "purgeWrite": "2", "endTime": "0.3"}
WAYS = {"binary": {"writeFormat": "binary"}, "compressed": {"writeFormat": "ascii", "writeCompression": "on", "writePrecision": "17"}}


def set_entry(path: Path, name: str, value: str) -> None:
    text, count = re.subn(rf"^{name}\s+\S+;", f"{name} {value};", path.read_text(), flags=re.MULTILINE)
    assert count == 1, (path, name)
    path.write_text(text)


def make_case(folder: Path, ranks: int, way: str) -> None:
    shutil.copytree(CASE, folder, dirs_exist_ok=True)
    for name, value in {**CONTROL, **WAYS[way]}.items():
        set_entry(folder / "system" / "controlDict", name, value)
    mesh = folder / "system" / "blockMeshDict"
    mesh.write_text(mesh.read_text().replace("(20 20 1)", "(64 64 1)"))
    (folder / "system" / "decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {ranks}; method simple; simpleCoeffs {{ n ({ranks // 2} 2 1); delta 0.001; }}\n")
    for program in ("blockMesh", "decomposePar"):
        subprocess.run([require(program)], cwd=folder, env={**os.environ, **SETTINGS}, check=True, capture_output=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("per_node", [1, 2])
def test_fields_are_equal_bit_for_bit_after_a_lost_node(job, tmp_path, way, per_node):
    solver = [require("icoFoam"), "-parallel"]
    make_case(job.prefix, 4 * per_node, way)
    shutil.copytree(job.prefix, tmp_path / "case")
    os.environ.update(SETTINGS)
    job.reference(tmp_path / "case", 4 * per_node, solver)
    command = job.wrapped(PATTERN, solver)
    # What it prints may arrive when it has ended.
    job.kill_when(job.ranks(per_node), command, None, "0.[0-9]*/U*", **SETTINGS)
    outcome = job.run(job.lose("n1", per_node), command, **SETTINGS)
    assert 0 < float(outcome.restarted_from) < float(CONTROL["endTime"]), outcome.log
    found = job.redirected()
    compared = 0
    for rank in range(4 * per_node):
        for path in (tmp_path / "case" / f"processor{rank}" / CONTROL["endTime"]).iterdir():
            if path.is_file():
                name = f"processor{rank}/{CONTROL['endTime']}/{path.name}"
                ours = found.get(name, job.prefix / name)
                assert content(ours) == content(path), name
                compared += 1
    assert compared == 4 * per_node * 3


def content(path: Path) -> bytes:
    """Without the time in the header of a compressed file."""
    if path.suffix != ".gz":
        return path.read_bytes()
    return subprocess.run(["gzip", "-dc", str(path)], check=True, capture_output=True).stdout
