"""cairn rbio as a user calls it, compared with NumPy and with the reader of the examples."""

import ast
import importlib.util
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import List, Optional

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "rbio"
FIELDS = sorted(path.stem for path in (GOLDEN / "v1-fields").iterdir())


@pytest.fixture
def series(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "v1", tmp_path / "series"))


@pytest.fixture(scope="module")
def reader() -> ModuleType:
    spec = importlib.util.spec_from_file_location("read_rbio", ROOT / "examples" / "read_rbio.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(cairn: Path, *words: object, here: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([str(cairn), "rbio", *map(str, words)], cwd=here, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_what_numpy_and_the_example_read(cairn: Path, series: Path, reader: ModuleType, field: str) -> None:
    done = run(cairn, "extract", "series", field, "-o", "field.npy", here=series.parent)
    assert done.returncode == 0, done.stderr
    expected = numpy.load(GOLDEN / "v1-fields" / f"{field}.npy")
    for found in (numpy.load(series.parent / "field.npy"), reader.read_field(str(series / "step.42"), field)):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert numpy.array_equal(found, expected)
    assert (series.parent / "field.npy").read_bytes() == (GOLDEN / "v1-fields" / f"{field}.npy").read_bytes()


def test_the_example_is_a_program(series: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable,
                    ROOT / "examples" / "read_rbio.py", series / "step.42", "field_3", tmp_path / "out.npy"],
                   check=True, timeout=60)
    assert numpy.load(tmp_path / "out.npy").shape == (13, 3)


@pytest.mark.parametrize("at, byte, words", [
    (None, b"", "has no field nonsense; its fields are"),
    (0, b"X", "does not begin as a file of rbIO"),
    (8, b"\x02", "has format 2, and this program reads format 1"),
], ids=["field", "magic", "version"])
def test_the_example_says_what_it_cannot_read(series: Path, tmp_path: Path, at: Optional[int], byte: bytes,
                                              words: str) -> None:
    part = series / "step.42" / "part.1.rbio"
    if at is not None:
        content = part.read_bytes()
        part.write_bytes(content[:at] + byte + content[at + 1:])
    field = "nonsense" if at is None else "field_3"
    done = subprocess.run([sys.executable, ROOT / "examples" / "read_rbio.py", series / "step.42", field,
                           tmp_path / "out.npy"], stderr=subprocess.PIPE, timeout=60, check=False, text=True)
    assert done.returncode == 1 and not (tmp_path / "out.npy").exists()
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_the_format_is_read_in_fifteen_lines(reader: ModuleType) -> None:
    [function] = ast.parse(inspect.getsource(reader.read_field)).body
    _docstring, first, *_ = function.body
    assert function.body[-1].end_lineno - first.lineno + 1 <= 15


def test_the_golden_files_have_fields_of_all_types() -> None:
    dtypes = {numpy.load(path).dtype.str for path in (GOLDEN / "v1-fields").iterdir()}
    assert dtypes == {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8", "<c8", "<c16"}


def test_the_standard_output_gets_the_same_bytes(cairn: Path, series: Path) -> None:
    done = run(cairn, "extract", "series", "two_blocks", "-o", "-", here=series.parent)
    assert done.stdout == (GOLDEN / "v1-fields" / "two_blocks.npy").read_bytes() and done.stderr == b""
    raw = run(cairn, "extract", "--raw", "series", "two_blocks", "-o", "-", here=series.parent)
    assert raw.stdout == numpy.load(GOLDEN / "v1-fields" / "two_blocks.npy").tobytes()


def test_damage_is_found_and_has_an_exit_code(cairn: Path, series: Path) -> None:
    assert run(cairn, "verify", ".", here=series).returncode == 0
    part = series / "step.42" / "part.0.rbio"
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    done = run(cairn, "verify", "--json", ".", here=series)
    assert done.returncode == 1
    damage = json.loads(done.stdout)["steps"][0]["damage"]
    assert [(one["file"], one["last_byte"]) for one in damage] == [(str(part), len(content) - 1)]
    done = run(cairn, "extract", ".", "two_blocks", "-o", "out", here=series)
    assert done.returncode == 1 and str(part).encode() in done.stderr
    assert sorted(path.name for path in series.iterdir()) == ["step.42"]


@pytest.mark.parametrize("words", [[], ["lst"], ["list"], ["show"], ["extract", ".", "field_1"], ["verify", ".", "--step", "-1"],
                                   ["verify", ".", "--step", "x"], ["extract", ".", "field_1", "-o", "-", "--json"]], ids=" ".join)
def test_a_wrong_command_line_is_wrong_usage(cairn: Path, series: Path, words: List[str]) -> None:
    done = run(cairn, *words, here=series)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr.startswith(b"cairn: error: "), done


def test_a_full_disk_is_an_error(cairn: Path, series: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(cairn), "rbio", "extract", str(series), "two_blocks", "-o", "-"], stdout=full,
                              stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and b"cairn: error: " in done.stderr
