"""What is installed can be found, linked and run by programs outside the tree."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Sequence

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSUMER = Path(__file__).resolve().parent / "consumer"
FIRST_PROGRAM = ROOT / "examples" / "1_first_program.c"


def run(command: Sequence[object], **more) -> str:
    """What the command prints; its failure shows all of that."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def run_ranks(launch: List[str], program: Path, folder: Path, arguments: Sequence[object] = (),
              **environment: str) -> str:
    """The program on two ranks, with everything it writes below `folder`."""
    places = {"SCR_PREFIX": folder, "SCR_CACHE_BASE": folder / "cache",
              "SCR_CNTL_BASE": folder / "control"}
    for place in places.values():
        place.mkdir(exist_ok=True)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    everything = {**os.environ, **root, **{key: str(path) for key, path in places.items()},
                  **environment}
    return run([*launch, 2, program, *arguments], cwd=folder, env=everything)


def compiler(language: str, flavour: str) -> str:
    """Debian's name of an MPI's compiler (mpicc.openmpi), else the plain one."""
    found = shutil.which(f"{language}.{flavour}") or shutil.which(language)
    assert found, f"no {language} for {flavour}"
    return found


@pytest.fixture(scope="session")
def prefix(pytestconfig, tmp_path_factory) -> Path:
    """Installed once, then moved: what is installed must not depend on where it was put."""
    folder = tmp_path_factory.mktemp("install")
    run(["cmake", "--install", pytestconfig.getoption("--build"), "--prefix", folder / "first"])
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


def library(prefix: Path, primary: str, flavour: str) -> Path:
    """The library of a flavour, by the name that programs link."""
    libdir = next(prefix.rglob("pkgconfig/cairn.pc")).parents[1]
    return (libdir if flavour == primary else libdir / "cairn" / flavour) / "libcairn.so"


def build_consumer(prefix: Path, folder: Path, flavour: str, **variables: object) -> Path:
    build = folder / "build"
    run(["cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DMPI_C_COMPILER={compiler('mpicc', flavour)}",
         f"-DMPI_CXX_COMPILER={compiler('mpicxx', flavour)}",
         *(f"-D{key}={value}" for key, value in variables.items())])
    run(["cmake", "--build", build])
    return build / "consumer"


def test_c_program_by_find_package_cairn(prefix, launch, flavour, tmp_path):
    program = build_consumer(prefix, tmp_path, flavour, PACKAGE="cairn", VERSION="0.1",
                             LIBRARY=f"cairn::{flavour}", SOURCE=FIRST_PROGRAM)
    assert "step 100" in run_ranks(launch[flavour], program, tmp_path)


def test_cxx_program_by_find_package_scr(prefix, launch, primary, flavour, tmp_path):
    library_of = "scr::scr" if flavour == primary else f"scr::{flavour}"
    program = build_consumer(prefix, tmp_path, flavour, PACKAGE="scr", VERSION="3.0",
                             LIBRARY=library_of, SOURCE="program.cpp")
    assert "checkpoint written by v3" in run_ranks(launch[flavour], program, tmp_path)


def needed(program: Path) -> "set[str]":
    """The shared libraries that it names, without their versions."""
    return set(re.findall(r"NEEDED.*\[(\w+)", run(["readelf", "-dW", program])))


@pytest.mark.parametrize("name", ["scr", "scrf", "by flavour"])
def test_cxx_program_with_the_static_library(prefix, launch, primary, flavour, tmp_path, name):
    if name != "by flavour" and flavour != primary:
        pytest.skip("without a flavour it is the first MPI's")
    program = build_consumer(prefix, tmp_path, flavour, PACKAGE="scr", VERSION="3.0", SOURCE="program.cpp",
                             LIBRARY=f"scr::{flavour if name == 'by flavour' else name}-static")
    assert needed(program) & {"libcairn", "libcairn_mpich", "libscr"} == set()
    assert "checkpoint written by v3" in run_ranks(launch[flavour], program, tmp_path)


@pytest.mark.parametrize("package", ["cairn", "scr"])
def test_c_program_with_the_static_library_by_pkg_config(prefix, launch, primary, flavour, tmp_path, package):
    folder = library(prefix, primary, primary).parent / "pkgconfig"
    flags = run(["pkg-config", "--cflags", "--libs", f"{package}-{flavour}-static"],
                env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).split()
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), FIRST_PROGRAM, "-o", program, *flags])
    assert needed(program) & {"libcairn", "libcairn_mpich", "libscr"} == set()
    assert "step 100" in run_ranks(launch[flavour], program, tmp_path)


