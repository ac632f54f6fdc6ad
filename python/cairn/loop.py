"""The life of a job in one allocation: launch, watch, find out what died, launch again."""

from __future__ import annotations

import signal
import subprocess
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from cairn.account import Account, Run, copies_text, count_text
from cairn.computing import Computing
from cairn.event_log import Events
from cairn.halt_file import HaltFile
from cairn.halting import FINALIZED, halt_seconds_of, why_stop
from cairn.heartbeats import SILENCE_S, Heartbeats
from cairn.job_log import COMMITS, FROM_OUTSIDE, JobLog, Progress
from cairn.native import Native, Trouble
from cairn.node_tests import EXCLUDED, unfit
from cairn.policy import Action, Event, FailureTally, How, Kind, Policy, State, decide, ended_well
from cairn.processes import Exit, Group, ends_with_us, guard_of
from cairn.roles import Ended, NodeTest, RemoteExecution, ResourceManager
from cairn.state_file import StateFile
from cairn.unflushed import Unflushed

TICK_S = 0.05
ASK_AGAIN_S = 1.0  # where the halt file could not be written
ABORT_PATIENCE_S = 0.5  # what a launcher that has noticed the loss of a node gets to end in before it is asked to
ORPHAN_PATIENCE_S = 5.0  # what a launcher whose `cairn run` was killed gets to end in by itself


@dataclass
class Stop:
    """Set by signals: stop after the next checkpoint; stop now."""

    asked: str = ""
    now: str = ""


# Of a run: nodes, left out, restart from, environment.
Command = Callable[[Sequence[str], Sequence[str], Optional[str], Mapping[str, str]], List[str]]


@dataclass(frozen=True)
class Plan:
    """How the loop works; what does not change."""

    policy: Policy
    command: Command
    environment: Callable[[Optional[float]], Mapping[str, str]]  # of the program, by the end of the allocation
    patience_s: float = 5.0  # what the launcher gets to end in by itself when it is asked to
    lost_patience_s: float = 5.0  # the same where it may wait for a node that is gone
    heartbeats: bool = True
    silence_s: float = SILENCE_S  # without a sign of life; then a node is tested
    hung_after_s: float = 0.0  # 0: never
    losses_held: int = 0  # nodes without which the others still have the newest checkpoint
    run_name: str = ""  # by which the resource manager knows the runs, where that is how it finds them
    end_time: Callable[[], Optional[float]] = lambda: None  # of the allocation, in seconds since 1970; None: not known
    ranks: Optional[int] = None  # that the launcher is asked for; None: not known
    before_relaunch: Callable[[Sequence[str]], bool] = lambda nodes: False  # with the nodes that are left; True if it took long
    planned_copies: Callable[[], Mapping[int, str]] = dict  # labels of what the prefix directory has plans for, by number


