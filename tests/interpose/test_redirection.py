"""Where the files of programs are while they run, and after they have ended."""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import Place

F_SETSIG = 10  # of Linux; Python has no name for it


def test_checkpoints_are_in_the_cache_and_other_files_are_not(place: Place) -> None:
    with place.hold():
        listed = place.shell("mkdir deep; echo a >ckpt.1; echo b >deep/ckpt.2; echo c >other; ls -1 . deep; cat ckpt.1 deep/ckpt.2")
        assert listed.split() == [".:", "ckpt.1", "deep", "other", "deep:", "ckpt.2", "a", "b"]
        assert place.cached() == ["ckpt.1", "deep/ckpt.2"]
        assert place.plain() == ["other"]


def test_the_last_process_moves_them_to_their_places(place: Place) -> None:
    place.shell("mkdir deep; echo a >ckpt.1; echo b >deep/ckpt.2")
    assert place.plain() == ["ckpt.1", "deep/ckpt.2"] and place.cached() == []
    assert (place.prefix / "deep/ckpt.2").read_text() == "b\n"
    assert not (place.cache / "files/deep").exists()


def test_what_a_killed_program_left_is_found_and_moved_later(place: Place) -> None:
    done = place.run("bash", "-c", "echo a >ckpt.1; kill -9 $$")
    assert done.returncode == -9 and place.cached() == ["ckpt.1"] and place.plain() == []
    assert place.shell("cat ckpt.1") == "a\n"
    assert place.plain() == ["ckpt.1"] and place.cached() == []


def test_a_file_that_is_still_open_is_moved_by_a_later_process(place: Place) -> None:
    writer = subprocess.Popen(["bash", "-c", "exec 5>ckpt.1; echo early >&5; read; echo late >&5"], cwd=place.prefix,
                              env=place.environment(), stdin=subprocess.PIPE)
    while not (place.cache / "files/ckpt.1").exists():
        time.sleep(0.01)
    # As if the program had closed the lock with all other files.
    shutil.copy(place.cache / "lock", place.cache / "new")
    os.rename(place.cache / "new", place.cache / "lock")
    place.shell("echo b >ckpt.2")
    assert place.plain() == ["ckpt.2"] and place.cached() == ["ckpt.1"]
    writer.communicate(b"\n")
    place.shell("true")
    assert (place.prefix / "ckpt.1").read_text() == "early\nlate\n" and place.cached() == []


@pytest.mark.parametrize("temporary", ["temporary", "ckpt.99"])
def test_a_file_written_under_another_name_ends_in_the_cache(place: Place, temporary: str) -> None:
    with place.hold():
        assert place.shell(f"echo a >{temporary}; mv {temporary} ckpt.1; ls; cat ckpt.1") == "ckpt.1\na\n"
        assert place.cached() == ["ckpt.1"] and place.plain() == []


def test_a_renamed_file_that_is_no_checkpoint_any_more_leaves_the_cache(place: Place) -> None:
    with place.hold():
        place.shell("echo a >ckpt.1; mv ckpt.1 kept")
        assert place.cached() == [] and (place.prefix / "kept").read_text() == "a\n"


def test_a_renamed_directory_takes_its_files_along(place: Place) -> None:
    place.patterns = [r"^(?!kept).*ckpt\.\d+$"]
    with place.hold():
        place.shell("mkdir a; echo 1 >a/ckpt.1; mv a b; cat b/ckpt.1; mkdir c; echo 2 >c/ckpt.2; mv c kept")
        assert place.cached() == ["b/ckpt.1"]
        assert place.plain() == ["kept/ckpt.2"]


def test_an_older_version_stays_in_its_place_until_the_newer_arrives(place: Place) -> None:
    (place.prefix / "ckpt.1").write_text("older")
    with place.hold():
        assert place.shell("echo newer >ckpt.1; cat ckpt.1") == "newer\n"
        assert (place.prefix / "ckpt.1").read_text() == "older"
    place.shell("true")
    assert (place.prefix / "ckpt.1").read_text() == "newer\n"


