"""A machine on which a job runs for a day in a moment: the loop is the real one, the time and the nodes are not. What must
hold for every job is asserted here, whatever a test is about."""

import random
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cairn.account import Account
from cairn.event_log import Events
from cairn.halting import Halt
from cairn.job_log import Entry
from cairn.loop import Job, Machine, Plan, Stop
from cairn.policy import Action, Kind, Policy
from cairn.processes import Exit
from cairn.roles import Ended, NodeTest

SIGKILL = 9
LAST_S = 1800
BEGIN_S = 1e9  # the time of the start; 0 has a meaning of its own


@dataclass(frozen=True)
class Course:
    """What the program does, and what happens to it; all times in seconds."""

    segments: int  # between checkpoints
    segment_s: float = 600.0  # of computing
    dump_s: float = 60.0
    restart_s: float = 120.0  # from a failure until it computes again
    mtbf_s: float = 3600.0
    node_share: float = 1.0  # of the failures, those that cost a node; else a process dies
    nodes_at_once: int = 1  # that are lost where a failure costs nodes
    notice_s: float = 0.0  # until the loss of a node shows
    allocation_s: Optional[float] = None  # it stops with its first checkpoint in the last LAST_S of that


class Happening(NamedTuple):
    """An entry of the log, and what it means to the program."""

    at_s: float
    what: str
    dataset: int = 0


