"""What the kernel keeps of files for those who read them, while others write."""

import os

import pytest

from mounts import other_kernel

PAGE = 4096


@pytest.mark.crfs_only
@pytest.mark.parametrize("older", [False, True])
def test_who_only_writes_passes_the_cache_by_where_the_kernel_drops_what_it_had(workshop, build, older):
    """Linux before 6.6 does not; there such writes must be in the cache, or readers would not see them."""
    as_if = other_kernel(build, MINOR="38")
    slow = workshop.slowfs("--direct")
    mount = workshop.crfs(backing=slow.path, environment=as_if if older else None)
    (mount.path / "file").write_bytes(b"1" * PAGE)
    reader, writer = (os.open(mount.path / "file", how) for how in (os.O_RDONLY, os.O_WRONLY))
    assert os.pread(reader, PAGE, 0) == b"1" * PAGE
    os.pwrite(writer, b"2" * PAGE, 0)
    os.fsync(writer)
    before = slow.counts().get("read", 0)
    assert os.pread(reader, PAGE, 0) == b"2" * PAGE
    assert (slow.counts().get("read", 0) == before) == older
    os.close(writer)
    os.close(reader)
    appender = os.open(mount.path / "file", os.O_WRONLY | os.O_APPEND)
    os.write(appender, b"3" * 10)
    assert (mount.path / "file").read_bytes() == b"2" * PAGE + b"3" * 10
    os.close(appender)
    assert (slow.backing / "file").read_bytes() == b"2" * PAGE + b"3" * 10
