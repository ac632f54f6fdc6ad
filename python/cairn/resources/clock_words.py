"""Durations in the notation of resource managers."""

from __future__ import annotations

import re
from typing import Optional

_SPAN = re.compile(r"^(?:(?P<days>\d+)-)?(?P<fields>\d+(?::\d+){0,2})$")


def seconds_of(text: str, last: str) -> Optional[int]:
    """"1-02:03:04" is a day, two hours, three minutes and four seconds. `last`: what the last field counts, "s" or "min".
    With days before them, the fields begin with hours. None for other text ("UNLIMITED", "INVALID", "-")."""
    match = _SPAN.match(text.strip())
    if not match:
        return None
    fields = [int(field) for field in match["fields"].split(":")]
    days = int(match["days"] or 0)
    if match["days"]:
        hours, minutes, seconds = (fields + [0, 0])[:3]
    elif last == "min":
        hours, minutes, seconds = ([0, 0] + fields)[-2:] + [0]
    else:
        hours, minutes, seconds = ([0, 0] + fields)[-3:]
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