@dataclass
class World(Machine, NodeTest, Events):
    """One allocation. The time goes on only while the loop sleeps, and then to whatever comes next."""

    course: Course
    seed: int
    now: float = BEGIN_S
    tells_loss = True
    committed: int = 0  # segments
    dead: Dict[str, float] = field(default_factory=dict)  # nodes, and when that shows
    slow_s: Dict[str, float] = field(default_factory=dict)  # nodes that live, and do not answer for so long
    running: List[str] = field(default_factory=list)
    printed: List[Entry] = field(default_factory=list)
    launches: int = 0
    halted: bool = False
    used: List[str] = field(default_factory=list)  # the nodes of the last run
    listening: int = 0  # to signs of life
    cleared_up: int = 0  # the launches of which the leftovers were ended
    open_runs: int = 0  # in the log

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._ahead: List[Happening] = []
        self._fails_s = 0.0
        self._exit: Optional[Exit] = None

    # Time and processes.

    def now_s(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        times = [one.at_s for one in self._ahead[:1]] if not self._exit else []
        times += [self._fails_s] if self.running and not self._exit else []
        times += [at for node, at in self.dead.items() if node in self.running]
        times += [BEGIN_S + after_s for after_s in self.slow_s.values()]
        if not self._ahead or self._ahead[0].at_s > self.now:
            self.now = min((at for at in times if at > self.now), default=self.now + seconds)
        if self.running and self.now >= self._fails_s:
            self._fail()
        while self._ahead and self._ahead[0].at_s <= self.now:
            self._happen(self._ahead.pop(0))

    def launch(self, command: Sequence[str], environment: Mapping[str, str]) -> Any:
        self._check_launch(command)
        course, self._exit = self.course, None
        self.used = list(command)
        self.launches += 1
        self.running = list(command)
        self._fails_s = self.now + self._random.expovariate(1 / course.mtbf_s)
        at = self.now + (course.restart_s if self.launches > 1 else 0.0)
        self.printed.append(Entry("START", self.now))
        self._ahead = [Happening(at, "RESTART_SUCCESS", self.committed) if self.committed else Happening(at, "COMPUTE_START")]
        for number in range(self.committed + 1, course.segments + 1):
            at += course.segment_s + course.dump_s
            self._ahead.append(Happening(at, "CHECKPOINT_END", number))
        self._ahead.append(Happening(at, "FINALIZE"))
        return self

    def _check_launch(self, nodes: Sequence[str]) -> None:
        assert not self.running and self.cleared_up == self.launches, "the run before this one is over, with all it left"
        assert self.open_runs == 1 and self.listening <= 1, "each run has its own start in the log, and its own signs of life"
        assert nodes and len(set(nodes)) == len(nodes), f"a node is used twice: {nodes}"
        assert not [node for node in nodes if self.dead.get(node, float("inf")) <= self.now], f"a dead node is used: {nodes}"
        stay = [node for node in self.used if node in nodes]
        assert [node for node in nodes if node in stay] == stay, f"nodes that stay change their order: {self.used}, {nodes}"
        if len(nodes) == len(self.used):
            assert all(nodes[self.used.index(node)] == node for node in stay), f"a place is lost: {self.used}, {nodes}"

    def happened(self, event: str, note: str, seconds: Optional[float] = None) -> None:
        self.open_runs += {"RUN_START": 1, "RUN_END": -1}.get(event, 0)
        assert self.open_runs in (0, 1), f"{event} {note}"
        assert event != "RUN_END" or (seconds is not None and seconds >= 0)

    def heartbeats(self, remote: Any, nodes: Sequence[str], silence_s: float) -> Any:
        return self

    def _fail(self) -> None:
        """A node is lost, which the launcher does not notice; or a process is, which it does."""
        self._ahead, self._fails_s = [], float("inf")
        if self._random.random() < self.course.node_share:
            for node in self._random.sample(self.running, self.course.nodes_at_once):
                self.dead[node] = self.now + self.course.notice_s
        else:
            self._exit = Exit(SIGKILL, True)

    def _happen(self, one: Happening) -> None:
        self.printed.append(Entry(one.what, one.at_s, one.dataset or None, f"ckpt.{one.dataset}"))
        if one.what == "CHECKPOINT_END":
            self.committed = one.dataset
            if self.course.allocation_s is not None and self.now >= BEGIN_S + self.course.allocation_s - LAST_S:
                self.halted = True
                self._ahead = [Happening(self.now, "SHOULD_EXIT"), Happening(self.now, "FINALIZE")]
        elif one.what == "FINALIZE":
            self._exit, self._fails_s = Exit(0, False), float("inf")

    # What the loop asks for: signs of life, the launcher's process, the log, the halt file, the manager.

    trouble = ""

    def suspects(self) -> List[str]:
        return [node for node in self.running if self._is_silent(node)]

    def ask_to_end(self) -> None:
        """Of the signs of life."""

    def rest(self, node: str) -> None:
        raise AssertionError("no suspicion is wrong here")

    def unfit(self, nodes: Sequence[str]) -> Dict[str, str]:
        return {node: "runs no commands" for node in nodes if self._is_silent(node)}

    def _is_silent(self, node: str) -> bool:
        return self.dead.get(node, float("inf")) <= self.now or self.now < BEGIN_S + self.slow_s.get(node, 0.0)

    def poll(self) -> Optional[Exit]:
        return self._exit

    def end(self, patience_s: float, by_itself_s: float = 0.0) -> None:
        self._ahead, self._fails_s = [], float("inf")

    def close(self) -> None:
        self.running = []

    def __enter__(self) -> "World":
        self.listening += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Of the signs of life."""
        self.listening -= 1

    def news(self) -> List[Entry]:
        printed, self.printed = self.printed, []
        return printed

    def halt(self) -> Halt:
        return Halt(reason="TIME_LIMIT" if self.halted else "")

    def remote(self) -> None:
        """There is no way to the nodes."""

    pid = 1

    def end_leftovers(self, run: Ended) -> str:
        """Nothing outlives the launcher."""
        self.cleared_up = self.launches
        return ""

    def write(self, account: Account, alive: bool = True, at_once: bool = True) -> None:
        """Nobody looks."""


class Day(NamedTuple):
    """What has become of it."""

    action: Action
    account: Account
    world: World
    said: List[str]

    def wall_s(self) -> float:
        """From the start to the end."""
        return self.world.now - BEGIN_S


def day_of(course: Course, seed: int, policy: Policy, nodes: Sequence[str],
           slow_s: Optional[Dict[str, float]] = None) -> Day:
    """Runs the real loop."""
    world: Any = World(course, seed, slow_s=slow_s or {})
    account = Account("simulated", "mpirun", "1", list(nodes), policy.nodes_wanted, begun_s=BEGIN_S)
    said: List[str] = []
    end_s = None if course.allocation_s is None else BEGIN_S + course.allocation_s
    plan = Plan(policy, lambda chosen, left_out, newest, environment: list(chosen), lambda end_s: {}, end_time=lambda: end_s)
    job = Job(plan, world, [world], world, world, world, account, Stop(), said.append, machine=world, events=world)
    day = Day(job.run(), account, world, said)
    assert day.action.kind != Kind.FAILED, said
    check_end(world, account, policy)
    return day


def check_end(world: World, account: Account, policy: Policy) -> None:
    """What holds at the end of every job."""
    assert world.open_runs == 0 == world.listening and not world.running, "each run has its end in the log"
    assert policy.runs_max < 0 or len(account.runs) <= policy.runs_max
    for run, following in zip(account.runs, [*account.runs[1:], None]):
        assert run.how and run.begun_s <= run.ended_s <= (following.begun_s if following else world.now)
        assert policy.nodes_min <= len(run.nodes) <= policy.nodes_wanted and set(run.nodes) <= set(account.nodes)
