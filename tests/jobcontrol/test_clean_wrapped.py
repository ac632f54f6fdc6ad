"""cairn clean and the directories that wrapped programs and mounts leave in the caches."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from cairn.account import Account
from cairn.state_file import StateFile
from cairn.wrapping import cache_of
from test_status_doctor_clean import call, user  # noqa: F401: a fixture

OLD = 30.0  # hours


class Cache:
    """A cache of this node, and what dead programs have left in it."""

    def __init__(self, cairn: Path, root: Path, of_user: str) -> None:
        self.cairn, self.root, self.user = cairn, root, of_user
        self.prefix = root / "run"
        self.prefix.mkdir()

    def wrapped(self, *marks: str, hours_old: float = OLD) -> Path:
        """Of a program under `cairn wrap`."""
        return self._left(Path(cache_of(str(self.root), self.user, str(self.prefix))), marks, hours_old)

    def mounted(self, hours_old: float = OLD, waits: bool = False) -> Path:
        """Of a mount of crfs --scr."""
        return self._left(self.root / self.user / "cairn-mount.0123abcd", ["open_at_end/step.1"] if waits else [], hours_old)

    def _left(self, path: Path, marks: "Iterator[str] | List[str] | tuple[str, ...]", hours_old: float) -> Path:
        (path / "files" / "out").mkdir(parents=True)
        (path / "files" / "out" / "state.1").write_bytes(bytes(1000))
        for mark in ["lock", *marks]:
            (path / mark).parent.mkdir(exist_ok=True)
            (path / mark).touch()
        (path / "prefix").write_text(str(self.prefix))
        for one in [*path.rglob("*"), path]:
            os.utime(one, (time.time() - hours_old * 3600,) * 2)
        return path

    def clean(self, *words: object) -> str:
        code, output, printed = call(self.cairn, self.root, "clean", "--cache", self.root, *words)
        assert code == 0, output + printed
        return output


@pytest.fixture
def cache(cairn: Path, tmp_path: Path, user: str) -> Cache:  # noqa: F811
    return Cache(cairn, tmp_path, user)


def put_in_checkpoint(path: Path) -> None:
    """The file has a second name then."""
    (path.parent / "dataset").hardlink_to(path / "files/out/state.1")


def test_what_an_mpi_program_and_a_mount_have_left_is_removed_when_it_is_old(cache: Cache) -> None:
    young = cache.wrapped("job", hours_old=1)
    put_in_checkpoint(young)
    assert "in the last 24 h" in cache.clean("--remove") and young.exists()
    mounted = cache.mounted()
    for path in young.rglob("*"):
        os.utime(path, (0, 0))
    os.utime(young, (0, 0))
    listed = cache.clean()
    assert listed.count("would be removed") == 2 and young.exists() and mounted.exists(), listed
    cache.clean("--remove")
    assert not young.exists() and not mounted.exists()


def test_files_of_a_half_written_step_are_no_reason_to_keep_it(cache: Cache) -> None:
    """The program that could have decided about them has not come back."""
    path = cache.wrapped("job", "job.unfinished")
    cache.clean("--remove")
    assert not path.exists()


@pytest.mark.parametrize("how", [fcntl.LOCK_SH, fcntl.LOCK_EX], ids=["processes", "a mount"])
def test_it_is_kept_while_a_process_uses_it(cache: Cache, how: int) -> None:
    path = cache.wrapped("job") if how == fcntl.LOCK_SH else cache.mounted()
    put_in_checkpoint(path)
    with (path / "lock").open() as lock:
        fcntl.flock(lock, how)
        for words in ([], ["--of", cache.prefix], ["--older-than", "0"]):
            assert "alive" in cache.clean("--remove", *words) and path.exists()
    cache.clean("--remove")
    assert not path.exists()


def test_it_is_kept_between_two_launches_of_a_cairn_run(cache: Cache) -> None:
    path = cache.wrapped("job", "job.unfinished")
    with StateFile(str(cache.prefix)) as state:
        state.write(Account(job="any"))
        for words in ([], ["--of", cache.prefix]):
            output = cache.clean("--remove", *words)
            assert f"of the job of the cairn run that is active in {cache.prefix}" in output and path.exists(), output
    (cache.prefix / ".cairn" / "run.json").unlink()
    cache.clean("--remove")
    assert not path.exists()


@pytest.mark.parametrize("kind", ["wrapped", "mounted", "open at the end"])
def test_files_that_were_not_moved_to_their_places_are_kept_until_they_are_named(cache: Cache, kind: str) -> None:
    """They exist nowhere else."""
    path = cache.mounted(waits=True) if kind == "mounted" else cache.wrapped(*["job", "open_at_end/a"] if kind != "wrapped" else [])
    if kind == "open at the end":
        put_in_checkpoint(path)
    output = cache.clean("--remove")
    assert "1 file not moved" in output and str(cache.prefix) in output and path.exists(), output
    assert ("crfs --scr" if kind == "mounted" else "cairn wrap --settle") in output
    cache.clean("--remove", "--of", cache.prefix)
    assert not path.exists()


def test_it_is_of_its_prefix_directory_and_of_no_job(cache: Cache) -> None:
    paths = [cache.wrapped("job", "job.unfinished"), cache.mounted()]
    other = cache.root / "other"
    other.mkdir()
    assert cache.clean("--remove", "--of", other).count("for another prefix directory") == 2
    assert cache.clean("--remove", "--job", "7").count("of no job") == 2
    assert all(path.exists() for path in paths)
    link = cache.root / "link"
    link.symlink_to(cache.prefix)
    assert cache.clean("--remove", "--of", link).count("removed") == 2
    assert not any(path.exists() for path in paths)


def test_a_directory_without_a_note_is_known_by_its_name(cache: Cache) -> None:
    path = cache.wrapped("job", "job.unfinished")
    (path / "prefix").unlink()
    cache.clean("--remove", "--of", cache.prefix)
    assert not path.exists()


def test_the_prefix_directory_may_be_gone(cache: Cache) -> None:
    path = cache.mounted()
    cache.prefix.rmdir()
    cache.clean("--remove", "--of", cache.prefix)
    assert not path.exists()


def test_other_names_and_links_are_left_alone(cache: Cache) -> None:
    precious = cache.root / "precious"
    precious.mkdir()
    (precious / "data").touch()
    parent = cache.root / cache.user
    parent.mkdir()
    for name in ("cairn-wrap.backup", "cairn-wrapper", "cairn-mount.0123abcd.old", "cairnx"):
        (parent / name).mkdir()
    (parent / "cairn-mount.0123abcd").symlink_to(precious)
    os.utime(precious, (0, 0))
    cache.clean("--remove", "--older-than", "0")
    assert len(list(parent.iterdir())) == 5 and (precious / "data").exists()
