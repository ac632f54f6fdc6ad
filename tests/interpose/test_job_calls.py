"""What the job of an MPI program hears of the program's calls, and when: what it does not hear of would be in a checkpoint, or be missed."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Set

import pytest

from conftest import Place

BEGIN = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
assert libc.MPI_Init(None, None) == 0
"""
OPEN = "os.close(os.open({!r}, {}))\n"

# ckpt.1 is in the cache and holds "old", plain.1 and ckpt.9 are in their plain places, d/ckpt.3 is in the cache.
CALLS: Dict[str, "tuple[str, List[str]]"] = {
    "only read": ("open('ckpt.1').read(); open('ckpt.9').read(); os.stat('ckpt.1'); os.listdir('.')", []),
    "created": ("open('ckpt.2', 'w')", ["opened ckpt.2 step 2 anew: "]),
    "created exclusively": (OPEN.format("ckpt.2", "os.O_WRONLY | os.O_CREAT | os.O_EXCL"), ["opened ckpt.2 step 2 anew: "]),
    "created for appending": ("open('ckpt.2', 'a')", ["opened ckpt.2 step 2 anew: "]),
    "deleted and created": ("os.remove('ckpt.1')\n" + OPEN.format("ckpt.1", "os.O_RDWR | os.O_CREAT | os.O_EXCL"),
                            ["removed ckpt.1: -", "opened ckpt.1 step 1 anew: "]),
    "emptied": ("open('ckpt.1', 'w')", ["changes ckpt.1 step 1 anew: old", "changed ckpt.1: "]),
    "emptied without writing": (OPEN.format("ckpt.1", "os.O_RDONLY | os.O_TRUNC"), ["changes ckpt.1 step 1 anew: old", "changed ckpt.1: "]),
    "appended to": ("open('ckpt.1', 'a')", ["changes ckpt.1 step 1: old", "changed ckpt.1: old"]),
    "updated": (OPEN.format("ckpt.1", "os.O_RDWR"), ["changes ckpt.1 step 1: old", "changed ckpt.1: old"]),
    "reopened": ("libc.freopen(b'ckpt.1', b'a', libc.fopen(b'/dev/null', b'r'))", ["changes ckpt.1 step 1: old", "changed ckpt.1: old"]),
    "reopened anew": ("libc.freopen(b'ckpt.2', b'a', libc.fopen(b'/dev/null', b'r'))", ["opened ckpt.2 step 2 anew: "]),
    "truncated": ("os.truncate('ckpt.1', 2)", ["changes ckpt.1 step 1: old", "changed ckpt.1: ol"]),
    "truncated to nothing": ("os.truncate('ckpt.1', 0)", ["changes ckpt.1 step 1 anew: old", "changed ckpt.1: "]),
    "deleted": ("os.remove('ckpt.1')", ["removed ckpt.1: -"]),
    "renamed": ("os.rename('ckpt.1', 'ckpt.2')", ["changes ckpt.2 step 2 anew: -", "removed ckpt.1: -", "changed ckpt.2: old"]),
    "replaced by a file of the cache": ("os.rename('d/ckpt.3', 'ckpt.1')",
                                        ["changes ckpt.1 step 1 anew: old", "removed d/ckpt.3: -", "changed ckpt.1: below"]),
    "replaced by a plain file": ("os.rename('plain.1', 'ckpt.1')", ["changes ckpt.1 step 1 anew: old", "changed ckpt.1: plain"]),
    "renamed to a plain name": ("os.rename('ckpt.1', 'kept')", ["moved out ckpt.1: -"]),
    "exchanged": ("assert libc.renameat2(-100, b'ckpt.1', -100, b'plain.1', 2) == 0", ["moved out ckpt.1: -"]),
    "exchanged with the later name": ("assert libc.renameat2(-100, b'plain.1', -100, b'ckpt.1', 2) == 0", ["moved out ckpt.1: -"]),
    "linked": ("os.link('ckpt.1', 'kept')", ["moved out ckpt.1: -"]),
    "linked to another checkpoint file": ("os.link('ckpt.1', 'ckpt.2')", ["moved out ckpt.1: -", "not redirected ckpt.2 step 2 anew: -"]),
    "target of a symbolic link": ("os.symlink('ckpt.1', 'latest')", ["moved out ckpt.1: -"]),
    "a symbolic link": ("os.symlink('plain.1', 'ckpt.2')", ["not redirected ckpt.2 step 2 anew: -"]),
    "a symbolic link to a checkpoint file": ("os.symlink('ckpt.1', 'ckpt.2')", ["moved out ckpt.1: -", "not redirected ckpt.2 step 2 anew: -"]),
    "a symbolic link that is renamed": ("os.symlink('plain.1', 'other'); os.rename('other', 'ckpt.2')", ["not redirected ckpt.2 step 2 anew: -"]),
    "through a symbolic link": ("os.symlink('plain.1', 'ckpt.2'); open('ckpt.2', 'a')",
                                ["not redirected ckpt.2 step 2 anew: -", "not redirected ckpt.2 step 2: -"]),
    "pipes and nodes": ("f = os.open('.', os.O_RDONLY); os.mkfifo('ckpt.2'); os.mkfifo('ckpt.3', dir_fd=f); os.mknod('ckpt.4'); "
                        "os.mknod('ckpt.5', dir_fd=f)", [f"not redirected ckpt.{n} step {n} anew: -" for n in range(2, 6)]),
    "links and directories of other names": ("os.mkdir('ckpt.2'); os.symlink('plain.1', 'kept'); os.mkfifo('pipe')", []),
    "in a renamed directory": ("os.rename('d', 'e')", ["moved out d/ckpt.3: below"]),
    "a plain file opened for writing": ("open('ckpt.9', 'a')", ["not redirected ckpt.9 step 9: -"]),
    "a plain file truncated": ("os.truncate('ckpt.9', 2)", ["not redirected ckpt.9 step 9: -"]),
    "a plain file linked": ("os.link('plain.1', 'ckpt.2')", ["not redirected ckpt.2 step 2 anew: -"]),
    "an anonymous file linked": ("f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600); "
                                 "os.link(f'/proc/self/fd/{f}', 'ckpt.2', src_dir_fd=0, follow_symlinks=True)",
                                 ["not redirected ckpt.2 step 2 anew: -"]),
    "a failing call": ("for call in (lambda: os.rename('ckpt.1', 'nowhere/ckpt.2'), lambda: os.rename('ckpt.1', 'd'), lambda: os.open('ckpt.1', 193)):\n"
                       "    try: call()\n    except OSError: pass\n    else: os._exit(1)", []),
    "by a child": ("if os.fork() == 0: open('ckpt.1', 'a'); open('ckpt.2', 'w'); os._exit(0)\nos.wait()", []),
    "the end": ("libc.MPI_Finalize(); open('ckpt.2', 'w')", ["finish"]),
    "an abort": ("libc.MPI_Abort(None, 1); open('ckpt.2', 'w')", ["aborts"]),
}
FULL: Dict[str, "tuple[str, List[str]]"] = {
    "created": ("open('ckpt.2', 'w')", ["not redirected ckpt.2 step 2 anew: -"]),
    "reopened anew": ("libc.freopen(b'ckpt.2', b'w', libc.fopen(b'/dev/null', b'r'))", ["not redirected ckpt.2 step 2 anew: -"]),
    "renamed": ("os.rename('plain.1', 'ckpt.2')", ["not redirected ckpt.2 step 2 anew: -"]),
    "replaced": ("os.rename('plain.1', 'ckpt.1')", ["not redirected ckpt.1 step 1 anew: -"]),
}


