"""The heat solver of the examples where its newest checkpoint cannot be begun with."""

from pathlib import Path

from checkpointing import SCHEMES, SETTINGS
from cluster import Cluster
from damage import flip_byte


def heat(cluster: Cluster, program: Path) -> str:
    """What it says of its start."""
    code, output, log = cluster.run(["n0", "n0"], [str(program), "--size", "1", "--every", "10", "--steps", "20"],
                                    {**SETTINGS, **SCHEMES["SINGLE"]})
    assert code == 0, output + log
    return next(line for line in output.splitlines() if line.startswith("heat start"))


def test_it_goes_on_from_the_next_older_one(build: Path, flavour: str) -> None:
    program = build / "examples" / flavour / "2_heat"
    with Cluster(flavour, "cairn-heat") as cluster:
        assert "step=0 restarted=0" in heat(cluster, program)
        [field] = cluster.storage("n0").glob("*/cairn.*/dataset.2.*/rank.1/files/heat/step.20/field.1")
        flip_byte(field)
        assert "step=10 restarted=1" in heat(cluster, program)
