"""fsx: random operations on one file, each read compared with what must be there."""

import subprocess

import pytest

# Every operation that it has but those of FreeBSD.
SETTINGS = """
flen = {length}
[opsize]
max = {largest}
[weights]
close_open = 1
invalidate = 1
read = 10
write = 20
mapread = 5
mapwrite = 5
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = 1
punch_hole = 2
sendfile = 2
posix_fadvise = 1
copy_file_range = 2
"""
SHAPES = {
    "default": (),
    "tight": ("--pool", "128K", "--chunk", "64K", "--write", "64K", "--threads", "1"),
}

# fsx 0.3.2 never gives back what it maps to read: with some 600,000 operations in one process it has more mappings than
# the kernel allows, and each truncation before that goes through all of them.
OPERATIONS_OF_A_RUN = 20_000


@pytest.mark.parametrize("shape", SHAPES)
def test_fsx(workshop, mode, shape, seed, long, needs):
    fsx = needs("fsx")
    runs, operations = (50, OPERATIONS_OF_A_RUN) if long else (1, 5_000)
    mount = workshop.crfs("--mode", mode, *SHAPES[shape])
    settings = workshop.folder / "fsx.toml"
    settings.write_text(SETTINGS.format(length=1 << 20, largest=1 << 17))
    for number in range(runs):
        run = subprocess.run([fsx, "-f", str(settings), "-N", str(operations), "-S", str(seed * 1000 + number),
                              "-P", str(workshop.folder), str(mount.path / "file")],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        assert run.returncode == 0, run.stdout[-4000:]
    seen = (mount.path / "file").read_bytes()
    assert mount.unmount() == 0
    assert (mount.backing / "file").read_bytes() == seen
