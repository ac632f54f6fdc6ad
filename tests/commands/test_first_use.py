"""What a new user tries: nothing in place, a wrong word, a closed pipe, a full disk. Each failure is an error that says so."""

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import List, NamedTuple

import pytest

GOLDEN_SERIES = Path(__file__).resolve().parents[1] / "golden" / "rbio" / "v1"
NATIVE = [["config"], ["layout", "--nodes", "400"], ["simulate", "--nodes", "4", "--lose", "any 1"], ["rebuild"],
          ["scavenge-node"], ["halt", "--list"], ["explain"], ["verify"], ["index", "list"], ["print", "halt"],
          ["rbio", "list", str(GOLDEN_SERIES)]]
PYTHON = [["scavenge", "--json"], ["doctor"], ["clean"], ["report"], ["prerun", "--export"], ["down-nodes", "--json"],
          ["should-exit", "--json"], ["status"]]
COMMANDS = [*(words[0] for words in NATIVE + PYTHON), "run"]
# These say something of a prefix directory. (config shows settings; doctor finds out what is wrong with the place.)
OF_A_PREFIX = [["layout", "--nodes", "2"], ["simulate", "--nodes", "2", "--lose", "n0"], ["rebuild"], ["scavenge-node"],
               ["halt"], ["explain"], ["verify"], ["index", "list"], ["index", "build"], ["index", "show", "x"],
               ["doctor"], ["report"], ["prerun"], ["down-nodes"], ["should-exit"], ["status"], ["scavenge"], ["clean"],
               ["run", "mpirun", "true"]]


