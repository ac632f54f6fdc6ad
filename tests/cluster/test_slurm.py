"""Jobs of `cairn run` under a real Slurm, in allocations of nodes that really die."""

import json
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from heat import Heat, Size, is_gone_on, recovery_text, steps_of
from nodes import Cluster
from slurm import BatchJob, Slurm

ENDLESS = 1000000
STEPS = Path(__file__).resolve().parent / "steps.py"
PACKAGE = Path(__file__).resolve().parents[2] / "python"
FIVE = ["--nodes=5", "--no-kill", "--time=5"]
# A run that fails of itself fails the test.
ONCE, TWICE = "cairn run srun --mpi=pmix -n4 -N4", "cairn run --runs 2 srun --mpi=pmix -n4 -N4"


@pytest.fixture(scope="session")
def started(cluster: Cluster) -> Iterator[Slurm]:
    with Slurm(cluster) as made:
        yield made


@pytest.fixture
def slurm(started: Slurm) -> Iterator[Slurm]:
    """With all its nodes, and no job."""
    yield started
    started.mend()


def submit(slurm: Slurm, heat: Heat, command: str, options: List[str], **settings: str) -> BatchJob:
    return BatchJob(slurm, heat.folder, options, command, heat.environment(**settings))


@pytest.mark.parametrize("printed", [True, False], ids=["slurm is printed", "nobody is printed"])
def test_a_node_dies_and_the_allocation_goes_on_with_the_spare(
        slurm: Slurm, folder: Path, build: Path, size: Size, reference: Path, report: List[str], printed: bool) -> None:
    heat = Heat(folder, build, size)
    job = submit(slurm, heat, f"scr_srun --mpi=pmix -n4 -N4 {' '.join(heat.program())}", FIVE,
                 SCR_RETRIES="1")
    heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
    dead_s = slurm.lose("node2", printed=printed)
    assert job.wait(60) == 0 and is_gone_on(heat, job.output()), job.said()
    assert " on 4 nodes: node0,node1,node4,node3" in job.printed() and "rebuilt rank" in job.printed(), job.said()
    assert printed or re.search(r"node2 is lost \(.*its host no longer answers", job.printed()), "by its silence alone"
    assert heat.is_same_result(reference), "bit for bit"
    report.append(recovery_text(f"srun, {'Slurm is printed' if printed else 'nobody is printed'}", dead_s, heat.runs()))


def test_a_node_dies_while_checkpoints_are_protected_behind_the_program(
        slurm: Slurm, folder: Path, build: Path, size: Size, reference: Path) -> None:
    """What was protected by then survives the node; what was only written may not."""
    heat = Heat(folder, build, size)
    job = submit(slurm, heat, f"{TWICE} {' '.join(heat.program())}", FIVE, CAIRN_PROTECT="behind")
    heat.until_halted("PROTECT_END", 2, job.failure, job.said)
    protected = max(int(one["name"][len("step."):]) for one in heat.log() if one.get("event") == "PROTECT_END")
    slurm.lose("node2")
    assert job.wait(60) == 0 and is_gone_on(heat, job.output()), job.said()
    assert steps_of("start", job.output())[1] >= protected, job.said()
    assert "rebuilt rank" in job.printed() and "CAIRN_PROTECT=behind has no effect" not in job.printed(), job.said()
    assert heat.is_same_result(reference), "bit for bit"


def test_two_nodes_die_at_once_and_the_prefix_directory_has_it_all(
        slurm: Slurm, folder: Path, build: Path, size: Size, reference: Path) -> None:
    """XOR holds one."""
    heat = Heat(folder, build, size)
    job = submit(slurm, heat, f"{TWICE} {' '.join(heat.program())}",
                 ["--nodes=6", "--no-kill", "--time=5"], SCR_FLUSH="2")
    heat.until_halted("CHECKPOINT_END", 3, job.failure, job.said)
    slurm.lose("node1", "node2")
    assert job.wait(90) == 0 and is_gone_on(heat, job.output()), job.said()
    assert heat.is_same_result(reference), "bit for bit"
    fetched = [int(one["name"][len("step."):]) for one in heat.log() if one.get("event") == "FETCH_SUCCESS"]
    assert fetched == steps_of("start", job.output())[1:] and fetched[0] % (2 * size.every) == 0, job.said()


@pytest.mark.parametrize("printed", [True, False], ids=["slurm is printed", "nobody is printed"])
def test_what_the_nodes_of_a_dead_job_hold_is_saved_for_the_next_allocation(
        slurm: Slurm, folder: Path, build: Path, size: Size, reference: Path, printed: bool) -> None:
    """There is no spare, and SCR_FLUSH is 0."""
    heat = Heat(folder, build, size)
    job = submit(slurm, heat, f"{TWICE} {' '.join(heat.program())}", ["--nodes=4", "--no-kill", "--time=5"])
    heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
    slurm.lose("node2", printed=printed)
    assert job.wait(90) == 4 and "too few nodes: 3" in job.printed(), job.said()
    saved = re.findall(r"scavenge +.*step\.(\d+) saved", job.printed())
    assert len(saved) == 1 and int(saved[0]) >= 2 * size.every, job.said()
    slurm.mend()
    job = submit(slurm, heat, f"{ONCE} {' '.join(heat.program())}", FIVE)  # it has another id: no cache is its own
    assert job.wait(90) == 0 and steps_of("start", job.output())[0] == int(saved[0]), job.said()
    assert heat.is_same_result(reference), "bit for bit"


