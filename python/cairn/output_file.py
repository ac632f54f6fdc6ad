"""Files that a user names for the output of a command."""

from __future__ import annotations

import sys
from pathlib import Path

from cairn.command_line import STANDARD_OUTPUT
from cairn.native import Trouble


def write(name: str, text: str) -> None:
    """Replaces the file as a whole, as a program may be reading the old one."""
    data, path = text.encode("utf-8", "replace"), Path(name)
    new = path.with_name(path.name + ".tmp") if path.name else path
    try:
        if name == STANDARD_OUTPUT:
            sys.stdout.buffer.write(data)
        elif path.exists() and not path.is_file():  # does not replace a pipe or /dev/null
            path.write_bytes(data)
        else:
            new.write_bytes(data)
            new.replace(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Trouble(f"{name}: {error.strerror}; name another file") from error
