"""Starting a launcher."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from cairn import loop


def test_a_launcher_that_cannot_be_guarded_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(group: int, patience_s: float) -> Any:
        (tmp_path / "group").write_text(str(group))
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    monkeypatch.setattr(loop, "guard_of", refuses)
    with pytest.raises(OSError):
        loop.Machine().launch(["sleep", "60"], dict(os.environ))
    with pytest.raises(ProcessLookupError):
        os.killpg(int((tmp_path / "group").read_text()), 0)
