"""The rooms that handle bytes compile for another processor: nothing in them is x86's alone.

The rooms above see bytes only through these, and would double the time.
"""

import json
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = {".cpp": ["aarch64-linux-gnu-g++", "-std=c++20"], ".c": ["aarch64-linux-gnu-gcc"]}
PACKAGE = "g++-aarch64-linux-gnu"
SOURCES_AT_ONCE = 8  # headers take most of the time
# As cmake/CairnRoom.cmake, which says why.
IGNORED_TOGETHER = ["-Wno-shadow", "-Wno-subobject-linkage"]
ROOMS = ("base", "codec", "comm", "files", "records", "transfer", "aggregate", "redundancy", "rbio", "crfs", "api", "interpose")


def has_place_of_its_own(include: str) -> bool:
    """False for folders of the host's own C library, which are not this processor's."""
    return include not in ("/usr/include", "/usr/include/x86_64-linux-gnu")


def cross_command(entry: dict) -> list[str]:
    """The command of compile_commands.json that checks the same source for aarch64."""
    words = shlex.split(entry["command"])
    kept = [word for word in words if word.startswith(("-D", "-I", "-W"))]
    for flag, folder in zip(words, words[1:]):
        if flag == "-isystem" and has_place_of_its_own(folder):
            kept += [flag, folder]
    source = Path(entry["file"])
    # Headers of libraries that have no code for a processor, where the compiler's own have nothing.
    libraries = ["-idirafter", "/usr/include"]
    return [*COMPILERS[source.suffix], *kept, *libraries, "-fsyntax-only", str(source)]


def compiled_by(entry: dict, build: Path) -> list[Path]:
    """The sources: several where the build compiles them as one file (cmake/CairnRoom.cmake)."""
    path = Path(entry["file"])
    if not path.is_relative_to(build.resolve()):
        return [path]
    return [ROOT / name for name in re.findall(r'^#include "(.+)"$', path.read_text(), re.MULTILINE)]


def sources(build: Path) -> list[dict]:
    """Each source of these rooms once, of the first MPI it is built for."""
    entries = json.loads((build / "compile_commands.json").read_text())
    ours = {}
    for entry in entries:
        for source in compiled_by(entry, build):
            path = source.relative_to(ROOT)
            if path.parts[0] == "src" and path.parts[1] in ROOMS and not path.stem.endswith("_test"):
                if path.suffix in COMPILERS:
                    ours.setdefault(path, {**entry, "file": str(source)})
    return list(ours.values())


def check(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def require_compilers() -> None:
    missing = [command[0] for command in COMPILERS.values() if not shutil.which(command[0])]
    if missing:
        pytest.fail(f"there is no {' and no '.join(missing)}: install the package {PACKAGE}")


def batches(entries: list[dict]) -> list[list[list[str]]]:
    """The commands of sources that are compiled with the same options, a few at a time."""
    alike = defaultdict(list)
    for command in map(cross_command, entries):
        alike[Path(command[-1]).suffix, *command[:-1]].append(command)
    return [commands[i:i + SOURCES_AT_ONCE] for commands in alike.values()
            for i in range(0, len(commands), SOURCES_AT_ONCE)]


def failures_of(batch: list[list[str]], folder: Path) -> list[str]:
    """Each source that does not compile. All are compiled as one file first, which fails where two define one name."""
    together = folder / f"together{Path(batch[0][-1]).suffix}"
    together.write_text("".join(f'#include "{command[-1]}"\n' for command in batch))
    if len(batch) > 1 and check([*batch[0][:-1], *IGNORED_TOGETHER, str(together)]).returncode == 0:
        return []
    results = [(command[-1], check(command)) for command in batch]
    return [f"{source}:\n{result.stderr[:2000]}" for source, result in results if result.returncode != 0]


@pytest.fixture
def compilers():
    require_compilers()


@pytest.mark.usefixtures("compilers")
def test_every_source_of_these_rooms_compiles(build, tmp_path):
    entries = sources(build)
    assert len(entries) > 150
    failures = [failure for batch in batches(entries) for failure in failures_of(batch, tmp_path)]
    assert not failures, "\n".join(failures)


@pytest.mark.usefixtures("compilers")
def test_an_intrinsic_is_found_among_good_sources(build, tmp_path):
    source = tmp_path / "intrinsic.cpp"
    source.write_text("#include <immintrin.h>\n__m128i zero() { return _mm_setzero_si128(); }\n")
    good = cross_command(sources(build)[0])
    [failure] = failures_of([good, [*good[:-1], str(source)]], tmp_path)
    assert failure.startswith(str(source))


def test_a_missing_compiler_is_reported_with_its_package(monkeypatch, tmp_path):
    packages = (ROOT / "packaging" / "debian-packages.txt").read_text()
    assert PACKAGE in packages
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=f"install the package {re.escape(PACKAGE)}"):
        require_compilers()
