"""The pictures of the page: SVG that is stretched to the available width, and has no text for that reason."""

from __future__ import annotations

from html import escape
from typing import Dict, Iterable, List, Sequence, Tuple

from cairn.account import time_text
from cairn.reporting.history import PHASES, Run

WIDTH = 1000
# The smallest width of a shape. A narrower one is drawn with this width, unless the previous one of its kind covers it.
LEAST = 1.5


def _svg(kind: str, label: str, height: float, shapes: Iterable[str]) -> str:
    return (f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height:g}" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(label)}">{"".join(shapes)}</svg>')


def _rect(phase: str, x: float, width: float, y: float = 0, height: float = 26, title: str = "") -> str:
    about = f"<title>{escape(title)}</title>" if title else ""
    return (f'<rect class="p-{phase}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
            f"{about}</rect>")


def share_bar(seconds: Dict[str, float], label: str) -> str:
    """A bar with the shares of a whole."""
    total = sum(seconds.values())
    shapes: List[str] = []
    at = 0.0
    for phase, spent in seconds.items():
        width = WIDTH * spent / total if total > 0 else 0
        if width > 0:
            shapes.append(_rect(phase, at, width, title=f"{PHASES[phase]}: {time_text(spent)}"))
        at += width
    return _svg("bar", label, 26, shapes)


def meter(good: int, total: int) -> str:
    """A bar with one share of a whole."""
    width = WIDTH * good / total if total else 0
    return _svg("meter", f"{good} of {total}", 10, [_rect("flush", 0, width, height=10),
                                                    _rect("failed", width, WIDTH - width if total else 0, height=10)])


def lane(run: Run, longest_s: float, label: str) -> str:
    """The timeline of a run."""
    scale = WIDTH / longest_s if longest_s > 0 else 0
    shapes = [_rect("other", 0, max(LEAST, run.duration_s() * scale))]
    drawn: Dict[str, float] = {}
    order = list(PHASES)
    for span in sorted(run.spans, key=lambda span: (span.phase != "compute", span.from_s, order.index(span.phase))):
        x = (span.from_s - run.begun_s) * scale
        width = max(LEAST, (span.to_s - span.from_s) * scale)
        if x + width <= drawn.get(span.phase, -1.0) + LEAST / 2:
            continue
        drawn[span.phase] = x + width
        title = f"{span.name} {PHASES[span.phase]}: {time_text(span.to_s - span.from_s)}".strip()
        shapes.append(_rect(span.phase, max(0.0, x), width, title=title))
    return _svg("bar", label, 26, shapes)


def binned(values: Sequence[Tuple[float, ...]], most: int) -> List[Tuple[float, ...]]:
    """Reduces the values to at most `most`, each the mean of some neighbours, so that a picture of thousands is no larger
    than one of hundreds."""
    if len(values) <= most:
        return list(values)
    found = []
    for i in range(most):
        part = values[len(values) * i // most:len(values) * (i + 1) // most]
        found.append(tuple(sum(one[k] for one in part) / len(part) for k in range(len(values[0]))))
    return found


def columns(stacks: Sequence[Tuple[float, ...]], phases: Sequence[str], kind: str, label: str) -> str:
    """One column for each stack of parts."""
    height = 120.0
    highest = max((sum(stack) for stack in stacks), default=0.0)
    width = WIDTH / max(len(stacks), 12)
    shapes = []
    for i, stack in enumerate(stacks):
        top = height
        for phase, value in zip(phases, stack):
            part = height * value / highest if highest > 0 else 0
            top -= part
            shapes.append(_rect(phase, i * width + width * .1, width * .8, top, part))
    return _svg(kind, label, height, shapes)