class Done(NamedTuple):
    code: int
    output: str
    errors: str


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty prefix directory, and caches of its own."""
    (tmp_path / "prefix").mkdir()
    (tmp_path / "caches").mkdir()
    return tmp_path / "prefix"


def environment_of(place: Path) -> "dict[str, str]":
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCR_", "CAIRN_", "SLURM_"))}
    caches = str(place.parent / "caches")
    # Without these two, cairn doctor says that Open MPI starts nothing for root.
    of_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**kept, **of_root, "SCR_CACHE_BASE": caches, "SCR_CNTL_BASE": caches, "COLUMNS": "80"}


def run(cairn: Path, place: Path, *words: object, stdout: int = subprocess.PIPE) -> Done:
    done = subprocess.run([str(cairn), *map(str, words)], cwd=place, env=environment_of(place), stdin=subprocess.DEVNULL,
                          stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    return Done(done.returncode, done.stdout or "", done.stderr)


def without_words(text: str) -> str:
    """What a command may write to a terminal beside errors."""
    return "".join(line for line in text.splitlines(True) if "error" in line or "Traceback" in line)


@pytest.mark.parametrize("words", [*NATIVE, *PYTHON, ["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_a_reader_that_is_gone_is_no_error(cairn: Path, place: Path, words: List[str]) -> None:
    """As in `cairn doctor | true`."""
    run(cairn, place, "halt")
    (place / "halt").write_bytes((place / ".cairn" / "halt").read_bytes())
    reading, writing = os.pipe()
    os.close(reading)
    done = run(cairn, place, *words, stdout=writing)
    os.close(writing)
    assert without_words(done.errors) == "" or words[0] in ("report", "status", "scavenge"), done
    assert "Traceback" not in done.errors and "Broken" not in done.errors
    assert done.code in (0, 1, -signal.SIGPIPE, 128 + signal.SIGPIPE), done


@pytest.mark.parametrize("words", [["config"], ["--help"], ["verify"], ["doctor"], ["doctor", "--help"], ["clean"],
                                   ["prerun", "--export"]], ids=" ".join)
def test_output_that_cannot_be_written_is_a_failure(cairn: Path, place: Path, words: List[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run(cairn, place, *words, stdout=full.fileno())
    assert done.code == 1 and "cairn: error: the output" in done.errors and "Traceback" not in done.errors


@pytest.mark.parametrize("name", [*COMMANDS, "index list"])
def test_a_wrong_option_names_the_command_and_its_help(cairn: Path, place: Path, name: str) -> None:
    done = run(cairn, place, *name.split(), "--nosuch")
    assert (done.code, done.output) == (2, "")
    assert re.fullmatch(rf"cairn: error: cairn {name.split()[0]}.* --help\"\n", done.errors), done
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("words", [*OF_A_PREFIX, ["config"]], ids=" ".join)
@pytest.mark.parametrize("kind", ["nothing", "a file"])
def test_a_prefix_directory_that_is_none_is_named(cairn: Path, place: Path, words: List[str], kind: str) -> None:
    prefix = place / "gone"
    if kind == "a file":
        prefix.write_text("no directory")
    done = run(cairn, place, words[0], *words[1:2] * (words[0] == "index"), "-p", prefix,
               *words[1 + (words[0] == "index"):])
    assert done.code not in (0, 75), done
    assert str(prefix) in done.output + done.errors and "Traceback" not in done.errors, done
    assert kind == "a file" or not prefix.exists()
    if words[0] != "doctor":  # which reports all that it finds
        assert done.output == "" and len(done.errors.splitlines()) == 1, done


@pytest.mark.parametrize("option", ["--output", "--metrics"])
def test_a_dash_is_the_standard_output(cairn: Path, place: Path, option: str) -> None:
    (place / ".cairn").mkdir()
    (place / ".cairn" / "log.json").write_text("")
    done = run(cairn, place, "report", option, "-")
    assert done.code == 0 and done.output.startswith("<!DOCTYPE" if option == "--output" else "# ")
    assert not list(place.glob("-*")) and "-:" not in done.errors
    assert run(cairn, place, "report", "-o", "-", "--metrics", "-").code == 2


def test_a_report_does_not_replace_what_is_no_file(cairn: Path, place: Path) -> None:
    (place / ".cairn").mkdir()
    (place / ".cairn" / "log.json").write_text("")
    os.mkfifo(place / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=place, stdout=subprocess.PIPE)
    assert run(cairn, place, "report", "-o", "pipe").code == 0
    assert reader.communicate(timeout=10)[0].startswith(b"<!DOCTYPE")
    assert (place / "pipe").is_fifo()
    for name in ("", ".", ".cairn", "gone/page"):
        done = run(cairn, place, "report", "-o", name)
        assert done.code == 1 and "cairn: error: " in done.errors and "Traceback" not in done.errors, done
    assert sorted(path.name for path in place.iterdir()) == [".cairn", "pipe"]


def test_a_file_that_is_no_log_makes_no_report(cairn: Path, place: Path) -> None:
    (place / "notes").write_text("no log\nat all\n")
    done = run(cairn, place, "report", "notes")
    assert done.code == 1 and "notes" in done.errors and not (place / "report.html").exists()


@pytest.mark.parametrize("words", [["run", "--min-nodes", "0", "mpirun", "true"], ["run", "--hung-after", "-1", "mpirun", "true"],
                                   ["scavenge", "--manager", "none"], ["explain", "--ranks", "0"], ["halt", "-c", "x"]],
                         ids=" ".join)
def test_a_value_that_makes_no_sense_is_wrong_usage(cairn: Path, place: Path, words: List[str]) -> None:
    done = run(cairn, place, *words)
    assert done.code == 2 and len(done.errors) < 300, done
    assert "cairn: error: " in done.errors


WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]


@pytest.mark.skipif(os.getuid() != 0, reason="a directory of another user is needed")
@pytest.mark.parametrize("words", [*(one for one in OF_A_PREFIX if one[0] not in ("layout", "simulate", "clean")), ["config"]],
                         ids=" ".join)
def test_a_prefix_directory_without_rights_is_named(cairn: Path, words: List[str]) -> None:
    locked = Path(tempfile.mkdtemp(prefix="cairn-locked-"))
    os.chown(locked, 65534, 65534)
    try:
        inside = words[1:2] * (words[0] == "index")
        # Root without its special rights: another user may be unable to read the command itself.
        done = subprocess.run([*WITHOUT_RIGHTS, str(cairn), words[0], *inside, "-p", str(locked), *words[1 + len(inside):]],
                              cwd="/", env=environment_of(locked), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    finally:
        locked.rmdir()
    assert done.returncode not in (0, 75) and str(locked) in done.stdout + done.stderr, done
    assert "Traceback" not in done.stderr


def test_doctor_names_a_cache_that_does_not_exist(cairn: Path, place: Path) -> None:
    gone = place / "no" / "such"
    (place / "settings").write_text(f"STORE={gone} MKDIR=0\n")
    environment = {**environment_of(place), "SCR_CONF_FILE": str(place / "settings")}
    for settings, code in ((environment, 1), ({**environment_of(place), "SCR_CACHE_BASE": str(gone)}, 0)):
        done = subprocess.run([str(cairn), "doctor"], cwd=place, env=settings, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert re.search(rf"^(bad |note)  cache {gone} does not exist", done.stdout, re.MULTILINE), done
        assert done.returncode == code, done


def test_doctor_says_of_a_prefix_directory_what_is_wrong(cairn: Path, place: Path) -> None:
    (place / "file").write_text("")
    for name in ("gone", "file"):
        done = run(cairn, place, "doctor", "-p", name)
        assert done.code == 1 and re.search(rf"^bad .*/{name} .*\n +-> ", done.output, re.MULTILINE), done