def test_what_is_deleted_is_deleted_in_both_places(place: Place) -> None:
    (place.prefix / "ckpt.1").write_text("older")
    with place.hold():
        assert place.shell("echo newer >ckpt.1; rm ckpt.1; ls") == ""
        assert place.cached() == [] and place.plain() == []


def test_a_symbolic_link_finds_its_target_without_the_library(place: Place) -> None:
    with place.hold():
        place.shell("mkdir d; echo a >ckpt.1; echo b >d/ckpt.2; ln -s ckpt.1 latest; ln -s d newest; cat latest newest/ckpt.2")
        assert (place.prefix / "latest").read_text() == "a\n" and (place.prefix / "newest/ckpt.2").read_text() == "b\n"


def test_another_name_of_the_directory_leads_to_the_same_files(place: Place) -> None:
    os.symlink("run", place.prefix.parent / "other_name")
    with place.hold():
        done = place.run("bash", "-c", f"mkdir a; ln -s a b; echo 1 >b/ckpt.1; cat a/ckpt.1 $PWD/a/../b/ckpt.1; "
                         f"cd b; cat ckpt.1 ../a/ckpt.1; cat {place.prefix.parent}/other_name/a/ckpt.1")
        assert done.stdout == "1\n" * 4 and place.cached() == ["a/ckpt.1"]


def test_a_pattern_with_a_directory_holds_for_relative_paths(place: Place) -> None:
    place.patterns = [r"^in/ckpt\.\d+$"]
    with place.hold():
        place.python("""
import os
os.mkdir('in')
def write(path, **more): os.close(os.open(path, os.O_WRONLY | os.O_CREAT, **more))
write('ckpt.1')
os.chdir('in')
write('ckpt.2')
directory = os.open('.', os.O_RDONLY)
os.chdir('..')
write('ckpt.3')
write('ckpt.4', dir_fd=directory)
os.fchdir(directory)
write('ckpt.5')
write('../ckpt.6')
""")
        assert place.cached() == ["in/ckpt.2", "in/ckpt.4", "in/ckpt.5"]
        assert place.plain() == ["ckpt.1", "ckpt.3", "ckpt.6"]


def test_a_pattern_with_a_directory_holds_after_the_working_directory_was_renamed(place: Place) -> None:
    place.patterns = [r"^(?<step>\d+)/ckpt$"]
    with place.hold():
        place.python("""
import os
os.mkdir('new')
os.mkdir('other')
os.chdir('new')
open('plain', 'w')
os.rename('../new', '../1')
open('ckpt', 'w')
os.chdir('../other')
open('plain', 'w')
import ctypes
assert ctypes.CDLL(None).renameat2(-100, b'../other', -100, b'../1', 2) == 0
open('ckpt', 'w')
""")
        assert place.cached() == ["1/ckpt"] and "1/plain" in place.plain() and "other/ckpt" in place.plain()


def test_a_child_that_lives_longer_than_its_parent_moves_the_files(place: Place) -> None:
    read, write = os.pipe()
    program = f"import os, sys\nopen('ckpt.1', 'w').write('a')\nif os.fork() == 0: os.read({read}, 1)"
    parent = subprocess.Popen(["/usr/bin/python3", "-B", "-c", program], cwd=place.prefix, env=place.environment(), pass_fds=[read])
    assert parent.wait(timeout=60) == 0
    assert place.cached() == ["ckpt.1"] and place.plain() == []
    os.write(write, b"x")
    for _ in range(500):
        if place.plain() == ["ckpt.1"] and place.cached() == []:
            break
        time.sleep(0.02)
    assert place.plain() == ["ckpt.1"] and place.cached() == []


