"""A batch script as it was written for SCR in 2009 works as it stands; Slurm's commands are stand-ins."""

import subprocess
import time
from pathlib import Path
from typing import Dict

import pytest

from jobs import environment_of
from stand_ins import put_on_path

SCRIPT = """#!/bin/bash
export SCR_PREFIX={folder}
export SCR_FLUSH=20
export SCR_HALT_SECONDS=60
export SCR_RETRIES=3
scr_srun -n4 -N4 ./my_job
"""
# Dies twice: with node1, and by itself. Then it comes to its end.
MY_JOB = """#!/bin/sh
echo "$SCR_END_TIME $SCR_JOB_ID" >> printed
case $(wc -l < printed) in
1) echo node1 >> dead; exit 0;;
2) exit 5;;
esac
"""


@pytest.fixture
def slurm(cairn: Path, tmp_path: Path) -> Dict[str, str]:
    (tmp_path / "my_job").write_text(MY_JOB)
    (tmp_path / "my_job").chmod(0o755)
    return environment_of({"PATH": f"{cairn.parent}:{put_on_path(tmp_path)}", "SLURM_JOB_ID": "42",
                           "SLURM_JOB_NODELIST": "node[0-4]", "SCR_NODE_TESTS": "echo,dir_capacity"})


def test_it_works_as_it_stands(tmp_path: Path, slurm: Dict[str, str]) -> None:
    """The run on the node that dies returns 0, as srun does it."""
    done = subprocess.run(["bash", "-c", SCRIPT.format(folder=tmp_path)], cwd=tmp_path, env=slurm, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    printed = (tmp_path / "srun.printed").read_text().splitlines()
    assert ["--nodelist=node[0-3]" in line for line in printed] == [True, False, False]
    assert all("--nodelist=node[0,2-4]" in line for line in printed[1:]), "the spare, and not node1"
    ends = [line.split() for line in (tmp_path / "printed").read_text().splitlines()]
    assert len(ends) == 3 and {tuple(words[1:]) for words in ends} == {("42",)}
    assert abs(int(ends[0][0]) - time.time() - 3600) < 60, "no rank has to ask for the end of the time"
    assert "3, of which 2 died" in done.stderr and "0 spares left" in done.stderr


def test_no_run_is_started_in_the_last_seconds(tmp_path: Path, slurm: Dict[str, str]) -> None:
    script = SCRIPT.format(folder=tmp_path).replace("SCR_HALT_SECONDS=60", "SCR_HALT_SECONDS=3601")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=slurm, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3 and "TIME_LIMIT" in done.stderr, done.stderr
    assert not (tmp_path / "printed").exists()


def test_where_slurm_starts_no_steps_it_is_said_what_to_do(tmp_path: Path, slurm: Dict[str, str]) -> None:
    (tmp_path / "stand-ins" / "srun").write_text("#!/bin/sh\necho no steps here >&2; exit 1\n")
    done = subprocess.run(["bash", "-c", SCRIPT.format(folder=tmp_path)], cwd=tmp_path, env=slurm, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4 and "SCR_NODE_TESTS=none" in done.stderr and "no steps here" in done.stderr, done.stderr
    assert not (tmp_path / "printed").exists()
