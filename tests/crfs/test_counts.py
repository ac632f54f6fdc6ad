"""What the writes of a checkpoint are turned into: counts, which are the same on every machine."""

import json
import subprocess

import pytest

REQUESTS = 7800  # of the 8 processes of LU.C.64; the kernel cuts the large ones
BYTES = 8 * 23_000_000
MERGE_FACTOR_AT_LEAST = 43


def checkpoint(build, folder, *more):
    command = [str(build / "tests/crfs/crfs_replay"), "write", str(folder), "8", str(BYTES // 8), *more]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300).stdout)


@pytest.mark.crfs_only
@pytest.mark.parametrize("delay_us", [0, 500])
def test_a_checkpoint_of_lu_c_64_is_merged(workshop, build, delay_us):
    slow = workshop.slowfs("--delay-us", str(delay_us))
    mount = workshop.crfs(backing=slow.path)
    assert checkpoint(build, mount.path)["writes"] == REQUESTS
    stats = mount.stats()
    assert stats["writes_in"] >= REQUESTS and stats["bytes_in"] == stats["bytes_out"] == BYTES
    assert stats["merge_factor"] >= MERGE_FACTOR_AT_LEAST
    assert stats["merge_factor"] == pytest.approx(stats["writes_in"] / stats["writes_out"], rel=0.01)
    assert stats["errors"] == stats["pool_used_bytes"] == 0
    # As the backing file system sees it, whose requests are of a MiB at most.
    assert slow.counts()["write"] <= stats["writes_out"] + BYTES / (1 << 20)


@pytest.mark.crfs_only
def test_in_writeback_mode_the_kernel_merges_first(workshop, build):
    mount = workshop.crfs("--mode", "writeback")
    checkpoint(build, mount.path)
    stats = mount.stats()
    assert stats["bytes_in"] >= BYTES and stats["writes_in"] < REQUESTS / 10
    assert REQUESTS / stats["writes_out"] >= MERGE_FACTOR_AT_LEAST


@pytest.mark.crfs_only
def test_the_pool_is_not_exceeded(workshop, build):
    slow = workshop.slowfs("--delay-us", "1000")
    mount = workshop.crfs("--pool", "8M", "--chunk", "1M", backing=slow.path)
    checkpoint(build, mount.path)
    assert 0 < mount.stats()["pool_most_bytes"] <= 8 << 20