class Machine:
    """Time and processes of the machine that this runs on. A simulation has a machine of its own."""

    def now_s(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def launch(self, command: Sequence[str], environment: Mapping[str, str]) -> Group:
        """Starts the launcher. Should this process be killed it is asked to end, and then killed: no process would watch
        its program, and the next `cairn run` would start a second one beside it."""
        launcher = subprocess.Popen(list(command), env=dict(environment), stdin=subprocess.DEVNULL,
                                    start_new_session=True, preexec_fn=ends_with_us())
        try:
            return Group(launcher, guard_of(launcher.pid, ORPHAN_PATIENCE_S))
        except OSError:  # else it would go on unwatched
            unguarded = Group(launcher)
            unguarded.end(ORPHAN_PATIENCE_S)
            unguarded.close()
            raise

    def heartbeats(self, remote: RemoteExecution, nodes: Sequence[str], silence_s: float) -> Heartbeats:
        """Signs of life; a node without is suspected after `silence_s`."""
        return Heartbeats(remote, nodes, patience_s=silence_s)


class Strike:
    """A simulated node that is to die, at a time or at a checkpoint."""

    def __init__(self, node: str, seconds: Optional[float], checkpoint: Optional[int],
                 lose: Callable[[str], str]) -> None:
        self.node, self._seconds, self._checkpoint, self._lose = node, seconds, checkpoint, lose
        self._done = False

    def strike(self, since_start_s: float, commits: int) -> str:
        """Does it when it is due, and then logs what was lost."""
        due = (since_start_s >= self._seconds if self._seconds is not None
               else commits >= (self._checkpoint or 0))
        if self._done or not due:
            return ""
        self._done = True
        return self._lose(self.node)

    def missed(self, commits: int) -> str:
        """What to say at the end where it did not happen."""
        if self._done:
            return ""
        if self._seconds is not None:
            return f"--kill-node {self.node}@{self._seconds:g} did nothing: the job ended earlier"
        made = count_text(commits, "checkpoint")
        return f"--kill-node {self.node}@checkpoint:{self._checkpoint} did nothing: the job made {made}"


class Job:
    """Everything that happens under one `cairn run`."""

    def __init__(self, plan: Plan, manager: ResourceManager, tests: Sequence[NodeTest], native: Native,
                 log: JobLog, state_file: StateFile, account: Account, stop: Stop,
                 say: Callable[[str], None], strikes: Sequence[Strike] = (), machine: Machine = Machine(),
                 events: Events = Events()) -> None:
        self._plan, self._manager = plan, manager
        self._tests_of_loss = [test for test in tests if test.tells_loss]
        self._tests_of_rest = [test for test in tests if not test.tells_loss]
        self._log, self._state_file, self.account, self._stop = log, state_file, account, stop
        self._say, self._strikes, self._machine, self._events = say, strikes, machine, events
        self._halt_file = HaltFile(native, say)
        self.progress, self.unflushed = Progress(), Unflushed()
        self._computing = Computing()
        self._heard_s = 0.0  # when the log had something new
        self._looked_s = machine.now_s()  # when it was read the last time
        self._tally = FailureTally()
        self._reason_before: Optional[str] = None  # in the halt file, before the last run
        self._has_asked, self._is_asked = False, False  # the program to stop; and that is in the halt file
        self._asks_again_s = 0.0
        self._end_s: Optional[float] = None  # of the allocation
        self._newest = ""  # the last checkpoint that was made or restarted from
        self._holders: FrozenSet[str] = frozenset()  # the nodes of that run
        self._trouble_logged = 0  # of which run
        self._useless_logged = 0  # likewise
        self._has_warned = False  # that the end of the allocation is unknown
        self._prepared_after = 0  # so many runs, `before_relaunch` was called
        self._used: List[str] = []  # the nodes of the last run, each in its place
        self._launcher = 0  # the process id of that of the last run
        self._left_out: Set[str] = set()  # of the unfit nodes, those that were not asked again yet

    def run(self) -> Action:
        """Until there is nothing more to do. An unexpected exception ends the job too, and its caller can save what
        there is to be saved."""
        try:
            if self._halt_file.take_back_stop():
                self._say("withdraws the request to stop that followed a signal: the cairn run that received the signal was killed")
            return self._until_the_end()
        except Exception as error:  # pylint: disable=broad-except
            return self._cut_off(error)
        finally:
            if self._has_asked:  # so that the next allocation goes on
                self._halt_file.take_back_stop()

    def _cut_off(self, error: Exception) -> Action:
        if not isinstance(error, (Trouble, OSError)):
            self._say(traceback.format_exc())
        self._end_leftovers(by_force=True)
        for run in self.account.runs[-1:]:
            if not run.how:
                run.ended_s, run.failed = run.ended_s or self._machine.now_s(), True
                self._has_ended(run, "cut off: cairn run itself failed")
        return Action(Kind.FAILED, f"cairn run itself failed: {error}")

    def _until_the_end(self) -> Action:
        event = Event()
        self._look_at_nodes()
        if len(self.account.unfit) == len(self.account.nodes):
            self._say(f"no node is fit; if {self._manager.remote().name} cannot run commands on the nodes, set "
                      "SCR_NODE_TESTS=none and use --no-heartbeats")
        while True:
            state = self._state()
            action = decide(self._plan.policy, state, event)
            if action.kind == Kind.LOOK_AGAIN:
                self._look_again()
            elif action.kind == Kind.LAUNCH and self._is_held_up():
                continue  # meanwhile a signal may have come, or a node may have died
            elif action.kind == Kind.LAUNCH:
                self._warn_of_no_end(state)
                event = self._one_run(action)
            else:
                return action

    def _is_held_up(self) -> bool:
        """Does, once after each run, what comes before the next one; whether that took long."""
        if self._prepared_after == len(self.account.runs):
            return False
        self._prepared_after = len(self.account.runs)
        took_long = self._plan.before_relaunch([node for node in self.account.nodes if node not in self.account.unfit])
        if took_long:
            self._look_at_nodes()
        return took_long

    def _warn_of_no_end(self, state: State) -> None:
        if state.halt_seconds > 0 and state.seconds_left is None and not self._has_warned:
            self._has_warned = True
            self._say(f"the end of the allocation is unknown, so SCR_HALT_SECONDS={state.halt_seconds} cannot stop the job "
                      "before it; set SCR_END_TIME to the end, in seconds since 1970")

    def _state(self) -> State:
        now, setting = self._machine.now_s(), self._plan.policy.halt_seconds
        asked = self._halt_file.latest()
        signalled = self._stop.now or self._stop.asked
        halt = signalled or why_stop(asked, now, setting, self._reason_before)
        self._end_s = self._plan.end_time()
        left = None if self._end_s is None else self._end_s - now
        return State(len(self.account.runs), len(self.account.nodes) - len(self.account.unfit), halt or None,
                     left, self._tally.count, len(self._left_out), halt_seconds_of(asked, setting), bool(signalled))

    def _look_at_nodes(self) -> Dict[str, str]:
        """Finds nodes that are not fit; they are not used as long as others are there. Returns those of them that are
        lost."""
        left = [node for node in self.account.nodes if node not in self.account.unfit]
        lost = unfit(self._tests_of_loss, left)
        found = {**lost, **unfit(self._tests_of_rest, [node for node in left if node not in lost])}
        for node, reason in found.items():
            self._say(f"{node} is left out: {reason}")
        self._leave_out(found)
        return lost

    def _leave_out(self, found: Mapping[str, str]) -> None:
        self.account.unfit.update(found)
        self._left_out.update(found)
        for node, reason in found.items():
            if reason != EXCLUDED:
                self._events.happened("NODE_FAIL", f"{node}: {reason}")

    def _look_again(self) -> None:
        """One that was too slow to answer may be well."""
        asked = sorted(self._left_out)
        self._left_out.clear()
        still = unfit([*self._tests_of_loss, *self._tests_of_rest], asked)
        for node in asked:
            if node not in still:
                self._say(f"{node} answers again, and is a spare now; it was left out: {self.account.unfit.pop(node)}")

    def _place(self, count: int) -> List[str]:
        """The nodes of the next run: those of the last one keep their places, so that their ranks find
        their files; spares fill the gaps."""
        fit = [node for node in self.account.nodes if node not in self.account.unfit]
        spares = [node for node in fit if node not in self._used]
        places = [node if node in fit else (spares.pop(0) if spares else "") for node in self._used]
        chosen = [node for node in places if node] + spares
        self._used = chosen[:count]
        return self._used

    def _one_run(self, action: Action) -> Event:
        nodes = self._place(action.nodes)
        self._left_out = set(self.account.unfit)
        self._reason_before = self._halt_file.reason()
        self.progress.begin_run()
        self._computing.begin_run()
        run = Run(len(self.account.runs) + 1, list(nodes), self._machine.now_s())
        self.account.runs.append(run)
        self._state_file.write(self.account)
        left_out = [node for node in self.account.nodes if node not in nodes]
        environment = self._plan.environment(self._end_s)
        command = self._plan.command(nodes, left_out, self._in_caches_of(nodes), environment)
        why = "" if run.number == 1 else f" ({action.reason})"
        begins = f"run {run.number} on {count_text(len(nodes), 'node')}: {','.join(nodes)}{why}"
        self._say(begins)
        self._events.happened("RUN_START", begins)
        event = self._watched(run, command, environment)
        self._account_for(run, event)
        return event

    def _in_caches_of(self, nodes: Sequence[str]) -> Optional[str]:
        """The name of the newest checkpoint, if these nodes have it for certain."""
        missing = self._holders.difference(nodes)
        held = min(self._plan.losses_held, len(self._holders) - 1)  # no redundancy without another node
        return self._newest if self._newest and len(missing) <= held else None

    def _watched(self, run: Run, command: Sequence[str], environment: Mapping[str, str]) -> Event:
        """Launches and waits; then finds out which nodes are left."""
        with ExitStack() as stack:
            beats = self._heartbeats(run, stack)
            try:
                group = self._machine.launch(command, environment)
            except OSError as error:
                self._say(f"{command[0]} cannot be started: {error.strerror}")
                run.ended_s = self._machine.now_s()
                return Event(How.EXIT_OTHER, 127)
            stack.callback(group.close)
            self._launcher = group.pid
            how, ended = self._watch(run, group, beats)
            run.noticed_s = run.noticed_s or self._machine.now_s()
            if beats:
                beats.ask_to_end()
            if how == How.NODE_LOST:
                group.end(self._plan.lost_patience_s, ABORT_PATIENCE_S)
            elif how is not None:
                group.end(self._plan.patience_s)
        # Nor has a launcher that was killed (by the kernel for want of memory, say) ended what it had started.
        self._end_leftovers(how == How.HUNG or ended.by_signal, how is None and ended == Exit(0, False))
        run.ended_s = self._machine.now_s()
        self._read_log(run)
        if how is None:
            self._read_halt_file()
        run.nodes_lost.update(self._look_at_nodes())
        how = how or (How.SIGNAL if ended.by_signal else How.EXIT_OTHER if ended.code else How.EXIT_0)
        return Event(how, ended.code, self.progress.finalized, tuple(run.nodes_lost),
                     self.progress.split_world(self._plan.ranks), self.progress.init_failure,
                     self.progress.init_fails_again, self.progress.is_to_exit)

    def _end_leftovers(self, by_force: bool, returned_0: bool = False) -> None:
        run = Ended(self._launcher, self._plan.run_name, by_force, returned_0)
        left = self._manager.end_leftovers(run) if self._launcher else ""
        if left:
            self._say(left)

    def _heartbeats(self, run: Run, stack: ExitStack) -> Optional[Heartbeats]:
        """None if there is to be no listener, or cannot be."""
        if not self._plan.heartbeats:
            return None
        try:
            beats = stack.enter_context(self._machine.heartbeats(
                self._manager.remote(), run.nodes, self._plan.silence_s))
        except OSError as error:
            self._tell_trouble(run, error.strerror or str(error))
            return None
        self._tell_trouble(run, beats.trouble)
        return beats

    def _tell_trouble(self, run: Run, why: str) -> None:
        """Once in a run."""
        if why and run.number != self._trouble_logged:
            self._trouble_logged = run.number
            self._say(f"only the launcher is watched, and some or all nodes are not: {why}")

    def _watch(self, run: Run, group: Group, beats: Optional[Heartbeats]) -> Tuple[Optional[How], Exit]:
        """Until the launcher ends, or has to be ended: then says why."""
        while True:
            ended = group.poll()
            if ended is not None:
                return None, ended
            self._read_log(run)
            self._strike(run)
            self._state_file.write(self.account, at_once=False)
            if beats and self._dead_nodes(run, beats):
                return How.NODE_LOST, Exit(0, False)
            if self._is_hung(run):
                return How.HUNG, Exit(0, False)
            if self._stop.now:
                return How.SIGNAL, Exit(signal.SIGTERM, True)
            if self._stop.asked and not self._is_asked:
                self._ask_to_stop()
            self._machine.sleep(TICK_S)

    def _dead_nodes(self, run: Run, beats: Heartbeats) -> bool:
        """A node whose sign of life is missing is tested; if it is well it is watched again."""
        suspects = [node for node in beats.suspects() if node in run.nodes]
        self._tell_trouble(run, beats.trouble)
        if not suspects:
            return False
        tested = unfit(self._tests_of_loss, suspects)
        still = beats.suspects()  # no node is dead that was heard meanwhile
        found = {node: reason for node, reason in tested.items() if node in still}
        for node in suspects:
            if node not in found:
                beats.rest(node)
        if not found:
            return False
        run.noticed_s = self._machine.now_s()
        for node, reason in found.items():
            self._say(f"{node} is lost ({reason})")
        self._leave_out(found)
        run.nodes_lost.update(found)
        return True

    def _is_hung(self, run: Run) -> bool:
        limit = self._plan.hung_after_s
        return limit > 0 and self._machine.now_s() - max(run.begun_s, self._heard_s) > limit

    def _strike(self, run: Run) -> None:
        for strike in self._strikes:
            now = self._machine.now_s()
            lost = strike.strike(now - self.account.begun_s, self.progress.commits)
            if lost:
                run.struck_s = now
                self._say(f"{strike.node} dies, as --kill-node asks: {lost}")

    def _read_log(self, run: Run) -> None:
        now_s = self._machine.now_s()
        for entry in self._log.news():
            if entry.what not in FROM_OUTSIDE:
                self._heard_s = now_s
            # By the clock here: that of the node that wrote it may be another.
            heard = replace(entry, time_s=min(max(entry.time_s, self._looked_s, run.begun_s), now_s))
            self.progress.add(heard)
            self._computing.add(heard)
            self.unflushed.add(heard)
            if heard.what in COMMITS and not heard.note:
                run.newest_s = heard.time_s
            if heard.what == "RESTART_SUCCESS" or (heard.what == "CHECKPOINT_END" and not heard.note):
                self._newest, self._holders = heard.name, frozenset(run.nodes)
        self._looked_s = now_s
        self._warn_of_useless_run(run)
        computing = self._computing
        if computing.from_scratch and not run.from_scratch:
            self._say(f"run {run.number} BEGINS FROM SCRATCH: {computing.from_scratch}")
        run.regained_s, run.kept_s, run.from_scratch = computing.regained_s, computing.kept_s, computing.from_scratch
        run.computing_s = computing.began_s
        run.rebuilt_s, run.restarted_from = self.progress.rebuilt_s, self.progress.restarted_from

    def _warn_of_useless_run(self, run: Run) -> None:
        why = self.progress.split_world(self._plan.ranks)
        if self.progress.init_fails_again:
            why = f"SCR_Init failed: {self.progress.init_failure}"
        if why and run.number != self._useless_logged:
            self._useless_logged = run.number
            self._say(why)

    def _read_halt_file(self) -> None:
        """The halt file has the end too, if the log cannot be written any more. SCR_Init, whose START is in the log, takes the
        word of earlier runs back."""
        is_new = self._reason_before not in (None, FINALIZED) or self.progress.finalized is False
        halt = self._halt_file.look() if is_new else None
        if halt and halt.reason == FINALIZED:
            self.progress.finalized = True

    def _ask_to_stop(self) -> None:
        """Until that is in the file."""
        if self._machine.now_s() < self._asks_again_s:
            return
        is_first, in_flight = not self._has_asked, self.unflushed.in_flight()
        if is_first:
            self._say(f"{self._stop.asked}: the program is asked to stop after its next checkpoint")
            self._say_under_way(in_flight)  # before the prefix directory is looked at, which may not answer
        self._has_asked, self._is_asked = True, self._halt_file.ask_to_stop()
        if is_first and not self._stop.now:
            planned = self._plan.planned_copies()
            self._say_under_way({number: planned[number] for number in planned if number not in in_flight})
        self._asks_again_s = self._machine.now_s() + ASK_AGAIN_S

    def _say_under_way(self, copies: Mapping[int, str]) -> None:
        """No later line names them if this process is killed before the program stops."""
        if copies:
            self._say(f"still under way: {copies_text(copies)}; so far only the caches have all of it")

    def _has_ended(self, run: Run, how: str) -> None:
        run.how = how
        self._events.happened("RUN_END", f"run {run.number}: {how}", run.ended_s - run.begun_s)

    def _account_for(self, run: Run, event: Event) -> None:
        run.failed = not ended_well(event) and not self._stop.now
        self._has_ended(run, event.text())
        if run.failed:
            self._tally = self._tally.after(event, self.progress.newest)
            self._say(f"run {run.number} died: {run.how}")
        self._state_file.write(self.account)
