"""The native commands, as processes that may be killed."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List

from checkpointing import Job


class Commands:
    """The native commands, on a node of a job or beside it."""

    def __init__(self, build: Path, job: Job) -> None:
        self.cairn = str(build / "src" / "tools" / "cairn")
        self.job = job

    def start(self, node: str, *words: str) -> "subprocess.Popen[str]":
        environment = self.job.cluster.environment({"SCR_NODE_NAME": node, "CAIRN_LOG_JSON": "1"})
        return subprocess.Popen([self.cairn, *words], env=environment, text=True,
                                cwd=self.job.cluster.prefix, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, node: str, *words: str, code: int = 0, or_code: int = 0) -> Dict[str, object]:
        with self.start(node, *words, "--json") as process:
            output, errors = process.communicate(timeout=60)
        assert process.returncode in (code, or_code or code), (words, output, errors)
        return json.loads(output) if output else {}

    def run_at_once(self, nodes: List[str], *words: str) -> None:
        processes = [self.start(node, *words) for node in nodes]
        for process in processes:
            output, errors = process.communicate(timeout=60)
            assert process.returncode == 0, (words, output, errors)

    def killed(self, node: str, after_s: float, *words: str) -> bool:
        """False if it had ended before that."""
        with self.start(node, *words) as process:
            time.sleep(after_s)
            ended = process.poll() is not None
            process.kill()
            process.communicate(timeout=60)
        return not ended

    def scavenge(self, nodes: List[str]) -> None:
        for node in nodes:
            self.run(node, "scavenge-node")

    def outcomes(self, code: int = 0) -> Dict[str, str]:
        """By the dataset's number."""
        printed = self.run("n0", "rebuild", code=code)
        return {str(each["number"]): each["outcome"] for each in printed["datasets"]}  # type: ignore


    def logged(self) -> List[Dict[str, Any]]:
        """What these have printed for programs, beside what the job has."""
        log = self.job.cluster.prefix / ".cairn" / "log.json"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [line for line in lines if (line.get("event") or line["transfer"]).startswith(("SCAVENGE", "PUBLISH"))]
