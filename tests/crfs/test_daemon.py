"""What the daemon outlives, and how it ends."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mounts import PATIENCE_S, Workshop, detach, is_mount, other_kernel

pytestmark = pytest.mark.crfs_only
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to raise limits")
KIB = 1 << 10


def unsynced(path, data: bytes) -> int:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(file, data)
    return file


@pytest.fixture
def dead_mount(mount) -> Path:
    """A mount whose daemon was killed."""
    mounted = mount()
    mounted.kill()
    time.sleep(1.1)  # for so long the kernel keeps what it knows of names
    return mounted.path


def said_by(command: list, settings: dict) -> str:
    """All that it prints, whatever its exit code is."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SCR_", "CAIRN_"))}
    done = subprocess.run(command, env={**environment, "SCR_JOB_ID": "dead", **settings}, cwd="/", text=True, timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize("caller, dead_part", [("doctor", "prefix"), ("doctor", "cache"), ("run", "prefix"),
                                               ("SCR_Init", "prefix"), ("SCR_Init", "cache")])
def test_a_dead_mount_is_named_to_users_of_cairn(build, dead_mount, tmp_path, caller, dead_part):
    places = {"prefix": tmp_path, "cache": tmp_path, dead_part: dead_mount / "below"}
    settings = {"SCR_PREFIX": str(places["prefix"]), "SCR_CACHE_BASE": str(places["cache"]), "SCR_CNTL_BASE": str(tmp_path)}
    programs = sorted(build.glob("examples/*/2_heat"))
    if caller == "SCR_Init" and not programs:
        pytest.skip("no MPI was built for")
    commands = {"doctor": [build / "src/tools/cairn", "doctor"],
                "run": [build / "src/tools/cairn", "run", "mpirun", "-n", "1", "true"],
                "SCR_Init": [programs[0] if programs else "", "--size", "1", "--steps", "1"]}
    assert f"fusermount3 -u {dead_mount}" in said_by(commands[caller], settings)


def test_a_limit_on_the_length_of_files_is_an_error_of_the_file(mount):
    mounted = mount()
    resource.prlimit(mounted.process.pid, resource.RLIMIT_FSIZE, (64 * KIB, 64 * KIB))
    short, long = unsynced(mounted.path / "short", b"1" * KIB), unsynced(mounted.path / "long", b"1" * 100 * KIB)
    with pytest.raises(OSError) as told:
        os.close(long)
    assert told.value.errno == errno.EFBIG
    os.close(short)
    assert (mounted.backing / "short").read_bytes() == b"1" * KIB
    assert mounted.unmount() == 0


def test_the_limits_of_who_mounts_are_not_those_of_programs(build, workshop):
    backing, path = workshop.new_folder("backing"), workshop.new_folder("mount")
    try:
        subprocess.run(["sh", "-c", 'ulimit -S -f 1; exec "$@"', "sh", build / "src/crfs/crfs", "--mode", "direct",
                        backing, path], check=True)
        os.close(unsynced(path / "file", b"1" * 100 * KIB))
        assert (backing / "file").stat().st_size == 100 * KIB
    finally:
        detach(path)


@ROOT_ONLY
def test_nobody_need_listen_to_the_daemon(build, workshop):
    """It has something to tell while data are on their way, and stderr is a pipe that nobody reads."""
    backing, path = workshop.new_folder("backing"), workshop.new_folder("mount")
    daemon = subprocess.Popen([build / "src/crfs/crfs", "-f", "--mode", "direct", "--stats", backing, path],
                              stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + PATIENCE_S
        while not is_mount(path):
            assert time.monotonic() < end
            time.sleep(0.01)
        file = unsynced(path / "file", b"1" * KIB)
        daemon.stderr.close()
        limit = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (40, limit[1]))
        with pytest.raises(OSError) as told:
            for number in range(100):
                (path / f"more{number}").mkdir()
        assert told.value.errno == errno.ENFILE
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limit)  # without any UBSan sees errors that are none
        os.close(file)
        assert (backing / "file").read_bytes() == b"1" * KIB
        subprocess.run(["fusermount3", "-u", path], check=True)
        assert daemon.wait(PATIENCE_S) == 0
    finally:
        detach(path)
        daemon.kill()
        daemon.wait()


