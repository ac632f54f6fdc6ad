"""A program and its launcher belong to one MPI: that is looked at before the launch, and in the log of the run."""

import subprocess
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from cairn.launchers.mpi import mpi_launcher
from cairn.program_mpi import MPICH, OPEN_MPI, cannot_start, libraries_of, linked_mpis, mismatch
from cairn.roles import Answer
from jobs import HEAT, Job, environment_of, launcher_of, shell_job

NAMES = {"openmpi": OPEN_MPI, "mpich": MPICH}
LDD = """\tlinux-vdso.so.1 (0x00007ffd)
\tlibcairn.so.0 => /opt/cairn/lib/libcairn.so.0 (0x00007f3a)
\tlibmpi.so.40 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f3a)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3a)
"""


@pytest.mark.parametrize("says, mpi", [
    ("mpirun (Open MPI) 4.1.4\n", OPEN_MPI), ("mpirun.openmpi (OpenRTE) 4.1.4\n", OPEN_MPI), ("prterun (PRRTE) 3.0\n", OPEN_MPI),
    ("HYDRA build details:\n    Version:  4.0.2\n", MPICH),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.8 Build 20221129\n", MPICH), ("", None), ("Flux 1.2\n", None)])
def test_a_launcher_shows_its_mpi(says: str, mpi: Optional[str]) -> None:
    assert mpi_launcher("mpirun", lambda _: Answer(0, says)).mpi == mpi


@pytest.mark.parametrize("libraries, mpis", [
    ("libmpi.so.40 libc.so.6 libopen-pal.so.40", [OPEN_MPI]), ("libmpich.so.12 libc.so.6", [MPICH]),
    ("libmpifort.so.12 libmpi.so.12 libc.so.6", [MPICH]), ("libmpi_cray.so.12", [MPICH]), ("libmpi_gnu_91.so.12", [MPICH]),
    ("libmpi_ibm.so.3", [OPEN_MPI]), ("libmpi.so.12 libopen-rte.so.12 libopen-pal.so.13", [OPEN_MPI]),
    ("libcairn_mpich.so.0 libmpi.so.40 libmpich.so.12", [OPEN_MPI, MPICH]), ("libc.so.6 libmpi_abi.so.0", [])])
def test_libraries_show_the_mpi_of_a_program(libraries: str, mpis: List[str]) -> None:
    assert [one.mpi for one in linked_mpis(libraries.split())] == mpis


def test_libraries_are_those_that_the_loader_names(tmp_path: Path) -> None:
    program = tmp_path / "program"
    assert not libraries_of(str(program), lambda _: Answer(0, LDD)), "there is no such file"
    program.touch()
    assert libraries_of(str(program), lambda _: Answer(0, LDD)) == ["libcairn.so.0", "libmpi.so.40", "libc.so.6"]
    assert not libraries_of(str(program), lambda _: Answer(1, LDD))
    assert not libraries_of(str(program), lambda _: Answer(127, "there is no command ldd"))


@pytest.mark.parametrize("launcher_mpi, libraries, words", [
    (OPEN_MPI, "libmpich.so.12", [OPEN_MPI, MPICH, "mpiexec"]), (MPICH, "libmpi.so.40", [OPEN_MPI, MPICH, "mpirun"]),
    (OPEN_MPI, "libcairn_mpich.so.0 libmpi.so.40 libmpich.so.12", ["cairn-openmpi"]),
    (OPEN_MPI, "libmpi.so.40", None), (None, "libmpi.so.40", None), (OPEN_MPI, "libc.so.6", None), (OPEN_MPI, "", None),
    (OPEN_MPI, "libmpich.so.12 libpmix.so.2", None), (OPEN_MPI, "libmpi.so.40 libmpich.so.12", None)])
def test_a_mismatch_is_named_where_it_is_certain(launcher_mpi: Optional[str], libraries: str,
                                                 words: Optional[List[str]]) -> None:
    found = mismatch("./prog", "mpirun", launcher_mpi, libraries.split())
    assert (found is None) == (words is None), found
    for word in words or []:
        assert found and word in f"{found.what}; {found.remedy}"


@pytest.fixture(params=["openmpi", "mpich"])
def other_program(request: pytest.FixtureRequest, program_of: Dict[str, str]) -> List[str]:
    """A launcher of one MPI, and a program for another."""
    if not set(NAMES) <= set(program_of):
        pytest.skip("needs both MPIs")
    other = next(name for name in NAMES if name != request.param)
    return [launcher_of(request.param), "-n", "2", program_of[other]]


def test_run_refuses_a_program_for_another_mpi(cairn: Path, tmp_path: Path, other_program: List[str]) -> None:
    outcome = Job(cairn, tmp_path, ["--nodes", "2"], [*other_program, *HEAT, "--steps", "4"]).wait()
    assert outcome.code == 2 and outcome.output == "", outcome
    assert all(name in outcome.printed for name in NAMES.values()), outcome.printed


def test_run_refuses_a_restart_command_for_another_mpi(cairn: Path, tmp_path: Path, other_program: List[str]) -> None:
    *launch, program = other_program
    outcome = Job(cairn, tmp_path, ["--nodes", "2", "--run-cmd", "true", "--restart-cmd", f"{program} -x"], launch).wait()
    assert outcome.code == 2 and all(name in outcome.printed for name in NAMES.values()), outcome


def test_run_gives_up_where_only_the_program_finds_out(cairn: Path, tmp_path: Path, other_program: List[str]) -> None:
    *launch, program = other_program
    script = " ".join(["exec", program, *HEAT, "--steps", "4"])
    outcome = Job(cairn, tmp_path, ["--nodes", "2", "--runs", "3"], [*launch, "sh", "-c", script]).wait()
    assert outcome.code == 4, outcome
    assert all(name in outcome.printed for name in NAMES.values()), outcome.printed
    assert "run 2" not in outcome.printed, "another run would find the same"


@pytest.mark.parametrize("ranks, code", [(1, 4), (2, 0)])
def test_run_gives_up_where_the_log_shows_one_rank_of_several(cairn: Path, tmp_path: Path, mpirun: str, ranks: int,
                                                              code: int) -> None:
    line = f'{{"event":"START","time_us":1,"job":"\'$SCR_JOB_ID\'","ranks":{ranks}}}'
    script = f"echo '{line}' >> .cairn/log.json; echo '{line}' | sed 's/START/FINALIZE/' >> .cairn/log.json"
    outcome = shell_job(cairn, tmp_path, mpirun, script)
    assert outcome.code == code, outcome
    assert ("2 ranks" in outcome.printed) == (code == 4), outcome.printed


def test_doctor_checks_the_program_that_it_is_given(cairn: Path, tmp_path: Path, other_program: List[str],
                                                    program_of: Dict[str, str]) -> None:
    def doctor(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([cairn, "doctor", "--prefix", tmp_path, *words], env=environment_of(), text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    *launch, other = other_program
    wrong = doctor(*launch, other)
    assert wrong.returncode == 1 and wrong.stdout.startswith("bad") and all(name in wrong.stdout for name in NAMES.values())
    own = next(program for program in program_of.values() if program != other)
    assert doctor(*launch, own).stdout.startswith("good")
    assert doctor(*launch, "sh", "-c", own).stdout.startswith("note")
    assert doctor("no_such_launcher", own).returncode == 2
    absent = doctor(*launch, tmp_path / "nosuch")
    assert absent.returncode == 1 and f"bad   the program {tmp_path}/nosuch does not exist" in absent.stdout


def test_a_program_that_cannot_start_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program"
    assert cannot_start(str(program), lambda _: Answer(0, LDD)).what.endswith("does not exist")
    program.touch()
    assert "libmpi.so.40" in cannot_start(str(program), lambda _: Answer(0, LDD)).what
    assert cannot_start(str(program), lambda _: Answer(0, LDD.replace("not found", "/lib/libmpi.so.40"))) is None
    assert cannot_start(str(program), lambda _: Answer(1, LDD)) is None, "a script"
