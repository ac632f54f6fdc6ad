"""What a node's login shell is given, which may be none that understands sh (tcsh, fish)."""

from __future__ import annotations

import base64


def for_any_shell(command: str) -> str:
    """The command for sh, as one simple command in words in which no shell finds anything to expand, nor pdsh a percent sign
    of its own."""
    return f"sh -c 'eval \"$(echo {base64.b64encode(command.encode()).decode()} | base64 -d)\"'"