def test_the_static_library_takes_no_names_of_the_program(prefix, primary):
    """Beside the interface there are only C++ names in a namespace of its own, and what any C++ program may define too."""
    archive = library(prefix, primary, primary).with_suffix(".a")
    strong = {line.split()[0] for line in run(["nm", "-gP", "--defined-only", archive]).splitlines()
              if len(line.split()) > 2 and line.split()[1] in "TDBRSC"}
    assert "SCR_Init" in strong and "scr_init_" in strong
    foreign = {name for name in strong if not re.match(r"SCR_|Cairn_|scr_\w+_$|rbio_|cairn_|_ZT?[A-Z]*N?[KVr]*\d*.*5cairn", name)}
    assert foreign == set()


@pytest.mark.parametrize("package", ["cairn", "scr"])
@pytest.mark.parametrize("by_name", [False, True])
def test_c_program_by_pkg_config(prefix, launch, primary, flavour, tmp_path, package, by_name):
    """What is linked so finds the library wherever it was installed."""
    if not by_name and flavour != primary:
        pytest.skip("without a name it is the first MPI's")
    folder = library(prefix, primary, primary).parent / "pkgconfig"
    flags = run(["pkg-config", "--cflags", "--libs", f"{package}-{flavour}" if by_name else package],
                env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).split()
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), FIRST_PROGRAM, "-o", program, *flags])
    assert "step 100" in run_ranks(launch[flavour], program, tmp_path)


def test_a_program_with_shared_files_by_pkg_config(prefix, launch, primary, flavour, tmp_path):
    folder = library(prefix, primary, primary).parent / "pkgconfig"
    flags = run(["pkg-config", "--cflags", "--libs", f"cairn-{flavour}"],
                env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).split()
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), ROOT / "examples" / "4_shared_file.c", "-o", program, *flags])
    assert "step 60: " in run_ranks(launch[flavour], program, tmp_path)
    assert "restored step 60" in run_ranks(launch[flavour], program, tmp_path)


def test_c_program_by_a_link_line_of_ones_own(prefix, launch, primary, flavour, tmp_path):
    """As the guide has it for each MPI."""
    libdir = library(prefix, primary, flavour).parent
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), FIRST_PROGRAM, "-o", program, f"-I{prefix}/include", f"-L{libdir}",
         "-lcairn", f"-Wl,-rpath,{libdir}"])
    assert "step 100" in run_ranks(launch[flavour], program, tmp_path)


def test_a_program_that_waits_for_its_copies(prefix, launch, primary, flavour, tmp_path):
    flags = run(["pkg-config", "--cflags", "--libs", f"cairn-{flavour}"],
                env={**os.environ, "PKG_CONFIG_PATH": str(library(prefix, primary, primary).parent / "pkgconfig")}).split()
    program = tmp_path / "program"
    run([compiler("mpicc", flavour), "-std=c11", "-Wall", "-Wextra", "-Werror", ROOT / "examples" / "5_safe_output.c", "-o",
         program, *flags])
    lines = run_ranks(launch[flavour], program, tmp_path, SCR_FLUSH_ASYNC="1")
    assert "result.20: safe from the loss of all caches, sum " in lines
    assert (tmp_path / "result.20" / "rank.1").exists()


def test_only_the_interface_is_exported(prefix, primary, flavour):
    symbols = {line.split()[-1].split("@")[0] for line in run(
        ["nm", "-D", "--defined-only", library(prefix, primary, flavour)]).splitlines()}
    declared = {name for header in ("scr.h", "cairn.h", "rbio.h") for name in re.findall(
        r"^CAIRN_EXPORT [^(]*\b((?:SCR|Cairn|rbio)_\w+)\(", (prefix / "include" / header).read_text(), re.MULTILINE)}
    assert len(declared) == 21 + 4 + 14
    assert declared <= symbols
    fortran = {f"{name.lower()}_" for source, call in (("scrf.h", r"EXTERNAL (\w+)"),
                                                       ("cairn.f90", r"^    subroutine (\w+)"), ("rbio.f90", r"^    subroutine (\w+)"))
               for name in re.findall(call, (prefix / "include" / source).read_text(), re.MULTILINE)}
    assert len(fortran) == 17 + 4 + 14
    assert fortran <= symbols
    others = symbols - declared - fortran
    assert {name for name in others if not name.startswith("cairn_")} == set()


def test_each_flavour_is_loaded_by_a_name_of_its_own(prefix, primary, launch):
    sonames = {re.search(r"soname: \[(.*)\]", run(
        ["readelf", "-dW", library(prefix, primary, flavour)])).group(1) for flavour in launch}
    assert len(sonames) == len(launch)


