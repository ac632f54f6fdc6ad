"""What is left on the nodes of a job that has died is scavenged, rebuilt and published by the commands,
as processes that may be killed at any moment; a new job then restarts from it with empty caches."""

import fcntl
import os
import random
from pathlib import Path
from typing import List

import pytest

from checkpointing import FULL, NEWEST, NODES, Job
from commands import Commands
from damage import flip_byte

FETCH = {"SCR_FETCH": "1"}
KILLS = 12
REPAIRED = 3  # of cairn verify --repair: it has found damage


@pytest.fixture
def commands(build: Path, job: Job) -> Commands:
    return Commands(build, job)


@pytest.mark.parametrize("scheme, lost", [("SINGLE", []), ("PARTNER", ["n3"]), ("XOR", ["n0"]),
                                          ("RS", ["n1", "n2"])])
def test_a_new_job_restarts_from_what_was_scavenged(job: Job, commands: Commands,
                                                    lost: List[str]) -> None:
    job.lose(*lost)
    left = [node for node in NODES if node not in lost]
    commands.scavenge(left)
    assert commands.outcomes()[str(NEWEST)] == "published"
    logged = commands.logged()
    assert [one["host"] for one in logged if "transfer" in one] == left
    [published] = [one for one in logged if one.get("dataset") == NEWEST and "event" in one]
    assert published["event"] == "PUBLISH_SUCCESS"
    assert ("rebuilt rank" in published.get("note", "")) == bool(lost), published
    job.lose(*NODES)
    assert job.launch(FULL, FETCH).restarted_from() == NEWEST


def test_what_cannot_be_rebuilt_is_reported_and_nothing_of_it_is_published(job: Job,
                                                                       commands: Commands) -> None:
    job.lose("n0", "n1")
    commands.scavenge(["n2", "n3"])
    printed = commands.run("n0", "rebuild", code=1)
    assert commands.logged()[-1]["event"] == "PUBLISH_FAIL"
    reasons = {each["number"]: each["reason"] for each in printed["datasets"]}  # type: ignore
    assert "rank 0 (written on n0)" in reasons[NEWEST], reasons
    assert not [path for path in job.cluster.prefix.rglob("*rank.*")
                if ".cairn" not in path.parts and path.is_file()]
    job.lose(*NODES)
    assert job.launch(FULL, FETCH).restarted_from() == -1


@pytest.mark.parametrize("kills_by", range(3))
def test_commands_that_are_killed_are_given_again(job: Job, commands: Commands, kills_by: int) -> None:
    chance = random.Random(kills_by)
    lost = chance.choice(NODES)
    job.lose(lost)
    left = [node for node in NODES if node != lost]
    # From before they have done anything to after their end.
    moments = [0.002] + [0.002 + 0.03 * chance.random() ** 2 for _ in range(KILLS)]
    kills = [commands.killed(chance.choice(left), after_s, "scavenge-node") for after_s in moments]
    commands.scavenge(left)
    # --force, as its predecessor is dead for certain: else it waits for a sign of life.
    kills += [commands.killed("n0", after_s, "rebuild", "--force") for after_s in moments]
    assert any(kills[:len(moments)]) and any(kills[len(moments):])
    commands.run("n0", "rebuild", "--force")
    job.lose(*NODES)
    assert job.launch(FULL, FETCH).restarted_from() == NEWEST
    left_over = [path for path in job.cluster.prefix.rglob(".cairn.*") if path.is_file()]
    assert not left_over


@pytest.mark.parametrize("kills_by", range(2))
@pytest.mark.parametrize("place", ["caches", "prefix"])
def test_a_repair_that_is_killed_is_given_again(job: Job, commands: Commands, place: str, kills_by: int) -> None:
    """Nothing that was good is harmed, and in the end all is as it was written."""
    chance = random.Random(kills_by)
    commands.scavenge(NODES)
    assert commands.outcomes()[str(NEWEST)] == "published"
    damaged = chance.choice(NODES)
    if place == "caches":
        files = [path for path in job.storage(damaged).glob("*/cairn.*/dataset.*/rank.*/**/*") if path.is_file()]
        words = ["verify", "--repair", "--cache", str(job.storage(damaged).parent)]
    else:
        files = [path for path in job.cluster.prefix.rglob("*") if path.is_file() and ".cairn" not in path.parts]
        words = ["verify", "--repair", "--force"]
    hit = [path for path in files if path.stat().st_size > 0 and (place == "caches" or chance.random() < 0.5)]
    assert hit
    for path in hit:
        flip_byte(path)
    before = {path: path.read_bytes() for path in files if path not in hit}
    moments = [0.002] + [0.002 + 0.05 * chance.random() ** 2 for _ in range(KILLS)]
    kills = [commands.killed("n0", after_s, *words) for after_s in moments]
    assert any(kills)
    commands.run("n0", *words, or_code=REPAIRED)  # unless a killed one has come to its end
    commands.run("n0", *[word for word in words if word != "--repair"])
    assert all(path.read_bytes() == content for path, content in before.items())
    assert not [path for path in job.cluster.prefix.rglob(".cairn.*") if path.is_file()]
    if place == "prefix":
        job.lose(*NODES)
    assert job.launch(FULL, FETCH).restarted_from() == NEWEST


def test_a_job_that_runs_is_left_alone(job: Job, commands: Commands) -> None:
    [cache] = job.storage("n1").glob("*/cairn.*")
    with open(cache / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        commands.run("n1", "scavenge-node", code=os.EX_TEMPFAIL)
    assert not (job.cluster.prefix / ".cairn" / "scavenged").exists()