LONG = "a-directory-with-a-long-name/ckpt"  # libstdc++ needs no memory for short names
LACKING: Dict[str, "tuple[str, List[str]]"] = {
    "a symbolic link": (f"assert libc.symlink_without_memory(b'plain.1', b'{LONG}.2') == 0", [f"not redirected {LONG}.2 step 2 anew: -"]),
    "a file opened again": (f"open('{LONG}.2', 'w').write('old'); assert os.write(libc.open_without_memory(b'{LONG}.2', os.O_RDWR), b'new') == 3",
                            [f"opened {LONG}.2 step 2 anew: ", f"changes {LONG}.2 step 2: old", f"changed {LONG}.2: old"]),
    "a plain file": (f"assert os.write(libc.open_without_memory(b'{LONG}.2', os.O_WRONLY | os.O_CREAT | os.O_EXCL), b'new') == 3",
                     [f"not redirected {LONG}.2 step 2: -"]),
}


class Recorded:
    """A program with MPI whose job records what it hears."""

    def __init__(self, place: Place, build: Path) -> None:
        self.place, self.record = place, place.prefix.parent / "record"
        libraries = place.prefix.parent / "lib"
        libraries.mkdir()
        job = (build / "tests/interpose/recording_job.so").resolve()
        (libraries / place.library.name).symlink_to(place.library.resolve())
        flavours = [path.name for path in (build / "lib").glob("libcairn-wrapped-*.so")]
        if not flavours:
            pytest.skip("NOT TESTED: Cairn is built for no MPI")
        mpi = "libmpi-by-another-file-name.so"  # the program's MPI is known by its soname
        for name in (mpi, *flavours):
            (libraries / name).symlink_to(job)
        self.errors = ""
        self.preload = f"{libraries / place.library.name}:{libraries / mpi}"
        (place.prefix / "ckpt.9").write_text("plain")
        (place.prefix / "plain.1").write_text("plain")
        place.shell("printf old >ckpt.1; mkdir d; printf below >d/ckpt.3")

    def run(self, program: str, **more: str) -> List[str]:
        self.place.more = {"LD_PRELOAD": self.preload, "RECORD": str(self.record), **more}
        done = self.place.run("/usr/bin/python3", "-B", "-c", f"{BEGIN}{program}\nos._exit(0)")
        assert (done.returncode, done.stdout) == (0, ""), done
        self.errors = done.stderr
        return self.record.read_text().splitlines() if self.record.exists() else []


