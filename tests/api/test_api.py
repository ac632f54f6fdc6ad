"""Every call of scr.h, in and out of order, in MPI processes: codes, effects, and lines on stderr.

The program (main.cpp beside this file) checks codes and effects on every rank. Each rank announces
the errors that it provokes and that it is to tell of; here its announcements and Cairn's error lines
on its stderr are compared one for one, so that a line too many fails as one too few does, and so
does one from the wrong rank.
"""

import json
import subprocess
from itertools import zip_longest
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

import pytest

from cluster import Cluster

NODES = ["n0", "n0", "n1", "n1"]
BAD_SETTING, NOT_FOUND = 4, 10


def differences(announced: List[str], reported: List[str]) -> List[str]:
    """Which reported lines are not those announced: each holds all of "WORD|WORD", in order."""
    return [f"announced {words!r}, reported {line!r}"
            for words, line in zip_longest(announced, reported)
            if words is None or line is None or not all(word in line for word in words.split("|"))]


class Program:
    """The scenarios, run on one cluster."""

    def __init__(self, cluster: Cluster, build: Path, flavour: str) -> None:
        self.cluster = cluster
        self._program = str(build / "tests" / "api" / flavour / "api_program")
        self._launches = 0

    def launch(self, scenario: str, settings: Optional[Mapping[str, str]] = None
               ) -> Tuple[int, List[str], str]:
        """Exit code, lines on stdout, all of stderr."""
        self._launches += 1
        lines = self.cluster.root / f"lines.{self._launches}"
        lines.mkdir()
        code, output, log = self.cluster.run(
            NODES, [self._program, scenario],
            {"SCR_CACHE_SIZE": "2", "API_LINES": str(lines), **(settings or {})})
        reported = [(lines / f"stderr.{rank}").read_text() for rank in range(len(NODES))]
        log = "\n".join([*reported, output, log])
        for rank, text in enumerate(reported):
            announced = (lines / f"announced.{rank}").read_text().splitlines()
            errors = [line for line in text.splitlines() if line.startswith("cairn: error: ")]
            wrong = differences(announced, errors)
            assert not wrong, "\n".join([f"rank {rank}:", *wrong, log])
        return code, output.splitlines(), log

    def run(self, scenario: str, settings: Optional[Mapping[str, str]] = None) -> List[str]:
        """A scenario that runs to its end: what it printed before "done"."""
        code, lines, log = self.launch(scenario, settings)
        assert code == 0 and lines and lines[-1] == "done", log
        return lines[:-1]


@pytest.fixture
def program(cluster: Cluster, build: Path, flavour: str) -> Program:
    return Program(cluster, build, flavour)


def test_a_line_too_many_or_too_few_is_seen() -> None:
    assert differences(["a|b", "c"], ["a and b", "c"]) == []
    assert len(differences(["a|c"], ["a and b"])) == 1
    assert len(differences(["a"], ["a", "a"])) == 1
    assert len(differences(["a", "a"], ["a"])) == 1


def test_calls_out_of_order(program: Program) -> None:
    assert program.run("wrong_order") == []
    assert program.run("wrong_order") == ["restarted from named"]


@pytest.mark.parametrize("scenario", ["unequal_calls", "bad_arguments", "routes", "threads",
                                      "settings", "when_to_checkpoint", "when_to_stop"])
def test_in_one_run(program: Program, scenario: str) -> None:
    assert program.run(scenario) == []


@pytest.mark.any_mpi
def test_commands_know_what_the_program_has_set(program: Program, build: Path) -> None:
    def from_program() -> Mapping[str, str]:
        reported = subprocess.run([build / "src/tools/cairn", "config", "--json", "--prefix", program.cluster.prefix],
                              env={}, stdout=subprocess.PIPE, check=True, timeout=60)
        return {each["key"]: each["value"] for each in json.loads(reported.stdout)["settings"]
                if each["source"] == "SCR_Config"}

    assert program.run("settings") == []
    assert from_program() == {"SCR_CHECKPOINT_INTERVAL": "3", "SCR_COPY_TYPE": "FILE", "CKPT=0 INTERVAL": "1",
                              "CKPT=0 TYPE": "XOR", "CKPT=0 SET_SIZE": "2", "CKPT=1 INTERVAL": "5", "CKPT=1 TYPE": "SINGLE"}
    assert program.run("unequal_calls") == []
    assert from_program() == {}, "this one sets nothing"
    (program.cluster.prefix / ".cairn" / "app_settings" / "in the way").mkdir(parents=True)
    code, lines, log = program.launch("settings")
    assert (code, lines) == (0, ["done"]), log
    assert log.count("cairn's commands will not know what SCR_Config has set") == 1, log


@pytest.mark.any_mpi
def test_disabled_by_the_user(program: Program) -> None:
    code, lines, log = program.launch("switched_off", {"SCR_ENABLE": "0"})
    assert (code, lines) == (0, ["done"]), log
    reported = [line for line in log.splitlines() if line.startswith("cairn: ")]
    assert len(reported) == 1 and "SCR_ENABLE=0" in reported[0], log


@pytest.mark.any_mpi
def test_init_that_failed(program: Program) -> None:
    refused = {"SCR_COPY_TYPE": "RAID", "API_INIT_ERROR": str(BAD_SETTING), "API_INIT_WORDS": "SCR_COPY_TYPE=RAID"}
    assert program.run("switched_off", refused) == []


