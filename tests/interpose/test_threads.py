"""A program with many threads; also under the thread sanitizer, with the preloaded library that is built for it."""

from __future__ import annotations

from pathlib import Path

from conftest import Place


def test_threads_and_children_find_what_they_wrote(place: Place, build: Path) -> None:
    with place.hold():
        done = place.run(build / "tests/interpose/interpose_threads", place.prefix)
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
        assert len(place.cached()) == 6 * 30 and place.plain() == []  # each thread deletes every other file