HALTS = """
commits() {{ cat .cairn/log.json 2> /dev/null | grep -c CHECKPOINT_END; }}
for options in "" "-c 2" "-i" "-b $(date -d '+2 seconds' +%FT%T)" "-a $(date +%FT%T)"; do
  before=$(commits)
  {launch} {program} &
  while kill -0 $! && [ "$(commits)" -lt $((before + 2)) ]; do sleep 0.1; done
  scr_halt $options > /dev/null
  wait $!
  echo "halted by '${{options%%20*}}': $?"
  scr_halt --remove > /dev/null
done
"""


def test_a_job_is_halted_while_it_runs(slurm: Slurm, heat: Heat) -> None:
    """Each next one goes on from where the last one has stopped."""
    job = submit(slurm, heat, HALTS.format(launch=ONCE, program=" ".join(heat.program(ENDLESS))), FIVE)
    job.wait(90)
    lines = [line for line in job.output().splitlines() if line.startswith("halted by")]
    assert lines == [f"halted by '{options}': 3" for options in ("", "-c 2", "-i", "-b ", "-a ")], job.said()
    starts, ends = steps_of("start", job.output()), steps_of("end", job.output())
    assert len(starts) == len(ends) == 5 and starts == [0, *ends[:-1]], job.said()


@pytest.mark.parametrize("how, options, settings", [
    ("TIME_LIMIT", ["--time=2"], {"SCR_HALT_SECONDS": "110"}),
    ("SIGTERM", [], {}),
    ("SIGUSR1", [], {}),
    pytest.param("SIGUSR1", ["--time=2", "--signal=B:USR1@110"], {}, marks=pytest.mark.long),
    pytest.param("SIGTERM", ["--time=2", "--signal=B:TERM@110"], {
        "SCR_FLUSH_ASYNC": "1", "CAIRN_FLUSH_AT_END": "leave", "SCR_FLUSH_ASYNC_BW": "1000"}, marks=pytest.mark.long),
], ids=["halt seconds", "SIGTERM", "SIGUSR1", "sbatch --signal", "sbatch --signal, and a drain"])
def test_the_end_of_the_time_is_met_with_a_checkpoint(
        slurm: Slurm, heat: Heat, how: str, options: List[str], settings: Dict[str, str]) -> None:
    """The next allocation finds it, on whatever nodes."""
    program = " ".join(heat.program(ENDLESS))
    job = submit(slurm, heat, f"exec {ONCE} {program}", ["--nodes=4", "--no-kill", *options],
                 SCR_FLUSH="100000", **settings)
    if not options:
        heat.until_halted("CHECKPOINT_END", 2, job.failure, job.said)
        slurm.ask("scancel", "--batch", f"--signal={how}", job.id)
    assert job.wait(90) == 3, job.said()
    assert how in job.printed() and heat.count("FINALIZE") == 1, job.said()
    if "CAIRN_FLUSH_AT_END" in settings:
        assert "is now in the prefix directory: the nodes have finished its copy" in job.printed(), job.said()
    reached = steps_of("end", job.output())[0]
    job = submit(slurm, heat, f"{ONCE} {' '.join(heat.program(reached + 20))}", FIVE)
    assert job.wait(60) == 0, job.said()
    assert steps_of("start", job.output()) == [reached] and steps_of("end", job.output()) == [reached + 20], job.said()


def test_commands_run_on_nodes_as_steps(slurm: Slurm, heat: Heat) -> None:
    """Also beside a node that has died, of which Slurm knows nothing."""
    alive, dead = ["node0", "node1", "node2"], "node3"
    script = f"touch begun; until [ -e go ]; do sleep 0.1; done; {sys.executable} {STEPS} {PACKAGE} {' '.join(alive)}"
    job = submit(slurm, heat, f"{script} {dead}", ["--nodes=4", "--no-kill", "--time=5"])
    while not (heat.folder / "begun").exists():
        assert not job.failure()
    slurm.lose(dead, printed=False)
    (heat.folder / "go").touch()
    assert job.wait(60) == 0, job.said()
    printed = json.loads(job.output())
    assert {node: printed["said"][node] for node in alive} == {node: [3, f"I am {node}"] for node in alive}, printed
    assert {node: printed["each its own"][node] for node in alive} == {node: [0, node] for node in alive}, printed
    assert printed["said"][dead][0] > 0 and printed["each its own"][dead][0] > 0, printed
    assert printed["hung"]["node1"][0] == 124 and printed["hung_s"] < 10, "this node has answered at once"
    assert printed["ends"], printed


STOPS_ITS_LAUNCHER = """
if [ $SLURM_PROCID = 0 ]; then
  kill -STOP $(scontrol show step $SLURM_JOB_ID.$SLURM_STEP_ID | sed -n 's/.*SrunHost:Pid=node0://p') && touch {stopped}
fi
sleep 600; true
"""


def test_a_step_does_not_outlive_a_run_that_was_ended_by_force(slurm: Slurm, heat: Heat) -> None:
    """Its launcher hangs as well, and has to be killed."""
    (heat.folder / "hangs").write_text(STOPS_ITS_LAUNCHER.format(stopped=heat.folder / "stopped"))
    script = f"cairn run --hung-after 8 srun -n4 -N4 sh {heat.folder}/hangs; squeue -hs -j $SLURM_JOB_ID -o %j"
    job = submit(slurm, heat, script, ["--nodes=4", "--time=5"])
    assert job.wait(60) == 0 and "died: hung" in job.printed(), job.said()
    assert (heat.folder / "stopped").exists(), "the launcher hangs"
    assert job.output().split() == ["batch"] and "goes on" not in job.printed(), job.said()