def test_dlclose_does_not_take_the_code_of_threads_away(prefix, primary, launch):
    for flavour in launch:
        path = library(prefix, primary, flavour)
        close = ("import ctypes, _ctypes, sys; loaded = ctypes.CDLL(sys.argv[1]); _ctypes.dlclose(loaded._handle); "
                 "print(open('/proc/self/maps').read())")
        assert "/libcairn" in run([sys.executable, "-c", close, path])


def test_installed_files(prefix, launch):
    names = {path.name for path in prefix.rglob("*") if not path.is_dir()}
    assert {"cairn", "scr.h", "scrf.h", "scr.f90", "scr.mod",
            "cairn.h", "cairn.f90", "cairn.mod", "rbio.h", "rbio.f90", "rbio.mod", "cairn_errors.h", "libcairn.so", "libscr.so", "libscrf.so", "cairnConfig.cmake", "scrConfig.cmake",
            "cairn.pc", "scr.pc"} <= names
    assert {f"{package}-{flavour}{kind}.pc" for package in ("cairn", "scr") for flavour in launch
            for kind in ("", "-static")} <= names
    for flavour in launch:
        folder = library(prefix, next(iter(launch)), flavour).parent
        assert {(folder / f"{name}.a").resolve() for name in ("libscr", "libscrf")} == {folder / "libcairn.a"}
    pages = {page.name for page in (Path(__file__).resolve().parents[2] / "docs" / "man").glob("*.1")}
    assert {"cairn.1", "cairn-verify.1"} <= pages <= names
    assert {"SCR_Init.3", "Cairn_Wait.3", "rbio_open.3"} <= {page.name for page in (prefix / "share" / "man" / "man3").iterdir()}
    for completion in ("bash-completion/completions/cairn", "zsh/site-functions/_cairn", "fish/vendor_completions.d/cairn.fish"):
        assert (prefix / "share" / completion).exists()
    for name in ("scr_halt", "scr_index", "scr_print", "scr_run", "scr_srun", "scr_mpirun", "scr_jsrun", "scr_lrun",
                 "scr_fluxrun", "scr_prerun",
                 "scr_postrun", "scr_list_down_nodes", "scr_should_exit", "scr_env", "scr_list_dir", "scr_ckpt_interval"):
        assert (prefix / "bin" / name).resolve() == (prefix / "bin" / "cairn").resolve()
    assert {name for name in names if name.endswith((".a", ".hpp"))} == {"libcairn.a", "libscr.a", "libscrf.a"}


def test_the_library_for_unmodified_programs(prefix, tmp_path):
    """The installed command finds it, and it needs nothing beside libc."""
    if not (prefix / "lib" / "libcairn-interpose.so").exists():
        pytest.skip("libcairn-interpose.so was not built, as libpcre2 is not here")
    (tmp_path / "run").mkdir()
    words = [prefix / "bin" / "cairn", "wrap", "-p", tmp_path / "run", "--cache", tmp_path / "cache", "--checkpoint", "ckpt$", "--"]
    assert "ckpt" in run([*words, "sh", "-c", f"cd {tmp_path}/run && echo a >ckpt && find {tmp_path}/cache -name ckpt"])
    assert (tmp_path / "run" / "ckpt").read_text() == "a\n"


def test_the_mount_that_gathers_writes(prefix, primary):
    """A program of its own: nobody who links the library needs libfuse."""
    if not (prefix / "bin" / "crfs").exists():
        pytest.skip("crfs was not built, as libfuse3 is not here")
    assert (prefix / "sbin" / "mount.crfs").resolve() == (prefix / "bin" / "crfs").resolve()
    assert "BACKING" in run([prefix / "sbin" / "mount.crfs", "--help"])
    assert (prefix / "share" / "man" / "man8" / "mount.crfs.8").exists()
    assert "fuse" not in run(["readelf", "-d", library(prefix, primary, primary)])
    assert "libfuse3" in run(["readelf", "-d", prefix / "bin" / "crfs"])


@pytest.mark.parametrize("name", ["run", "scavenge", "status", "doctor", "clean", "prerun", "down-nodes", "should-exit"])
def test_job_control_is_found_where_it_was_moved_to(prefix, name):
    assert f"usage: cairn {name}" in run([prefix / "bin" / "cairn", name, "--help"])


def test_job_control_asks_the_command_it_was_installed_with(prefix, tmp_path):
    """With nothing of the source tree, and nothing on the path."""
    said = run([prefix / "bin" / "cairn", "clean", "--cache", tmp_path], env={"PATH": "/usr/bin:/bin"})
    assert "nothing of" in said
    assert not list(prefix.rglob("__pycache__"))