@pytest.mark.parametrize("call", CALLS)
def test_the_job_hears_of_each_change_before_it_can_be_seen(place: Place, build: Path, call: str) -> None:
    program, expected = CALLS[call]
    with place.hold():
        assert Recorded(place, build).run(program) == expected


@pytest.mark.parametrize("call", FULL)
def test_the_job_hears_of_each_file_that_a_full_cache_does_not_take(place: Place, build: Path, call: str) -> None:
    program, expected = FULL[call]
    with place.hold():
        assert Recorded(place, build).run(program, CAIRN_WRAP_FREE_PERCENT="101") == expected
        assert "ckpt.2" not in place.cached()


@pytest.mark.parametrize("call", LACKING)
def test_the_job_hears_of_a_call_for_which_there_is_no_memory(place: Place, build: Path, call: str) -> None:
    program, expected = LACKING[call]
    with place.hold():
        recorded = Recorded(place, build)
        (place.prefix / LONG).parent.mkdir()
        recorded.preload += f":{(build / 'tests/interpose/failing_memory.so').resolve()}"
        assert recorded.run(program) == expected


def test_a_file_that_the_job_moves_while_it_is_renamed_is_renamed_in_its_plain_place(place: Place, build: Path) -> None:
    with place.hold():
        Recorded(place, build).run("os.rename('ckpt.1', 'ckpt.2'); assert open('ckpt.2').read() == 'old'; "
                                   "assert not os.path.exists('ckpt.1')", MOVES="ckpt.1")


def test_a_file_that_the_job_moves_while_its_directory_is_renamed_is_in_that_directory(place: Place, build: Path) -> None:
    with place.hold():
        Recorded(place, build).run("os.rename('d', 'e'); assert open('e/ckpt.3').read() == 'below'; assert not os.path.exists('d')",
                                   MOVES="d/ckpt.3")


@pytest.mark.parametrize("lost, taken", [("ckpt.2", {"ckpt.2", "d/ckpt.2"}), ("ckpt.b", {"d/ckpt.2", "ckpt.3", "ckpt.a", "ckpt.b"})])
def test_after_the_job_is_lost_the_cache_takes_only_files_of_the_step_that_is_being_written(
        place: Place, build: Path, lost: str, taken: Set[str]) -> None:
    """Where that has a number."""
    program = ("def write(name): open(name, 'w').write('new')\n"
               "for name in ('ckpt.2', 'd/ckpt.2', 'ckpt.3', 'ckpt.a', 'ckpt.b', 'd/ckpt.b'): write(name)\n"
               "os.rename('plain.1', 'ckpt.2'); write('plain.1'); os.rename('plain.1', 'ckpt.4')")
    with place.hold():
        recorded = Recorded(place, build)
        place.patterns = [r"ckpt\.(?<step>\w+)$"]
        recorded.run(program, LOST=lost)
        assert recorded.errors == "", "the job has said why"
        assert set(place.cached()) == taken | {"ckpt.1", "d/ckpt.3"}


