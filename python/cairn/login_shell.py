"""Commands for the login shell of a node, which may not understand sh (tcsh, fish)."""

from __future__ import annotations

import base64


def for_any_shell(command: str) -> str:
    """Wraps a command for sh so that its words have nothing that any shell expands, and no percent sign for pdsh."""
    return f"sh -c 'eval \"$(echo {base64.b64encode(command.encode()).decode()} | base64 -d)\"'"