def test_a_child_counts_before_it_has_run(place: Place, build: Path) -> None:
    until = place.prefix.parent / "until"
    place.more = {"LD_PRELOAD": f"{place.library}:{build / 'tests/interpose/late_child_library.so'}", "LATE_CHILD_UNTIL": str(until)}
    program = "import os\nopen('ckpt.1', 'w').write('a')\nif os.fork() == 0: open('ckpt.2', 'w').write('b')"
    parent = subprocess.Popen(["/usr/bin/python3", "-B", "-c", program], cwd=place.prefix, env=place.environment())
    assert parent.wait(timeout=60) == 0
    assert place.cached() == ["ckpt.1"] and place.plain() == []
    until.touch()
    deadline = time.monotonic() + 30
    while place.plain() != ["ckpt.1", "ckpt.2"]:
        assert time.monotonic() < deadline, (place.plain(), place.cached())
        time.sleep(0.02)


def test_fortran_programs_work(place: Place) -> None:
    compiler = shutil.which("gfortran")
    if not compiler:
        pytest.skip("gfortran is missing")
    program = place.prefix.parent / "io"
    subprocess.run([compiler, Path(__file__).with_name("io.f90"), "-o", program], check=True)
    with place.hold():
        done = place.run(program)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")
        assert place.cached() == ["ckpt.1", "ckpt.2", "ckpt.3"] and place.plain() == ["plain.txt"]


def test_python_programs_work(place: Place) -> None:
    with place.hold():
        assert place.python("""
import glob, os, pathlib, shutil, subprocess, tempfile
open('ckpt.1', 'w').write('one')
os.makedirs('d/e')
pathlib.Path('d/e/ckpt.2').write_bytes(b'two')
with tempfile.NamedTemporaryFile(dir='.', delete=False) as file:
    file.write(b'three')
os.replace(file.name, 'ckpt.3')
shutil.copy2('ckpt.3', 'd/ckpt.4')
assert sorted(glob.glob('**/ckpt.*', recursive=True)) == ['ckpt.1', 'ckpt.3', 'd/ckpt.4', 'd/e/ckpt.2']
assert [(w, sorted(f)) for w, _, f in os.walk('d')] == [('d', ['ckpt.4']), ('d/e', ['ckpt.2'])]
assert {entry.name: entry.stat().st_size for entry in os.scandir('.') if entry.is_file()} == {'ckpt.1': 3, 'ckpt.3': 5}
assert os.path.getsize('ckpt.3') == 5 and os.path.realpath('ckpt.1') == os.getcwd() + '/ckpt.1'
assert subprocess.check_output(['cat', 'ckpt.2'], cwd='d/e') == b'two'
open('ckpt.1', 'a').write(' more')
assert open('ckpt.1').read() == 'one more'
shutil.rmtree('d')
print(sorted(os.listdir('.')))
""") == "['ckpt.1', 'ckpt.3']\n"
        assert place.cached() == ["ckpt.1", "ckpt.3"] and place.plain() == []


def test_numpy_and_hdf5_work(place: Place) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("h5py")
    place.patterns = [r"ckpt\.\d+\.(npy|h5)$"]
    with place.hold():
        place.python("""
import h5py, numpy
values = numpy.arange(1000.0)
numpy.save('ckpt.1.npy', values)
assert (numpy.load('ckpt.1.npy', mmap_mode='r') == values).all()
with h5py.File('ckpt.2.h5', 'w') as file: file['values'] = values
with h5py.File('ckpt.2.h5', 'a') as file: file['more'] = values[:3]
with h5py.File('ckpt.2.h5', 'r') as file: assert (file['values'][:] == values).all() and len(file['more']) == 3
""")
        assert place.cached() == ["ckpt.1.npy", "ckpt.2.h5"]


def test_children_of_a_program_with_threads_go_on_searching(place: Place) -> None:
    """What threads used for their search when their process forked does not exist in the child, and each child has children."""
    place.patterns = (r"^(a|aa)+[bc]$", r"ckpt\.(?<step>\d+)$")
    with place.hold():
        place.python("""
import os, signal, threading, time

def look(stops):
    while not stops:
        os.path.exists('a' * 40)

def level(number):
    signal.alarm(60)
    stops = []
    for _ in range(8):
        threading.Thread(target=look, args=(stops,), daemon=True).start()
    time.sleep(0.01)
    child = os.fork()
    if child:
        stops.append(True)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if number:
        level(number - 1)
    os._exit(0 if not os.path.exists('ckpt.1') else 1)

level(20)
""")


