"""The page in a real browser: it is laid out, at every width, light and dark, and no name of a log runs."""

import html
import json
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cairn.job_log import read_log
from cairn.reporting.history import history_of
from cairn.reporting.page import page_of
from logs import Log, eventful

WIDTHS = [320, 400, 1400]
# In a copy of the page: what it measures of itself.
PROBE = """<script>addEventListener("load", () => {
  const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.right, r.width, r.height] };
  const all = s => [...document.querySelectorAll(s)];
  const printed = {
    width: innerWidth, scroll: document.documentElement.scrollWidth, scripts: document.scripts.length,
    title: document.title, ground: getComputedStyle(document.body).backgroundColor,
    texts: all("h1,h2,h3,p,li,th,td,caption").filter(e => e.textContent.trim()).map(box),
    outside: all("main *").filter(e => !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + .5)
      .map(e => e.outerHTML.slice(0, 200)),
    covered: Math.max(0, ...[...(document.querySelector(".bar")?.querySelectorAll("rect") ?? [])].map(e => box(e)[1])),
    pictures: all("svg").map(e => [e.getAttribute("class"), ...box(e),
      [...e.querySelectorAll("rect")].filter(r => box(r)[2] > 0 && box(r)[3] > 0 &&
        getComputedStyle(r).fill != "rgb(0, 0, 0)").length])};
  parent.document.getElementById("printed").textContent += JSON.stringify(printed) + "\\n" })</script>"""


@pytest.fixture
def browser() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium here")
    return found


def call(browser: str, folder: Path, page: Path, *options: str) -> str:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               "--disable-background-networking", f"--user-data-dir={folder / 'profile'}",
               "--virtual-time-budget=2000", *options, page.as_uri()]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60,
                          check=True).stdout


def probed(browser: str, folder: Path, text: str, *options: str) -> List[Dict[str, Any]]:
    """What the page tells of itself at each width. In frames, as a window of a browser has a least width."""
    inner = html.escape(text.replace("</body>", PROBE + "</body>"))
    frames = "".join(f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{inner}"></iframe>'
                     for width in WIDTHS)
    page = folder / "frames.html"
    page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><pre id="printed"></pre>{frames}')
    dumped = call(browser, folder, page, "--window-size=1600,1000", "--dump-dom", *options)
    printed = re.search(r'<pre id="printed">(.*?)</pre>', dumped, re.DOTALL)
    assert printed, dumped[:500]
    found = [json.loads(line) for line in html.unescape(printed.group(1)).splitlines()]
    assert [one["width"] for one in sorted(found, key=lambda one: one["width"])] == WIDTHS
    return sorted(found, key=lambda one: one["width"])


def page(folder: Path, log: Log) -> str:
    return page_of([history_of(str(folder), read_log(log.write(folder) / ".cairn" / "log.json").entries)], [], 1.8e9)


def test_text_and_pictures_are_laid_out_at_every_width(browser: str, tmp_path: Path) -> None:
    for printed in probed(browser, tmp_path, page(tmp_path, eventful())):
        width = printed["width"]
        assert printed["scroll"] <= width and printed["outside"] == [], (width, printed["outside"][:3])
        assert (printed["scripts"], printed["title"]) == (1, "Cairn report"), "a name has run"
        assert len(printed["texts"]) > 100
        assert all(w > 0 and h > 0 for _, _, w, h in printed["texts"])
        first = printed["pictures"][0]
        assert printed["covered"] == pytest.approx(first[2], abs=1), "the shares add up to the whole bar"
        kinds = [picture[0] for picture in printed["pictures"]]
        assert (kinds.count("bar"), kinds.count("meter"), kinds.count("steps"), kinds.count("tiny")) == (4, 5, 1, 3)
        for kind, left, _, wide, high, drawn in printed["pictures"]:
            assert wide >= (80 if kind in ("tiny", "meter") else width * 0.7) and left >= 0, (width, kind, wide)
            assert high >= 10 and drawn >= (1 if kind == "meter" else 3), (width, kind, high, drawn)


def test_the_empty_page_is_one_too(browser: str, tmp_path: Path) -> None:
    for printed in probed(browser, tmp_path, page(tmp_path, Log())):
        assert printed["scroll"] <= printed["width"] and printed["outside"] == []
        assert len(printed["texts"]) >= 6 and printed["pictures"] == []


def pixels(png: bytes) -> List[bytes]:
    """The lines of a picture of 8 bits a channel, without those who predict each other being undone: what is all of
    one colour is all zeros then."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
        data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    raw, step = zlib.decompress(data), 1 + width * {2: 3, 6: 4}[colour]
    assert len(raw) == height * step
    return [raw[i * step + 1:(i + 1) * step] for i in range(height)]


@pytest.mark.parametrize("options, ground", [((), "rgb(246, 247, 249)"), (("--force-dark-mode",), "rgb(18, 23, 29)")],
                         ids=["light", "dark"])
def test_it_is_light_or_dark_as_the_reader_has_it(browser: str, tmp_path: Path, options: "tuple[str, ...]",
                                                  ground: str) -> None:
    text = page(tmp_path, eventful())
    assert {printed["ground"] for printed in probed(browser, tmp_path, text, *options)} == {ground}
    plain = tmp_path / "plain.html"
    plain.write_text(text)
    call(browser, tmp_path, plain, "--window-size=1000,1600", f"--screenshot={tmp_path / 'page.png'}", *options)
    lines = pixels((tmp_path / "page.png").read_bytes())
    changing = sum(any(line) and len(set(line)) > 8 for line in lines)
    assert len(lines) == 1600 and changing > 400, f"{changing} lines show something"
