"""OpenFOAM: a directory for each process and time, the latest of which it looks for; old ones are purged.

Debian's OpenFOAM compresses no binary files. If both are set, it warns "Disabled binary format compression
(inefficient/ineffective)" and writes plain ones, so compressed files are tested in ascii.
"""

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
WAYS = {"binary": {"writeFormat": "binary", "writeCompression": "on"}, "compressed": {"writeFormat": "ascii", "writeCompression": "on", "writePrecision": "17"}}


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
    job.kill_when(job.ranks(per_node), command, "0.[0-2][4-9]/U*", **SETTINGS)
    assert not {"0.01", "0.02"} & times(job), "purged"
    outcome = job.run(job.lose("n1", per_node), command, **SETTINGS)
    restarted_from = float(outcome.restarted_from)
    assert 0.03 <= restarted_from < float(CONTROL["endTime"]), outcome.log
    assert {time for time in times(job) if float(time) > restarted_from} == {"0.29", "0.3"}, "purged"
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


def times(job) -> "set[str]":
    """The times of which any rank has files, in a cache or in the prefix directory."""
    paths = [*job.redirected(), *(str(path.relative_to(job.prefix)) for path in job.prefix.glob("processor*/*/*"))]
    return {name.split("/")[1] for name in paths} - {"constant"}


def content(path: Path) -> bytes:
    """Without the time in the header of a compressed file."""
    if path.suffix != ".gz":
        return path.read_bytes()
    return subprocess.run(["gzip", "-dc", str(path)], check=True, capture_output=True).stdout