def test_a_listing_that_fails_is_no_shorter_listing(place: Place) -> None:
    """The kernel refuses to go on with a directory."""
    with place.hold():
        assert place.python("""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
numbers = {'x86_64': 217, 'aarch64': 61}  # of getdents64
open('ckpt.1', 'w').close()
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, numbers[os.uname().machine]), (0x06, 0, 0, 0x50000 | errno.EIO), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
found = ctypes.c_void_p()
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code)), 0, 0) != 0:
    print('no filters')
else:
    result = libc.scandir(b'.', ctypes.byref(found), None, None)
    print(result, errno.errorcode[ctypes.get_errno()])
""") in ("-1 EIO\n", "no filters\n")


@pytest.mark.parametrize("is_first", [True, False])
def test_another_library_that_wraps_the_same_calls_works_too(place: Place, build: Path, is_first: bool) -> None:
    other = build / "tests/interpose/other_library.so"
    libraries = [str(other), str(place.library)] if is_first else [str(place.library), str(other)]
    place.more = {"LD_PRELOAD": ":".join(libraries), "OTHER_PRINTS": "1"}
    with place.hold():
        done = place.run("/usr/bin/python3", "-B", "-c", "import ctypes; c = ctypes.CDLL(None); f = c.open(b'ckpt.1', 65, 0o600); "
                         "c.write(f, b'a', 1); c.close(f); c.rename(b'ckpt.1', b'ckpt.2')")
        assert done.returncode == 0 and done.stderr.startswith("other: opened ") and place.cached() == ["ckpt.2"], done


@pytest.mark.parametrize("more, words", [
    ({"CAIRN_WRAP_PATTERNS": "ckpt.("}, "the pattern 'ckpt.(' is wrong at character"),
    ({"CAIRN_WRAP_CACHE": "/proc/nowhere"}, "cannot create the cache /proc/nowhere/files"),
    ({"CAIRN_WRAP_CACHE": "relative"}, "names no absolute path"),
    ({"CAIRN_WRAP_CACHE": ""}, "names no absolute path"),
    ({"CAIRN_WRAP_PREFIX": ""}, "CAIRN_WRAP_PREFIX names no directory"),
])
def test_wrong_settings_leave_all_files_in_their_places(place: Place, more: dict, words: str) -> None:
    place.more = more
    done = place.run("/bin/bash", "-c", "echo a >ckpt.1")
    assert done.returncode == 0 and place.plain() == ["ckpt.1"]
    assert done.stderr.count("\n") == 1 and words in done.stderr and "all files stay in their plain places" in done.stderr


def test_a_cache_inside_of_the_prefix_directory_is_not_used(place: Place) -> None:
    place.cache = place.prefix / "cache"
    done = place.run("/bin/bash", "-c", "echo a >ckpt.1")
    assert place.plain() == ["ckpt.1"] and "is inside of the prefix directory" in done.stderr


def test_a_cache_that_others_may_write_to_is_not_used(place: Place) -> None:
    place.cache.mkdir()
    place.cache.chmod(0o777)
    done = place.run("/bin/bash", "-c", "echo a >ckpt.1")
    assert place.plain() == ["ckpt.1"] and "others may write to it" in done.stderr


def test_a_new_file_has_the_group_of_its_directory_and_the_rights_of_the_file_that_it_replaces(place: Place) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory to a group")
    os.chown(place.prefix, -1, 12345)
    place.prefix.chmod(0o2755)
    (place.prefix / "ckpt.2").write_text("older")
    (place.prefix / "ckpt.2").chmod(0o604)
    listed = place.shell("umask 027; echo a >ckpt.1; echo b >ckpt.2; stat -c '%n %a %g' ckpt.1 ckpt.2")
    assert listed == "ckpt.1 640 12345\nckpt.2 604 12345\n"
    found = {path.name: path.stat() for path in place.prefix.iterdir()}
    assert [(f"{state.st_mode & 0o777:o}", state.st_gid) for _, state in sorted(found.items())] == [("640", 12345), ("604", 12345)]


