"""Jobs on hosts that are listed, and reached by ssh; ssh is a stand-in that starts everything here."""

import shutil
from pathlib import Path

import pytest

from jobs import LAUNCHERS, Job
from stand_ins import put_on_path


@pytest.mark.parametrize("launcher", [LAUNCHERS["openmpi"][0], LAUNCHERS["mpich"][0]])
def test_settings_reach_the_program_on_other_hosts(cairn: Path, tmp_path: Path, launcher: str) -> None:
    """sshd gives a session nothing of the environment. The library takes its settings from rank 0's."""
    if shutil.which(launcher) is None:
        pytest.skip(f"there is no {launcher}")
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    job = Job(cairn, prefix, ["--prefix", str(prefix), "--nodes", "2", "--no-scavenge"],
              [launcher, "-n", "2", "sh", "-c", "env | grep -E '^(SCR|CAIRN)_'"],
              {"SCR_NODELIST": "node[0-1]", "SCR_NODE_TESTS": "echo", "SCR_JOB_ID": "my job", "SCR_END_TIME": "99999999999",
               "SCR_NODE_NAME": "login", "PATH": put_on_path(tmp_path), "SCR_COPY_TYPE": "XOR"})
    outcome = job.wait()
    assert outcome.code == 0, outcome.printed
    for setting in (f"SCR_PREFIX={prefix}", "SCR_JOB_ID=my job", "SCR_END_TIME=99999999999", "SCR_COPY_TYPE=XOR",
                    "CAIRN_LOG_JSON=1"):
        assert outcome.output.splitlines().count(setting) == 2, outcome
