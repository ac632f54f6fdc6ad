"""Programs that nobody changed, on the mount."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Dict, List

import pytest

for folder in ("python", "tests/nodes"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / folder))

from cluster import OPENMPI_SETTINGS, launcher_of  # noqa: E402
from mounts import run  # noqa: E402

FIO = """
[global]
directory={folder}
size={size}
verify=crc32c
verify_fatal=1
do_verify=1
{how}
[sequential]
rw=write
{large}
[random]
rw=randwrite
{small}
[mixed]
rw=randrw
bs=4k
"""
ODD_SIZES = {"large": "bsrange=64-256k\nbs_unaligned=1", "small": "bsrange=512-64k\nbs_unaligned=1"}
FIO_JOBS = {
    "psync": {"how": "ioengine=psync\nfsync=100", **ODD_SIZES},
    "mmap": {"how": "ioengine=mmap", **ODD_SIZES},
    "O_DIRECT": {"how": "ioengine=libaio\ndirect=1\niodepth=8", "large": "bs=128k", "small": "bs=8k"},
}


def digests(folder: Path) -> Dict[str, str]:
    """Of every file below a folder."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def make_tree(folder: Path, files: int) -> Dict[str, str]:
    """Folders, files of many sizes, a link of each kind, attributes."""
    for i in range(files):
        path = folder / f"d{i % 7}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(str(i).encode()).digest() * (i * i % 5000))
        path.chmod(0o600 + i % 64)
    (folder / "soft").symlink_to("d1/f1")
    os.link(folder / "d1/f1", folder / "hard")
    return digests(folder)


@pytest.mark.parametrize("kind", FIO_JOBS)
def test_fio_verifies_what_it_wrote(workshop, mode, kind, long, needs):
    mount = workshop.crfs("--mode", mode, "--pool", "4M", "--chunk", "256K", "--write", "1M")
    job = workshop.folder / "job.fio"
    job.write_text(FIO.format(folder=mount.path, size="256m" if long else "4m", **FIO_JOBS[kind]))
    output = run(needs("fio"), "--output-format=json", str(job), cwd=workshop.folder, patience_s=1800)
    jobs: List[dict] = json.loads(output[output.index("{"):])["jobs"]
    assert [job["error"] for job in jobs] == [0, 0, 0]
    assert all(job["read"]["io_bytes"] > 0 for job in jobs), "nothing was verified"
    assert mount.unmount() == 0


def test_git_clones_and_checks(mounted, needs, workshop):
    git = needs("git")
    config = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(workshop.folder)}
    origin = mounted.path / "origin"
    origin.mkdir()
    run(git, "init", "-q", cwd=origin, env=config)
    wrote = make_tree(origin, 60)
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.fsync=all")
    run(git, "add", ".", cwd=origin, env=config)
    run(git, *who, "commit", "-q", "-m", "one", cwd=origin, env=config)
    run(git, "clone", "-q", "--no-hardlinks", str(origin), "clone", cwd=mounted.path, env=config)
    run(git, "gc", "-q", cwd=mounted.path / "clone", env=config)
    run(git, "fsck", "--full", "--strict", cwd=mounted.path / "clone", env=config)
    assert run(git, "status", "--porcelain", cwd=mounted.path / "clone", env=config) == ""
    got = digests(mounted.path / "clone")
    assert {name: got.get(name) for name in wrote if not name.startswith(".git")} == {
        name: digest for name, digest in wrote.items() if not name.startswith(".git")}


@pytest.mark.parametrize("journal", ["delete", "truncate", "wal"])
def test_sqlite_keeps_its_integrity(mounted, journal, needs):
    script = f"""
PRAGMA journal_mode={journal};
CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000)
  INSERT INTO t SELECT i, hex(randomblob(50)) FROM n;
CREATE INDEX tv ON t(v);
BEGIN; UPDATE t SET v = v || 'x' WHERE id % 3 = 0; COMMIT;
BEGIN; DELETE FROM t WHERE id % 5 = 0; ROLLBACK;
DELETE FROM t WHERE id % 7 = 0;
VACUUM;
"""
    sqlite = needs("sqlite3")
    assert journal in run(sqlite, "base.db", script, cwd=mounted.path)
    check = "PRAGMA integrity_check; SELECT count(*) FROM t; SELECT count(*) FROM t WHERE v LIKE '%x';"
    expected = f"ok\n{3000 - 3000 // 7}\n{sum(1 for i in range(1, 3001) if i % 3 == 0 and i % 7 != 0)}\n"
    assert run(sqlite, "base.db", check, cwd=mounted.path) == expected
    assert mounted.unmount() == 0
    assert run(sqlite, "base.db", check, cwd=mounted.backing) == expected


