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


@pytest.mark.parametrize("shape", SHAPES)
def test_fsx(workshop, mode, shape, seed, long, needs):
    fsx = needs("fsx")
    operations = 1_000_000 if long else 5_000
    mount = workshop.crfs("--mode", mode, *SHAPES[shape])
    settings = workshop.folder / "fsx.toml"
    settings.write_text(SETTINGS.format(length=1 << 20, largest=1 << 17))
    run = subprocess.run([fsx, "-f", str(settings), "-N", str(operations), "-S", str(seed),
                          "-P", str(workshop.folder), str(mount.path / "file")],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=12 * 3600 if long else 300)
    assert run.returncode == 0, run.stdout[-4000:]
    seen = (mount.path / "file").read_bytes()
    assert mount.unmount() == 0
    assert (mount.backing / "file").read_bytes() == seen