@pytest.mark.any_mpi
def test_an_unusable_cache_names_the_setting_and_where_it_was_set(program: Program) -> None:
    words = "/proc/nosuch|SCR_CACHE_BASE=/proc/nosuch (environment)"
    assert program.run("switched_off", {"SCR_CACHE_BASE": "/proc/nosuch", "API_INIT_ERROR": str(NOT_FOUND),
                                        "API_INIT_WORDS": words}) == []


@pytest.mark.any_mpi
def test_all_errors_of_a_settings_file_are_reported_at_once(program: Program) -> None:
    conf = program.cluster.prefix / ".scrconf"
    conf.write_text("SCR_FLUSH=often\nSCR_DEBUG='1\nSCR_SET_SIZE=8\nSTORE=/tmp COUNT=none\n")
    code, lines, log = program.launch("switched_off", {"API_INIT_ERROR": str(BAD_SETTING), "API_INIT_WORDS": "3 settings"})
    assert (code, lines) == (0, ["done"]), log
    assert [log.count(f"{conf}:{line}") for line in (1, 2, 3, 4)] == [1, 1, 0, 1], log


@pytest.mark.any_mpi
def test_a_prefix_directory_that_does_not_exist_is_one_message_for_the_job(program: Program) -> None:
    missing = "/proc/nosuch"
    code, lines, log = program.launch("no_prefix", {"SCR_PREFIX": missing, "SCR_FLUSH": "1", "CAIRN_LOG_JSON": "1"})
    assert (code, lines) == (0, ["done"]), log
    warnings = [line for line in log.splitlines() if line.startswith("cairn: warning: ") and missing in line]
    assert len(warnings) == 1 and f"SCR_PREFIX={missing} (environment)" in warnings[0], log


@pytest.mark.any_mpi
def test_that_no_checkpoint_is_ever_due_is_a_warning_once_in_a_run(program: Program) -> None:
    """Of the four runs' settings in that scenario only the first has none."""
    _, _, log = program.launch("when_to_checkpoint")
    warnings = [line for line in log.splitlines() if line.startswith("cairn: warning: SCR_Need_checkpoint")]
    assert len(warnings) == 1 and "SCR_CHECKPOINT_SECONDS" in warnings[0], log


def test_halt_ends_the_run(program: Program) -> None:
    assert program.launch("ended_by_init", {"SCR_HALT_EXIT": "1"})[:2] == (0, [])
    assert program.launch("ended_by_complete", {"SCR_HALT_EXIT": "1"})[:2] == (0, [])
    # The checkpoint that ended the run is there.
    assert program.run("wrong_order") == ["restarted from last"]


def test_calls_of_2009(program: Program) -> None:
    assert program.run("calls_of_2009") == []
    assert program.run("calls_of_2009") == ["restarted"]


@pytest.mark.any_mpi
def test_datasets_by_name(program: Program) -> None:
    for scenario in ("names_first_run", "names_second_run", "names_third_run"):
        assert program.run(scenario, {"SCR_CACHE_SIZE": "9"}) == []


@pytest.mark.any_mpi
def test_prefix_through_a_link(program: Program) -> None:
    link = program.cluster.root / "link"
    link.symlink_to(program.cluster.prefix)
    settings = {"SCR_PREFIX": str(link), "API_REAL_PREFIX": str(program.cluster.prefix)}
    assert program.run("linked_prefix", settings) == []
    assert program.run("linked_prefix", settings) == ["restarted"]


@pytest.mark.any_mpi
def test_a_folder_that_is_a_link(program: Program) -> None:
    archive = program.cluster.root / "archive"
    archive.mkdir()
    (program.cluster.prefix / "linked").symlink_to(archive)
    assert program.run("linked_folder", {"SCR_CACHE_BYPASS": "1"}) == []


@pytest.mark.any_mpi
@pytest.mark.parametrize("store", ["memory", "disk", "in place"])
def test_a_file_that_is_still_open_is_named(program: Program, tmp_path: Path, store: str) -> None:
    settings = {"SCR_CACHE_BASE": str(tmp_path / "%n")} if store == "disk" else {}
    assert program.run("open_files", {**settings, "SCR_CACHE_BYPASS": str(int(store == "in place"))}) == []


@pytest.mark.any_mpi
def test_a_checkpoint_without_files_or_with_one_name_twice_or_refused_is_invalid(program: Program) -> None:
    assert program.run("wrong_names") == []


def test_a_file_of_all_ranks(program: Program) -> None:
    settings = {"SCR_CACHE_BYPASS": "1", "CAIRN_BLOCK_SIZE": "16KB"}
    assert program.run("shared_file", settings) == []
    assert program.run("shared_file", settings) == ["restarted from first"]
    newer = program.cluster.prefix / "second" / "all"
    assert newer.stat().st_size == 250_000
    with newer.open("r+b") as content:
        content.seek(200_000)
        content.write(b"x")
    assert program.run("shared_file", settings) == ["restarted from first"]


def test_states_of_datasets(program: Program) -> None:
    """A node copies 4 KB per second, so that a copy of two blocks per rank takes a while."""
    settings = {"SCR_FLUSH_ASYNC": "1", "SCR_FLUSH_ASYNC_BW": "4KB", "CAIRN_BLOCK_SIZE": "4KB"}
    assert program.run("dataset_states", settings) == []
    assert program.run("dataset_states_restarted") == []


def test_that_connections_are_lost_is_reported_once_for_the_job(program: Program) -> None:
    code, lines, log = program.launch("lost_connections", {"CAIRN_PROTECT": "behind"})
    assert (code, lines) == (0, ["done"]), log
    reports = [line for line in log.splitlines() if "has lost its connection to" in line]
    assert len(reports) == 1 and "from here on checkpoints are protected before" in reports[0], log