@pytest.mark.parametrize("lost", ["ckpt.2", ""])
def test_files_stay_in_the_cache_after_mpi_finalize_if_a_rank_is_lost(place: Place, build: Path, lost: str) -> None:
    """As after a kill. Otherwise the end of the last process moves them."""
    recorded = Recorded(place, build)
    mark = place.cache / "job.unfinished"
    program = "open('ckpt.2', 'w').write('new'); {}libc.MPI_Finalize(); libc.exit(0)"
    recorded.run(program.format("os.remove(f'{os.environ[\"CAIRN_WRAP_CACHE\"]}/job.unfinished'); "), **({"LOST": lost} if lost else {}))
    assert mark.exists() == bool(lost)
    assert ("ckpt.2" in place.cached(), "ckpt.2" in place.plain()) == (bool(lost), not lost)


@pytest.mark.parametrize("path, record", [
    ("step.1/part.1", "opened step.1/part.1 step 1 at 5 anew: "),
    ("linked/../step.1/part.1", "opened step.1/part.1 step 1 at 5 anew: "),
    ("link/step.7/part.3", "opened far/away/step.7/part.3 step 7 at 14 anew: "),
    ("rank.3/part.3", "opened rank.3/part.3 step 3 at 12 anew: ")])
def test_the_job_hears_which_part_of_a_name_is_its_step(place: Place, build: Path, path: str, record: str) -> None:
    """Also if other parts of the name read the same, or directories of the path are symbolic links."""
    for directory in ("step.1", "far/away/step.7", "rank.3"):
        (place.prefix / directory).mkdir(parents=True)
    (place.prefix / "link").symlink_to("far/away")
    (place.prefix / "linked").symlink_to("step.1")
    with place.hold():
        recorded = Recorded(place, build)
        place.patterns = [r"step\.(?<step>\d+)/part\.\d+$", r"rank\.\d+/part\.(?<step>\d+)$"]
        assert recorded.run(f"open({path!r}, 'w')", PLACES="1") == [record]


@pytest.mark.parametrize("call, then", [
    ("os.open('ckpt.1', os.O_WRONLY | os.O_TRUNC)", ["removed ckpt.1: -", "changed ckpt.1: -", "opened ckpt.1 step 1: "]),
    ("os.open('ckpt.1', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)", ["changed ckpt.1: "]),
    ("open('ckpt.1', 'w')", ["changed ckpt.1: "]),
    ("os.truncate('ckpt.1', 0)", ["removed ckpt.1: -", "changed ckpt.1: -", "not redirected ckpt.1 step 1: -"])])
def test_a_file_that_the_job_moves_while_it_is_emptied_begins_anew_once(place: Place, build: Path, call: str, then: List[str]) -> None:
    """Where names carry no step, each time counts as another step, and this rank would be ahead of the others for ever."""
    with place.hold():
        assert Recorded(place, build).run(call, MOVES="ckpt.1") == ["changes ckpt.1 step 1 anew: old", *then]


def test_files_of_a_job_that_has_not_finished_wait_for_its_next_run(place: Place, build: Path) -> None:
    """Its ranks then find out which steps are whole. Other programs of the node leave the files where they are."""
    with place.hold():
        recorded = Recorded(place, build)
        recorded.run("open('ckpt.2', 'w')")
    place.shell("true")
    assert {"ckpt.1", "ckpt.2"} <= set(place.cached())
    recorded.run("libc.MPI_Finalize()")
    place.shell("true")
    assert place.cached() == [] and {"ckpt.1", "ckpt.2"} <= set(place.plain())


def test_a_file_that_the_program_has_open_at_its_end_is_not_taken_for_one_of_half_a_step(place: Place, build: Path) -> None:
    """The job of the next run removes files of steps that were not finished."""
    recorded = Recorded(place, build)
    recorded.run("os.write(os.open('ckpt.2', os.O_WRONLY | os.O_CREAT), b'whole'); libc.MPI_Finalize(); libc.exit(0)")
    assert "ckpt.2" not in place.cached() + place.plain()
    with place.hold():
        recorded.run("assert open('ckpt.2').read() == 'whole'")
        assert "ckpt.2" in place.plain()
