"""The heat solver of the examples where a checkpoint that it is offered cannot be begun with."""

from pathlib import Path
from typing import Sequence, Tuple

from checkpointing import SCHEMES, SETTINGS
from cluster import Cluster
from damage import flip_byte

ELASTIC = {"CAIRN_ELASTIC": "1", "SCR_FETCH": "1"}  # what is offered is copied by SCR_Start_restart, every block checked


def heat(cluster: Cluster, program: Path, where: Sequence[str]) -> Tuple[int, str]:
    code, output, _ = cluster.run(where, [str(program), "--size", "1", "--every", "10", "--steps", "10"],
                                  {**SETTINGS, **SCHEMES["SINGLE"], **ELASTIC})
    return code, output


def test_it_does_not_start_from_zero(build: Path, flavour: str) -> None:
    program = build / "examples" / flavour / "2_heat"
    with Cluster(flavour, "cairn-heat") as cluster:
        code, output = heat(cluster, program, ["n0", "n0"])
        assert code == 0 and "heat start step=0" in output
        [field] = cluster.storage("n0").glob("*/cairn.*/dataset.1.*/rank.1/files/heat/*/field.1")
        flip_byte(field)
        code, output = heat(cluster, program, ["n0"])
        assert code != 0 and "heat start" not in output, output
