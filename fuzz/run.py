"""Builds the fuzz targets and runs each for some time; README.md tells how the folders belong together.

    run.py [--seconds N] [--jobs N] [--keep] [--launcher ccache] [target ...]

Each target first replays its regressions, then starts from its corpus, from seeds that the encoders of
production make, and from what earlier runs found. A crash is told with the command that replays it. With
--keep the finds are merged into the corpus, and what crashed goes to the regressions; without, nothing is
written outside build/fuzz.
"""

import argparse
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterable, List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
PROGRAMS = BUILD / "fuzz"

# One input that takes longer, or more memory, is a defect.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048"]
MAX_INPUT_BYTES = 4096
# A corpus is committed, so it stays small: what reaches branches of the code that no seed reaches, however
# often. All finds stay in the build folder.
MERGE = ["-set_cover_merge=1", "-use_counters=0"]
CORPUS_FILES_MAX = 60
CORPUS_BYTES_MAX = 100_000


class Outcome(NamedTuple):
    """What a target did in its time."""
    target: str
    failures: List[str]
    executions: int = 0
    per_second: int = 0
    coverage: int = 0
    new_inputs: int = 0


class Target:
    """A target and its folders."""

    def __init__(self, name: str):
        self.name = name
        self.program = PROGRAMS / name
        self.corpus = ROOT / "fuzz" / "corpus" / name
        self.regressions = ROOT / "fuzz" / "regressions" / name
        self.finds = BUILD / "finds" / name
        self.seeds = BUILD / "seeds" / name
        self.crashes = BUILD / "crashes" / name

    def prepare(self) -> None:
        """Empty folders for what is made anew; finds stay from run to run."""
        for folder in (self.seeds, self.crashes):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.finds, self.crashes):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([self.program, f"--write-seeds={self.seeds}"], check=True)

    def sources(self) -> List[Path]:
        """Folders to start from, besides the finds."""
        return [folder for folder in (self.corpus, self.seeds) if folder.exists()]

    def replay(self, inputs: List[Path]) -> List[str]:
        """Runs inputs, each in a process of its own; a text for each that fails."""
        failures = []
        for path in inputs:
            done = run([self.program, *LIMITS, path])
            if done.returncode != 0:
                failures.append(failure_text(self.program, path, done.stderr))
        return failures

    def fuzz(self, seconds: int) -> Outcome:
        """One run from everything that is there."""
        self.prepare()
        failures = self.replay(files_in(self.regressions))
        log = BUILD / f"{self.name}.log"
        with log.open("w") as out:
            subprocess.run(
                [self.program, *LIMITS, f"-max_len={MAX_INPUT_BYTES}", f"-max_total_time={seconds}",
                 "-print_final_stats=1", f"-artifact_prefix={self.crashes}/",
                 self.finds, *self.sources()],
                stdout=out, stderr=subprocess.STDOUT, check=False)
        failures += self.replay(files_in(self.crashes))
        outcome = outcome_of(self.name, log.read_text(errors="replace"), failures)
        return outcome if outcome.executions or failures else outcome._replace(
            failures=[f"{self.name} did not run, see {log}"])

    def keep(self) -> None:
        """A small set of inputs that reaches, with the seeds, what all reach becomes the corpus."""
        merged = BUILD / "merged" / self.name
        shutil.rmtree(merged, ignore_errors=True)
        shutil.copytree(self.seeds, merged)  # what is there already is not merged again
        subprocess.run([self.program, *LIMITS, *MERGE, merged, *self.sources(), self.finds],
                       capture_output=True, check=True)
        shutil.rmtree(self.corpus, ignore_errors=True)
        self.corpus.mkdir(parents=True)
        for path in within_limits(set(files_in(merged)) - {merged / seed.name for seed in files_in(self.seeds)}):
            shutil.copy(path, self.corpus)
        for crash in files_in(self.crashes):
            self.regressions.mkdir(parents=True, exist_ok=True)
            shutil.copy(crash, self.regressions)


def run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def files_in(folder: Path) -> List[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def within_limits(paths: Iterable[Path]) -> List[Path]:
    """The smallest inputs, as many as a corpus may have."""
    kept, total = [], 0
    for path in sorted(paths, key=lambda path: (path.stat().st_size, path.name))[:CORPUS_FILES_MAX]:
        total += path.stat().st_size
        if total <= CORPUS_BYTES_MAX:
            kept.append(path)
    return kept


def failure_text(program: Path, path: Path, stderr: str) -> str:
    """What went wrong, in the words of the sanitizer or of expect(), and how to see it again."""
    reason = re.search(r"does not hold: .*|.*runtime error: .*|ERROR: .*|.*Assertion.*", stderr)
    return f"{reason.group() if reason else 'failed'}\n  replay: {program} {path}"


def outcome_of(name: str, log: str, failures: List[str]) -> Outcome:
    def statistic(key: str) -> int:
        found = re.search(rf"stat::{key}:\s+(\d+)", log)
        return int(found.group(1)) if found else 0
    coverage = re.findall(r"\bcov: (\d+)", log)
    return Outcome(name, failures, statistic("number_of_executed_units"),
                   statistic("average_exec_per_sec"), int(coverage[-1]) if coverage else 0,
                   statistic("new_units_added"))


def build(launcher: Optional[str], jobs: int) -> None:
    """Configures and builds the preset fuzz."""
    if shutil.which("clang++") is None:
        sys.exit("fuzzing needs clang++ and its run-time libraries: see packaging/debian-packages.txt")
    options = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX") if launcher]
    subprocess.run(["cmake", "--preset", "fuzz", *options], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "fuzz", "--parallel", str(jobs)], cwd=ROOT, check=True)


def target_names() -> List[str]:
    """As fuzz/CMakeLists.txt lists them."""
    return (PROGRAMS / "targets.txt").read_text().split()


def fuzz_all(names: List[str], seconds: int, jobs: int) -> List[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda name: Target(name).fuzz(seconds), names))


def report(outcomes: List[Outcome]) -> str:
    lines = [f"{'target':<16}{'executions':>12}{'per second':>12}{'coverage':>10}{'new inputs':>12}"]
    for done in outcomes:
        lines.append(f"{done.target:<16}{done.executions:>12}{done.per_second:>12}{done.coverage:>10}"
                     f"{done.new_inputs:>12}")
    for done in outcomes:
        lines += [f"{done.target}: {failure}" for failure in done.failures]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at once")
    parser.add_argument("--keep", action="store_true", help="merge finds into fuzz/corpus")
    parser.add_argument("--launcher", default=shutil.which("ccache"), help="of the compiler")
    parser.add_argument("targets", nargs="*", help="default: all")
    args = parser.parse_args()
    build(args.launcher, args.jobs)
    names = args.targets or target_names()
    outcomes = fuzz_all(names, args.seconds, args.jobs)
    if args.keep:
        for name in names:
            Target(name).keep()
    print(report(outcomes))
    return 1 if any(done.failures for done in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
