"""A reader who types what a page shows, and looks at what comes."""

import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Callable, Dict, List

from page import Block, Step, apply_change, steps_of

PATIENCE_S = 60
STEP = re.compile(r"^step (\d+): (\S+)$")
# Messages of Cairn must name the nodes that the page names. Their words may change.
NODE = re.compile(r"\bn\d\b")


class Reader:
    """Has a home directory, a current directory and an environment, like a shell."""

    def __init__(self, home: Path, environment: Dict[str, str],
                 translate: Callable[[str], str]) -> None:
        self._directory = home / "work"
        self._directory.mkdir()
        self._state = home / "state"
        self._environment = {**os.environ, **environment, "HOME": str(home)}
        self._translate = translate

    @property
    def directory(self) -> Path:
        """Where the reader is."""
        return self._directory

    def follow(self, block: Block) -> None:
        """Does what the block says, and fails if anything else comes of it."""
        if block.language == "diff":
            path = self._directory / block.marks["file"]
            path.write_text(apply_change(path.read_text(), block.text))
        elif "file" in block.marks:
            (self._directory / block.marks["file"]).write_text(block.text)
        else:
            for step in steps_of(block):
                check_output(step, self.run(step))

    def run(self, step: Step) -> str:
        """What the command prints. The next command begins where this one has ended."""
        after = f'\ncode=$?; (pwd; env -0) > "{self._state}"; exit $code'
        process = subprocess.Popen(
            ["bash", "-c", self._translate(step.command) + after], cwd=self._directory, env=self._environment,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        guard = threading.Timer(PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL))
        guard.start()
        printed = read_until_interrupted(process, step)
        code = process.wait()
        guard.cancel()
        if step.is_interrupted:
            return printed  # each launcher has a code of its own for that, 0 among them
        assert code == 0, f"$ {step.command}\n{printed}ended with {code}"
        self._take_over_state()
        return printed

    def _take_over_state(self) -> None:
        directory, _, variables = self._state.read_text().partition("\n")
        self._directory = Path(directory)
        self._environment = dict(entry.split("=", 1) for entry in variables.split("\0") if "=" in entry)


def read_until_interrupted(process: "subprocess.Popen[str]", step: Step) -> str:
    """As a terminal does at Ctrl-C, interrupts all processes of the command; once."""
    printed = ""
    for line in process.stdout:
        printed += line
        if step.is_interrupted and line.rstrip() == step.output[-2]:
            os.killpg(process.pid, signal.SIGINT)
    return printed


def check_output(step: Step, printed: str) -> None:
    """What the page shows is what comes, as far as a reader would care."""
    account = f"$ {step.command}\n{printed}"
    lines = [line.rstrip() for line in printed.splitlines()]
    check_steps(step, [line for line in lines if STEP.match(line)], account)
    for shown in step.output:
        if shown.startswith("cairn"):
            speaker, nodes = shown.split(":")[0] + ":", set(NODE.findall(shown))
            assert any(line.startswith(speaker) and nodes <= set(NODE.findall(line)) for line in lines), (
                f"no line like '{shown}':\n{account}")
        elif not STEP.match(shown) and shown != "^C":
            assert shown in lines, f"no line '{shown}':\n{account}"


def check_steps(step: Step, came: List[str], account: str) -> None:
    """The same steps with the same values, but where a slow machine was interrupted at a later step."""
    shown = [line for line in step.output if STEP.match(line)]
    if step.is_interrupted:
        assert came[:len(shown)] == shown, account
        return
    assert set(came) <= set(shown) and came[-1:] == shown[-1:], account
    runs, runs_shown = runs_of(came), runs_of(shown)
    assert len(runs) == len(runs_shown), account
    for run, run_shown in zip(runs, runs_shown):
        assert run == list(range(run[0], run[-1] + 1, 10)), account
        assert run[0] == run_shown[0] or run[0] > run_shown[0] > 0, account
        assert len(run) > 1 or run == run_shown, f"nothing was left to compute:\n{account}"


def runs_of(lines: List[str]) -> List[List[int]]:
    """The numbers of the steps, cut where a run has gone back to continue."""
    runs: List[List[int]] = []
    for number in (int(STEP.match(line)[1]) for line in lines):
        if not runs or number <= runs[-1][-1]:
            runs.append([])
        runs[-1].append(number)
    return runs