def test_an_unexpected_end_of_the_mount_is_reported(build, mount, workshop):
    fails = workshop.folder / "fails"
    mounted = mount(environment=other_kernel(build, FAILS=str(fails)))
    file = unsynced(mounted.path / "file", b"1" * KIB)
    fails.touch()
    for _ in range(2):  # who waits for a request gets one more
        try:
            os.stat(mounted.path / "other")
        except OSError:
            pass
    assert mounted.wait() == 1
    assert str(mounted.path) in mounted.said()
    assert (mounted.backing / "file").read_bytes() == b"1" * KIB, "all that was written is there all the same"
    os.dup2(os.open(os.devnull, os.O_WRONLY), file)


@pytest.mark.parametrize("what, named", [("is killed", "ended with -6"), ("has a race", "ThreadSanitizer")])
def test_a_daemon_that_fails_unasked_fails_its_test(build, what, named):
    workshop = Workshop(build, mode="direct")
    mounted = workshop.crfs()
    if what == "is killed":
        mounted.signal(signal.SIGABRT)
        mounted.process.wait(PATIENCE_S)
    else:
        mounted.path.with_suffix(".told").write_text("WARNING: ThreadSanitizer: data race\n")
    with pytest.raises(AssertionError, match=named):
        workshop.close()
    assert not is_mount(mounted.path) and not workshop.folder.exists()


def test_the_unit_of_the_guide_mounts_again_after_a_killed_daemon(build, workshop):
    guide = (Path(__file__).resolve().parents[2] / "docs/guides/gather-small-writes.md").read_text(encoding="utf-8")
    unit = dict(line.split("=", 1) for line in guide.split("[Service]")[1].split("[Install]")[0].splitlines() if "=" in line)
    assert unit["Type"] == "forking" and unit["ExecStartPre"].startswith("-"), "nothing may be there to be unmounted"
    backing, path = workshop.new_folder("backing"), workshop.new_folder("mount")
    places = {"/usr/bin/crfs": build / "src/crfs/crfs", "/usr/bin/fusermount3": shutil.which("fusermount3"),
              "/scratch": backing, "/ckpt": path}
    before, start = ([str(places.get(word, word)) for word in unit[name].lstrip("-").split()]
                     for name in ("ExecStartPre", "ExecStart"))
    try:
        for _ in range(2):
            subprocess.run(before, check=False, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
            subprocess.run(start, check=True, timeout=PATIENCE_S)
            assert is_mount(path)
            (path / "file").write_bytes(b"1")
            daemons = [number for number in filter(str.isdigit, os.listdir("/proc"))
                       if str(path).encode() in command_of(number)]
            assert len(daemons) == 1
            os.kill(int(daemons[0]), signal.SIGKILL)
            wait_until_gone(daemons[0])
    finally:
        detach(path)


@ROOT_ONLY
def test_the_line_of_the_guide_for_fstab_mounts_where_mount_finds_the_command(build, workshop):
    """By a link in /sbin, which is another one for mount(8) only."""
    alone = ["unshare", "--mount"]
    tried = subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", "/sbin"], check=False, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"NOT RUN: no mounts of one's own here (namespaces): {tried.stderr}")
    guide = (Path(__file__).resolve().parents[2] / "docs/guides/gather-small-writes.md").read_text(encoding="utf-8")
    line = next(line.split() for line in guide.splitlines() if line.split()[2:3] == ["crfs"])
    places = {"/scratch": workshop.new_folder("backing"), "/ckpt": workshop.new_folder("mount")}
    fstab = workshop.folder / "fstab"
    fstab.write_text(" ".join(str(places.get(word, word)) for word in line) + "\n")
    script = """
        set -e
        mount -t tmpfs tmpfs /sbin
        ln -s "$1" /sbin/
        mount --fstab "$2" "$3"
        echo data > "$3/file"
        "$4" -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.crfs.stats").decode())' "$3"
        umount "$3"
        """
    done = subprocess.run([*alone, "sh", "-c", script, "sh", build / "src/crfs/mount.crfs", fstab, places["/ckpt"],
                           sys.executable],
                          check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done
    assert '"writes_in"' in done.stdout
    assert (places["/scratch"] / "file").read_text() == "data\n"


def command_of(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""  # it has ended


def wait_until_gone(process: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while command_of(process):
        assert time.monotonic() < end
        time.sleep(0.01)