def test_a_program_that_closes_all_descriptors_keeps_its_own(place: Place) -> None:
    """It uses the number of the lock for a file, and forks."""
    with place.hold():
        place.python("""
import os
os.closerange(3, 1024)
file = os.open('data', os.O_RDWR | os.O_CREAT, 0o600)
for number in range(190, 260): os.dup2(file, number)
child = os.fork()
if child == 0: os._exit(sum(os.write(number, b'x') for number in range(190, 260)) != 70)
assert os.waitpid(child, 0)[1] == 0 and os.fstat(file).st_size == 70
open('ckpt.1', 'w').write('a')
""")
        assert place.cached() == ["ckpt.1"]


def test_what_is_written_after_a_wait_for_the_mover_is_not_lost(place: Place) -> None:
    """A process opens the file while another moves it: it gets a deleted file, unless it looks again."""
    with place.hold():
        place.shell("echo a >ckpt.1")
        cached = place.cache / "files/ckpt.1"
        with open(cached, "rb") as mover:
            fcntl.fcntl(mover, F_SETSIG, signal.SIGURG)
            fcntl.fcntl(mover, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            writer = subprocess.Popen(["bash", "-c", "echo b >>ckpt.1"], cwd=place.prefix, env=place.environment())
            while fcntl.fcntl(mover, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
                time.sleep(0.01)
            (place.prefix / "ckpt.1").write_bytes(mover.read())
            cached.unlink()
            fcntl.fcntl(mover, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        assert writer.wait(timeout=60) == 0
        assert (place.prefix / "ckpt.1").read_text() == "a\nb\n" and place.cached() == []


def test_a_program_with_more_rights_than_its_user_is_left_alone(place: Place) -> None:
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can make such a program")
    program = place.prefix.parent / "touch"
    shutil.copy(shutil.which("touch") or "", program)
    program.chmod(0o4755)
    place.prefix.parent.chmod(0o755)
    settings = [f"{name}={value}" for name, value in place.environment().items() if name == "LD_PRELOAD" or name.startswith("CAIRN_")]
    done = place.run("setpriv", "--reuid", "65534", "--clear-groups", "env", *settings, program, "ckpt.1", is_wrapped=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert place.plain() == ["ckpt.1"] and not place.cache.exists()


def test_a_full_cache_leaves_new_files_in_their_places(place: Place) -> None:
    with place.hold():
        place.shell("echo a >ckpt.1")
        place.more = {"CAIRN_WRAP_FREE_PERCENT": "101"}
        done = place.run("/bin/bash", "-c", "echo b >>ckpt.1; echo c >ckpt.2; echo d >ckpt.3; ls")
        assert done.stdout.split() == ["ckpt.1", "ckpt.2", "ckpt.3"] and done.returncode == 0
        assert done.stderr.count("\n") == 1 and "the cache is almost full" in done.stderr
        assert place.cached() == ["ckpt.1"] and place.plain() == ["ckpt.2", "ckpt.3"]
        assert (place.cache / "files/ckpt.1").read_text() == "a\nb\n"


def test_messages_do_not_get_into_a_file_of_the_program(place: Place) -> None:
    place.more = {"CAIRN_WRAP_FREE_PERCENT": "101"}
    place.run("/bin/bash", "-c", "exec 2>&-; exec 2>data; echo a >ckpt.1")
    assert (place.prefix / "data").read_text() == ""


def test_the_patterns_of_scr_are_understood(place: Place) -> None:
    place.patterns = []
    place.more = {"SCR_CHECKPOINT_PATTERN": "0-1:ckpt[.][0-9]+$,2-N:state", "OMPI_COMM_WORLD_RANK": "2"}
    with place.hold():
        place.shell("echo a >ckpt.1; echo b >state")
        assert place.cached() == ["state"]


def test_without_settings_nothing_is_done(place: Place) -> None:
    done = subprocess.run(["bash", "-c", "echo a >ckpt.1; ls"], cwd=place.prefix, text=True, capture_output=True, check=True,
                          env={**os.environ, "LD_PRELOAD": str(place.library)})
    assert done.stdout == "ckpt.1\n" and done.stderr == "" and place.plain() == ["ckpt.1"]


def test_an_open_file_cannot_get_a_name_that_is_no_checkpoint(place: Place) -> None:
    with place.hold():
        done = place.run("/usr/bin/python3", "-B", "-c", "import os\nf = open('ckpt.1', 'w')\nf.write('a')\nos.rename('ckpt.1', 'kept')")
        assert done.returncode == 1 and "while it is open" in done.stderr and "Device or resource busy" in done.stderr
        assert place.cached() == ["ckpt.1"]




CHANGES = {  # of a file with "whole" in it; what it holds then
    "append": ("open(NAME, 'a').write('+')", "whole+"),
    "update": ("open(NAME, 'r+').write('W')", "Whole"),
    "truncating open": ("open(NAME, 'w').write('new')", "new"),
    "open that empties for reading": ("os.close(os.open(NAME, os.O_RDONLY | os.O_TRUNC))", ""),
    "truncate": ("os.truncate(NAME, 2)", "wh"),
    "truncate to nothing": ("os.truncate(NAME, 0)", ""),
    "ftruncate": ("os.ftruncate(os.open(NAME, os.O_RDWR), 3)", "who"),
    "fopen": ("libc.fputs(b'+', libc.fopen(NAME.encode(), b'a')); libc.fflush(None)", "whole+"),
    "freopen": ("libc.fputs(b'+', libc.freopen(NAME.encode(), b'a', libc.fopen(b'/dev/null', b'r'))); libc.fflush(None)", "whole+"),
    "freopen that empties": ("libc.freopen(NAME.encode(), b'w', libc.fopen(b'/dev/null', b'r'))", ""),
    "mapping": ("m = mmap.mmap(os.open(NAME, os.O_RDWR), 0); m[0:1] = b'W'", "Whole"),
}
LIBC = """
import ctypes, mmap, os
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
NAME = 'ckpt.1'
"""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_file_leaves_the_checkpoint_that_has_it_whole(place: Place, change: str) -> None:
    """A checkpoint of an MPI program has the same file by a second name."""
    program, content = CHANGES[change]
    with place.hold():
        place.shell("printf whole >ckpt.1")
        (place.cache / "job").touch()
        os.link(place.cache / "files/ckpt.1", place.cache / "checkpoint")
        place.python(LIBC + program)
        assert (place.cache / "checkpoint").read_text() == "whole"
        assert (place.cache / "files/ckpt.1").read_text() == content


def test_a_call_that_fails_changes_no_file(place: Place) -> None:
    with place.hold():
        place.shell("printf whole >ckpt.1")
        (place.cache / "job").touch()
        os.link(place.cache / "files/ckpt.1", place.cache / "checkpoint")
        place.python(LIBC + """
for path, flags in (('ckpt.1', os.O_WRONLY | os.O_CREAT | os.O_EXCL), ('ckpt.1/', os.O_RDWR), ('ckpt.1', os.O_RDWR | os.O_DIRECTORY)):
    try: os.open(path, flags)
    except OSError: continue
    raise SystemExit(path)
for path, size in (('ckpt.1', -1), ('ckpt.1/', 0)):
    try: os.truncate(path, size)
    except OSError: continue
    raise SystemExit(path)
""")
        assert os.path.samefile(place.cache / "files/ckpt.1", place.cache / "checkpoint")


def test_a_link_that_the_program_made_itself_stays_one_file(place: Place) -> None:
    with place.hold():
        assert place.shell("echo a >ckpt.1; ln ckpt.1 ckpt.2; echo b >>ckpt.1; cat ckpt.2; echo c >ckpt.2; cat ckpt.1") == "a\nb\nc\n"


def test_two_processes_that_change_one_file_at_once_see_each_others_bytes(place: Place) -> None:
    with place.hold():
        (place.cache / "files").mkdir(mode=0o700, parents=True)
        (place.cache / "job").touch()
        for _ in range(20):
            (place.cache / "files/ckpt.1").write_text("whole")
            os.link(place.cache / "files/ckpt.1", place.cache / "checkpoint")
            place.shell("for i in 1 2 3 4; do { printf $i >>ckpt.1; } & done; wait")
            assert sorted((place.cache / "files/ckpt.1").read_text()) == sorted("whole1234")
            assert (place.cache / "checkpoint").read_text() == "whole"
            (place.cache / "checkpoint").unlink()


def test_a_file_that_becomes_part_of_a_checkpoint_while_it_is_opened_is_opened_again(place: Place, build: Path) -> None:
    with place.hold():
        place.shell("printf whole >ckpt.1")
        (place.cache / "job").touch()
        place.more = {"LD_PRELOAD": f"{place.library}:{build}/tests/interpose/linking_library.so", "LINK_TO": str(place.cache / "checkpoint")}
        assert place.shell("printf + >>ckpt.1") == ""
        assert (place.cache / "checkpoint").read_text() == "whole"
        assert (place.cache / "files/ckpt.1").read_text() == "whole+"


@pytest.mark.parametrize("change", ["printf + >ckpt.1", "printf + >>ckpt.1", "printf + 1<>ckpt.1"], ids=["emptied", "appended", "overwritten"])
def test_a_job_of_another_process_finds_that_a_file_is_about_to_be_changed(place: Place, build: Path, change: str) -> None:
    """It links the file in the last moment, and looks whether it is closed before it takes the checksums."""
    with place.hold():
        place.shell("printf whole >ckpt.1")
        (place.cache / "job").touch()
        place.more = {"LD_PRELOAD": f"{place.library}:{build}/tests/interpose/linking_library.so", "LINK_TO": str(place.cache / "checkpoint")}
        place.shell(change)
        assert (place.cache / "checkpoint").exists() and not (place.cache / "checkpoint.closed").exists()


@pytest.mark.parametrize("call", ["assert os.path.getsize('ckpt.1') == 13", "os.truncate('ckpt.1', 5)",
                                  "os.unlink('ckpt.1'); assert not os.path.exists('ckpt.1')"], ids=["stat", "truncate", "unlink"])
def test_a_call_on_a_file_that_is_moved_to_its_place_meanwhile_finds_it_there(place: Place, build: Path, call: str) -> None:
    (place.prefix / "ckpt.1").write_text("older")
    with place.hold():
        place.shell("printf 'the newer one' >ckpt.1")
        place.more = {"LD_PRELOAD": f"{place.library}:{build}/tests/interpose/linking_library.so",
                      "MOVE_FROM": str(place.cache / "files/ckpt.1"), "MOVE_TO": str(place.prefix / "ckpt.1")}
        place.python(f"import os\n{call}")
        assert place.cached() == []
        assert place.plain() == ([] if "unlink" in call else ["ckpt.1"])


def test_a_file_that_is_opened_again_has_the_lowest_free_descriptor(place: Place) -> None:
    with place.hold():
        place.shell("printf whole >ckpt.1")
        (place.cache / "job").touch()
        place.python("""import os, resource
lowest = os.dup(0); os.close(lowest)
for flags in (os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_APPEND):
    file = os.open("ckpt.1", flags)
    if file != lowest: raise SystemExit(f"{file} instead of {lowest}")
    os.close(file)
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
while True:
    try: os.dup(0)
    except OSError: break
os.close(lowest)
if os.open("ckpt.1", os.O_WRONLY | os.O_TRUNC) != lowest: raise SystemExit("not the last free one")
""")
