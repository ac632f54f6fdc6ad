"""cairn doctor knows which programs cairn wrap cannot serve, and which other libraries are preloaded."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Tuple

import pytest

from cairn.preloading import defined_in, interpreter_of, obstacle, preloaded, remarks_on_preloaded
from jobs import environment_of


def compiled(source: str, target: Path, *options: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    done = subprocess.run([compiler, "-x", "c", "-", "-o", str(target), *options], input=source, text=True, check=False,
                          stderr=subprocess.PIPE)
    if done.returncode and "-static" in options:
        pytest.skip("libc is not installed as an archive")
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def static(tmp_path: Path) -> Path:
    return compiled("int main(void) { return 0; }", tmp_path / "static", "-static")


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """A library that wraps open, and calls rename."""
    source = "int rename(const char*, const char*); int open(const char* path, int flags) { return flags ? rename(path, path) : -1; }"
    return compiled(source, tmp_path / "libwrapper.so", "-shared", "-fPIC")


def doctor(cairn: Path, folder: Path, *words: object, **settings: str) -> Tuple[int, str]:
    done = subprocess.run([cairn, "doctor", *map(str, words)], cwd=folder, env=environment_of(settings), text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout


def test_doctor_names_a_statically_linked_program(cairn: Path, tmp_path: Path, static: Path) -> None:
    code, output = doctor(cairn, tmp_path, "--", static)
    assert code == 0 and output.startswith(f"note  {static} is statically linked: cairn wrap cannot preload"), output
    code, record = doctor(cairn, tmp_path, "--json", "--", static)
    first = json.loads(record)["findings"][0]
    assert first["level"] == "note" and "statically linked" in first["what"] and "crfs --scr" in first["remedy"] and "scr.h" in first["remedy"]


def test_doctor_finds_a_dynamic_program_good(cairn: Path, tmp_path: Path) -> None:
    code, output = doctor(cairn, tmp_path, "--", "sh", "-c", "true")
    assert code == 0 and "good  cairn wrap can preload its library into sh\n" in output, output
    code, output = doctor(cairn, tmp_path, "--", tmp_path / "none")
    assert code == 1 and output.startswith("bad   the program"), output


def test_doctor_names_a_static_program_behind_a_launcher(cairn: Path, tmp_path: Path, static: Path) -> None:
    launcher = next(filter(None, map(shutil.which, ("mpirun", "mpiexec"))), None)
    if launcher is None:
        pytest.skip("there is no launcher")
    for words in (["--", launcher], [launcher]):
        assert "is statically linked" in doctor(cairn, tmp_path, *words, "-n", "2", static)[1]
        assert "is statically linked" not in doctor(cairn, tmp_path, *words, "-n", "2", "sh")[1]


def test_doctor_names_other_preloaded_libraries(cairn: Path, tmp_path: Path, wrapper: Path) -> None:
    _, output = doctor(cairn, tmp_path)
    assert "preloaded" not in output, output
    # The loader prints an error for a library that is missing.
    code, record = doctor(cairn, tmp_path, "--json", LD_PRELOAD=f"{tmp_path}/libnone.so")
    (one,) = (one for one in json.loads(record)["findings"]
              if one["what"].startswith("the preloaded library"))
    assert code == 0 and one["level"] == "note" and "libnone.so is not found" in one["what"], one


def test_a_preloaded_library_with_the_same_calls_is_named_with_them(tmp_path: Path, wrapper: Path) -> None:
    assert defined_in(wrapper) & {"open", "rename"} == {"open"}
    other = compiled("int of_its_own(void) { return 1; }", tmp_path / "libother.so", "-shared", "-fPIC")
    system = tmp_path / "ld.so.preload"
    system.write_text(f"# of this site\n{other}\n")
    found = list(remarks_on_preloaded({"LD_PRELOAD": f"{wrapper}:/x/libcairn-interpose.so"}, system))
    assert len(found) == 3
    assert "(open)" in found[0].what and "RTLD_NEXT" in found[0].remedy
    assert "are wrapped" in found[1].what
    assert str(other) in found[2].what and found[2].remedy == "nothing to do"


def test_names_in_the_list_of_preloaded_libraries_are_separated_by_colons_or_spaces(tmp_path: Path) -> None:
    assert preloaded({"LD_PRELOAD": "a.so:b.so  c.so"}, tmp_path / "none") == ["a.so", "b.so", "c.so"]
    assert preloaded({}, tmp_path / "none") == []


def test_a_library_named_without_its_directory_is_searched_for(tmp_path: Path, wrapper: Path) -> None:
    found = list(remarks_on_preloaded({"LD_PRELOAD": "libwrapper.so", "LD_LIBRARY_PATH": f"/none:{tmp_path}"}, tmp_path / "none"))
    assert "(open)" in found[0].what
    assert "not found" in next(remarks_on_preloaded({"LD_PRELOAD": "libwrapper.so"}, tmp_path / "none")).what


def test_of_a_script_the_interpreter_counts(tmp_path: Path, static: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{static} -x\n")
    script.chmod(0o755)
    found = obstacle(str(script))
    assert found is not None and f"{static}, the interpreter of {script}, is statically linked" in found.what
    script.write_text("#!/usr/bin/env -S A=1 sh\n")
    assert interpreter_of(str(script)) == shutil.which("sh") and obstacle(str(script)) is None


def test_a_program_with_more_rights_than_its_user_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy(shutil.which("true") or "/bin/true", program)
    assert obstacle(str(program)) is None
    os.chmod(program, 0o4755)
    found = obstacle(str(program))
    assert found is not None and "more rights than its user" in found.what
