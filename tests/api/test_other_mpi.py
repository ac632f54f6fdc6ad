"""Programs whose launcher or whose libcairn is another MPI's: SCR_Init fails and names both, nothing crashes."""

import json
import subprocess
from itertools import permutations
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from cluster import LAUNCHERS, Cluster, launcher_of
from test_scr3_program import compiler

HERE = Path(__file__).resolve().parent
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
SIZES = {"openmpi": "OMPI_COMM_WORLD_SIZE", "mpich": "PMI_SIZE"}
NODES = ["n0", "n1", "n2"]
WRONG_STATE, BAD_SETTING, DISABLED = 1, 4, 15


def built(build: Path) -> List[str]:
    return [name for name in LAUNCHERS if name in NAMES and (build / "tests" / "api" / name / "api_program").exists()]


@pytest.fixture(params=list(permutations(NAMES)), ids=lambda pair: " and ".join(pair))
def pair(request: pytest.FixtureRequest, build: Path) -> Tuple[str, str]:
    if not set(request.param) <= set(built(build)):
        pytest.skip("needs both MPIs")
    return request.param


def compiled(build: Path, program_for: str, library_for: str, folder: Path) -> str:
    """The program, built for one MPI and linked with the libcairn for that or another one."""
    library = next((build / "lib" / library_for).glob("libcairn*.so"))
    program = folder / "program"
    subprocess.run([compiler("mpicc", program_for), str(HERE / "other_mpi.c"), f"-I{HERE.parents[1] / 'include'}",
                    str(library), f"-Wl,-rpath,{library.parent}", "-o", str(program)], check=True)
    return str(program)


def errors_in(log: str) -> List[str]:
    return [line for line in log.splitlines() if line.startswith("cairn: error: SCR_Init")]


def failed_inits(cluster: Cluster) -> List[str]:
    lines = (cluster.prefix / ".cairn" / "log.json").read_text().splitlines()
    return [json.loads(line)["note"] for line in lines if json.loads(line)["event"] == "INIT_FAIL"]


def test_a_launcher_of_another_mpi_makes_init_fail(pair: Tuple[str, str], build: Path, tmp_path: Path) -> None:
    launcher, other = pair
    program = compiled(build, other, other, tmp_path)
    with Cluster(launcher, "cairn-api") as cluster:
        code, output, log = cluster.run(NODES, [program], {"CAIRN_LOG_JSON": "1"})
        assert code == 0, log
        expected = f"1 ranks: {WRONG_STATE} {BAD_SETTING} {DISABLED} {DISABLED} {DISABLED}"
        assert output.splitlines() == [expected] * 3, log
        assert len(errors_in(log)) == 1, log
        for word in (*NAMES.values(), f"{SIZES[launcher]}=3"):
            assert word in errors_in(log)[0]
        assert len(failed_inits(cluster)) == 1
        assert not list((cluster.root / "nodes").rglob("dataset.*")), "nothing is written to a cache"


def runs_below_a_launcher(build: Path, folder: Path, pair: Tuple[str, str], words: List[str]) -> Tuple[str, str]:
    """Output and log of programs for the other MPI, which each rank of a launcher starts by these words."""
    launcher, other = pair
    program = compiled(build, other, other, folder)
    with Cluster(launcher, "cairn-api") as cluster:
        code, output, log = cluster.run(NODES[:2], [*words, program])
    assert code == 0, log
    return output, log


def test_a_program_that_a_rank_of_another_mpi_starts_has_its_checkpoints(
        pair: Tuple[str, str], build: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    source = tmp_path / "parent.c"
    source.write_text("""#include <mpi.h>
        #include <stdlib.h>
        int main(int argc, char** argv) {
          int rank, ended = 0;
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          if (rank == 0) ended = system(argv[1]);
          MPI_Finalize();
          return ended != 0;
        }""")
    subprocess.run([compiler("mpicc", pair[0]), str(source), "-o", str(parent)], check=True)
    output, log = runs_below_a_launcher(build, tmp_path, pair, [str(parent)])
    assert output == f"1 ranks: {WRONG_STATE} 0 0 0 0\n", log
    assert "warning: SCR_Init" in log and SIZES[pair[0]] in log


def test_a_script_between_the_launcher_and_the_program_changes_nothing(
        pair: Tuple[str, str], build: Path, tmp_path: Path) -> None:
    output, log = runs_below_a_launcher(build, tmp_path, pair, ["sh", "-c", '"$0"; exit $?'])
    assert output.splitlines() == [f"1 ranks: {WRONG_STATE} {BAD_SETTING} {DISABLED} {DISABLED} {DISABLED}"] * 2, log


def test_a_libcairn_for_another_mpi_makes_init_fail(pair: Tuple[str, str], build: Path, tmp_path: Path) -> None:
    mine, other = pair
    program = compiled(build, mine, other, tmp_path)
    with Cluster(mine, "cairn-api") as cluster:
        code, output, log = cluster.run(NODES, [program], {"CAIRN_LOG_JSON": "1"})
        assert code == 0, log
        expected = f"3 ranks: {BAD_SETTING} {BAD_SETTING} {DISABLED} {DISABLED} {DISABLED}"
        assert output.splitlines() == [expected] * 3, log
        assert len(errors_in(log)) == 1, log
        for word in (*NAMES.values(), f"cairn-{mine}"):
            assert word in errors_in(log)[0]
        assert len(failed_inits(cluster)) == 1


def alone(build: Path, folder: Path, flavour: str, settings: Dict[str, str], words: Tuple[str, ...] = ()) -> Tuple[str, str]:
    """Output and log of one process without a launcher."""
    program = compiled(build, flavour, flavour, folder)
    with Cluster(flavour, "cairn-api") as cluster:
        done = subprocess.run([*words, program], env=cluster.environment(settings), cwd=cluster.prefix, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("settings", [{}, {"own": "4"}, {"SLURM_STEP_NUM_TASKS": "4"}])
def test_a_rank_that_runs_alone_among_inherited_variables_has_its_checkpoints(
        settings: Dict[str, str], flavour: str, build: Path, tmp_path: Path) -> None:
    if flavour not in NAMES or launcher_of(flavour) is None:
        pytest.skip("only for the MPIs whose launchers are known")
    variables = {SIZES[flavour] if key == "own" else key: value for key, value in settings.items()}
    output, log = alone(build, tmp_path, flavour, variables)
    assert output == f"1 ranks: {WRONG_STATE} 0 0 0 0\n", log
    warnings = [line for line in log.splitlines() if "warning: SCR_Init" in line]
    assert len(warnings) == len(settings), log
    assert all(key in warnings[0] for key in variables), log


def test_a_task_of_srun_that_is_alone_makes_init_fail(flavour: str, build: Path, tmp_path: Path) -> None:
    if flavour not in NAMES:
        pytest.skip("only for the MPIs that are known")
    words = ("sh", "-c", 'SLURM_TASK_PID=$$ exec "$0"')
    output, log = alone(build, tmp_path, flavour, {"SLURM_STEP_NUM_TASKS": "4"}, words)
    assert f"1 ranks: {WRONG_STATE} {BAD_SETTING} {DISABLED}" in output, log
    assert len(errors_in(log)) == 1 and "--mpi" in errors_in(log)[0], log
