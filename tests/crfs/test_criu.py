"""A process checkpointer that nobody changed, where it works: its images are written to the mount and read from there."""

import subprocess

import pytest

from mounts import run

COUNTER = "i=0; while :; do i=$((i+1)); echo $i > {file}; sleep 0.01; done"


def test_criu_dumps_a_process_onto_the_mount_and_restores_it(mounted, needs, workshop):
    criu = needs("criu")
    check = subprocess.run([criu, "check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check.returncode != 0:
        pytest.skip("NOT RUN: criu does not work here: " + " | ".join(check.stdout.strip().splitlines()))
    images, counter = mounted.path / "images", workshop.folder / "count"
    images.mkdir()
    process = subprocess.Popen(["setsid", "sh", "-c", COUNTER.format(file=counter)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run("sh", "-c", f"until [ -s {counter} ]; do sleep 0.01; done", cwd=mounted.path)
        run(criu, "dump", "-t", str(process.pid), "-D", str(images), "--shell-job", cwd=mounted.path)
        process.wait(10)
        stopped_at = int(counter.read_text())
        run(criu, "restore", "-d", "-D", str(images), "--shell-job", cwd=mounted.path)
        run("sh", "-c", f"until [ $(cat {counter}) -gt {stopped_at} ]; do sleep 0.01; done", cwd=mounted.path)
    finally:
        subprocess.run(["kill", "-9", str(process.pid)], stderr=subprocess.DEVNULL)