def test_hdf5_reads_what_it_wrote(mounted):
    h5py = pytest.importorskip("h5py", reason="NOT RUN: python3-h5py is not installed")
    numpy = pytest.importorskip("numpy")
    with h5py.File(mounted.path / "a.h5", "w") as file:
        chunked = file.create_dataset("chunked", (200, 1000), chunks=(7, 130), compression="gzip", dtype="f8")
        for row in range(200):
            chunked[row] = numpy.arange(1000) * row
        file.create_dataset("grows", (0,), maxshape=(None,), chunks=(100,), dtype="i4")
        for part in range(20):
            file["grows"].resize(((part + 1) * 333,))
            file["grows"][part * 333:] = part
        file.flush()
        with h5py.File(mounted.path / "b.h5", "w") as other:
            file.copy("chunked", other)
    for path in (mounted.path / "a.h5", mounted.path / "b.h5"):
        with h5py.File(path, "r") as file:
            assert (file["chunked"][:] == numpy.outer(numpy.arange(200), numpy.arange(1000))).all()
    with h5py.File(mounted.path / "a.h5", "r+") as file:
        assert (file["grows"][:] == numpy.repeat(numpy.arange(20), 333)).all()


def test_tar_and_rsync_copy_trees_both_ways(mounted, workshop, needs):
    tar, rsync = needs("tar"), needs("rsync")
    outside = workshop.new_folder("outside")
    wrote = make_tree(outside, 80)
    run(tar, "-cf", mounted.path / "a.tar", "-C", outside, ".", cwd=outside)
    (mounted.path / "untarred").mkdir()
    run(tar, "-xf", mounted.path / "a.tar", "-C", mounted.path / "untarred", cwd=outside)
    assert digests(mounted.path / "untarred") == wrote
    run(tar, "-df", mounted.path / "a.tar", "-C", mounted.path / "untarred", cwd=outside)
    run(rsync, "-aHX", "--inplace", f"{outside}/", f"{mounted.path}/synced", cwd=outside)
    (outside / "d3/f3").write_bytes(b"changed" * 1000)
    run(rsync, "-aHX", "--no-whole-file", "--inplace", f"{outside}/", f"{mounted.path}/synced", cwd=outside)
    run(rsync, "-aHX", f"{mounted.path}/synced/", f"{outside}/back", cwd=outside)
    assert digests(outside / "back") == digests(mounted.path / "synced")
    assert os.stat(mounted.path / "synced/hard").st_nlink == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root, to keep owners")
def test_rsync_copies_access_control_lists(mounted, workshop, needs):
    rsync, setfacl, getfacl = needs("rsync"), needs("setfacl"), needs("getfacl")
    outside = workshop.new_folder("outside")
    (outside / "folder").mkdir()
    (outside / "folder/file").write_bytes(b"1")
    run(setfacl, "-m", "u:bin:r-x,g:daemon:rw-", "folder/file", cwd=outside)
    run(setfacl, "-d", "-m", "u:daemon:rwx", "folder", cwd=outside)
    run(rsync, "-aA", f"{outside}/", f"{mounted.path}/copy", cwd=outside)
    run(rsync, "-aA", f"{mounted.path}/copy/", f"{outside}/back", cwd=outside)
    lists = [run(getfacl, "-R", "folder", cwd=top)
             for top in (outside, mounted.path / "copy", mounted.backing / "copy", outside / "back")]
    assert "user:bin:r-x" in lists[0] and "default:user:daemon:rwx" in lists[0] and lists == lists[:1] * 4


@pytest.mark.parametrize("io", ["romio321", "ompio"])
def test_mpi_io_writes_one_file_from_all_ranks(mounted, build, io):
    program, launcher = build / "tests/crfs/mpi_io", launcher_of("openmpi")
    if not program.exists() or not launcher:
        pytest.skip("NOT RUN: Open MPI is not installed")
    run(launcher, "--mca", "io", io, "-np", "4", str(program), str(mounted.path / "shared"), cwd=mounted.path,
        env=OPENMPI_SETTINGS)
    assert (mounted.path / "shared").stat().st_size == 4 * 64 * 10007
