"""A reader does what docs/tutorial.md and README.md say, in each language and with each MPI."""

import difflib
import re
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import pytest

from page import Block, Step, blocks_of, names_of_mpi
from reader import Reader

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "jobcontrol"))
from stand_ins import put_on_path  # noqa: E402
TUTORIAL, README = ROOT / "docs" / "tutorial.md", ROOT / "README.md"
EXAMPLES = ROOT / "examples"
LABELS = {"openmpi": "Open MPI", "mpich": "MPICH"}
LANGUAGES = ("C", "C++", "Fortran")
SETUP, SLURM = "2. Set up the shell", "8. On a cluster, under Slurm"
PROGRAM = ("3. A program without checkpoints", "4. Add the calls")
KILL_AND_LOSE = ("5. Kill the program, start it again", "6. Lose a node")
READERS_AT_ONCE = 6  # their programs are mostly asleep


@pytest.fixture(scope="session")
def installed(pytestconfig, tmp_path_factory) -> Path:
    """A home directory in which the reader has installed Cairn as the page says."""
    home = tmp_path_factory.mktemp("home")
    prefix = re.search(r"PREFIX=\$HOME/(\S+)", blocks_marked("title", "install")[0].text)[1]
    done = subprocess.run(["cmake", "--install", pytestconfig.getoption("--build"), "--prefix", home / prefix],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return home / prefix


@pytest.fixture(scope="session")
def new_reader(installed, tmp_path_factory) -> Callable[[str], Reader]:
    """A reader with an MPI; what the library keeps on nodes is kept in the reader's home as well."""
    def make(flavour: str) -> Reader:
        home = tmp_path_factory.mktemp("reader")
        (home / "opt").symlink_to(installed.parent)
        stores = {"SCR_CACHE_BASE": str(home / "cache"), "SCR_CNTL_BASE": str(home / "control")}
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        reader = Reader(home, {**stores, **as_root}, lambda command: with_mpi(command, flavour))
        for block in section(SETUP):
            reader.follow(block)
        return reader
    return make


def with_mpi(command: str, flavour: str) -> str:
    """The command with the names of this MPI. Debian's own names, as its mpicc may be that of another."""
    names = names_of_mpi(TUTORIAL, LABELS["openmpi"])
    others = names_of_mpi(TUTORIAL, LABELS[flavour])
    if flavour == "openmpi":
        others = [f"{name}.openmpi" if shutil.which(f"{name}.openmpi") else name for name in names]
    for name, other in zip(names, others):
        command = re.sub(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", other, command)
    return command


def section(title: str) -> List[Block]:
    blocks = [block for block in blocks_of(TUTORIAL) if block.section == title]
    assert blocks, f"{TUTORIAL}: nothing to do in '{title}'"
    return blocks


def blocks_marked(mark: str, value: str) -> List[Block]:
    return [block for block in blocks_of(TUTORIAL) if block.marks.get(mark) == value]


def follow_in(language: str, reader: Reader) -> Reader:
    """The whole page in one language."""
    if language == "C":
        for title in PROGRAM:
            for block in section(title):
                reader.follow(block)
        assert (reader.directory / "wave.c").read_text() == (EXAMPLES / "3_wave.c").read_text()
    else:
        for source in EXAMPLES.glob("3_wave*"):
            shutil.copy(source, reader.directory)
        for block in blocks_marked("title", language):
            reader.follow(block)
    for title in KILL_AND_LOSE:
        for block in section(title):
            reader.follow(block)
    return reader


@pytest.fixture(scope="session")
def readers(new_reader, all_flavours) -> Dict[Tuple[str, str], "Future[Reader]"]:
    """Readers of all languages and MPIs, at work at the same time."""
    with ThreadPoolExecutor(READERS_AT_ONCE) as pool:
        work = {(language, flavour): (language, new_reader(flavour))
                for language in LANGUAGES for flavour in all_flavours}
        yield {key: pool.submit(follow_in, *task) for key, task in work.items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reader_survives_the_loss_of_a_node(readers, language, flavour):
    reader = readers[language, flavour].result()
    last = [sorted((reader.directory / name / "step.60").iterdir()) for name in ("killed", "whole", "lost")]
    assert [len(files) for files in last] == [4, 4, 4]
    for files in zip(*last):
        contents = [path.read_bytes() for path in files]
        assert len(contents[0]) > 80000 and contents.count(contents[0]) == 3, files


@pytest.mark.parametrize("suffix", ["cpp", "f90"])
def test_the_complete_program_is_the_plain_one_with_lines_added(suffix):
    plain, complete = ((EXAMPLES / f"{name}.{suffix}").read_text().splitlines() for name in ("3_wave_plain", "3_wave"))
    changes = list(difflib.ndiff(plain, complete))
    removed = [line for line in changes if line.startswith("- ")]
    assert len(removed) <= 5 and not any("SCR_" in line for line in plain), removed
    assert sum(line.startswith("+ ") for line in changes) > 40


def test_the_first_program_of_the_readme_is_complete(new_reader, flavour):
    reader = new_reader(flavour)
    for block in blocks_of(README):
        if block.marks.get("file") or block.language == "console":
            reader.follow(block)
    assert (reader.directory / "first.c").read_text() == (EXAMPLES / "1_first_program.c").read_text()
    assert len(list(reader.directory.glob("step.*/rank.*"))) == 4


# Starts the ranks as srun would, by mpirun, which must not know then that it is in an allocation.
SRUN = """#!/bin/sh
case " $* " in *" --input=none "*) exec "{of_job_control}/srun" "$@";; esac
ranks=$(echo " $*" | sed -n 's/.* -n\\([0-9]*\\) .*/\\1/p')
while :; do case $1 in -*) shift;; *) break;; esac; done
exec env $(env | sed -n 's/^\\(SLURM_[A-Z_]*\\)=.*/-u \\1/p') mpirun -np "$ranks" "$@"
"""


def test_the_batch_script_runs_the_program_to_its_end(new_reader, all_flavours, tmp_path):
    """With stand-ins for the commands of Slurm; tests/cluster has a real one."""
    reader = new_reader(all_flavours[0])
    shutil.copy(EXAMPLES / "3_wave.c", reader.directory / "wave.c")
    path = put_on_path(tmp_path)
    mine = tmp_path / "srun-of-this-test"
    mine.mkdir()
    (mine / "srun").write_text(with_mpi(SRUN.replace("{of_job_control}", path.split(":")[0]), all_flavours[0]))
    (mine / "srun").chmod(0o755)
    reader.follow(section(PROGRAM[1])[-1])
    for block in section(SLURM):
        reader.follow(block)
    printed = reader.run(Step(f"export PATH={mine}:{path}:$PATH SLURM_JOB_ID=42 SLURM_JOB_NODELIST=node[0-4]\n"
                              "sh wave.sbatch", []))
    assert "run 1 on 4 nodes" in printed and "step 60: 79.999999" in printed, printed
    assert len(list(reader.directory.glob("step.60/rank.*"))) == 4


def test_every_block_of_the_tutorial_is_done_by_a_reader():
    done = [block for title in (SETUP, *PROGRAM, *KILL_AND_LOSE, SLURM) for block in section(title)]
    done += [block for title in ("install", *LANGUAGES[1:]) for block in blocks_marked("title", title)]
    assert [block for block in blocks_of(TUTORIAL) if block not in done] == []
