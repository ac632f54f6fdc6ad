"""cairn run: starts a program with its launcher, and when a run dies, starts it again on the remaining nodes."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple

from cairn.account import Account, copies_text, count_text, dataset_text, lines_of, never_due, no_calls, summary_of
from cairn.command_line import FAILURE, USAGE, Parser, report
from cairn.commands.for_scripts import EndTime
from cairn.commands.scavenge import down_of, settings_on_nodes
from cairn.drain import Drain
from cairn.event_log import EventLog, Events
from cairn.heartbeats import PERIOD_S, SHORTEST_SILENCE_S, SILENCE_S
from cairn.hosts import expand
from cairn.job_log import JobLog, Progress
from cairn.launchers import launcher_of
from cairn.loop import Command, Job, Plan, Stop, Strike
from cairn.native import OF_THIS_NODE, Native, Trouble, WrongUsage
from cairn.node_tests import tests_of
from cairn.node_work import NodeWork
from cairn.output_file import write
from cairn.policy import Action, Kind, Policy
from cairn.program_mpi import Mismatch, libraries_of, mismatch
from cairn.resources import ALL, manager_of
from cairn.resources.local import SimulatedNodes
from cairn.roles import Launcher, NodeTest, ResourceManager
from cairn.scavenge import MARGIN_S, Scavenge, Verdict, Wish
from cairn.state_file import StateFile, read_state
from cairn.unpublished import Unpublished

CHECKPOINT_WORD = "SCR_CKPT_NAME"
TRIES_AGAIN = "cairn scavenge tries again, as long as the nodes keep their caches"
PLANS_PATIENCE_S = 5  # while the run is not watched
STARTED_BY_US = "STARTED_BY_CAIRN_RUN"  # in the environment of the program, which records it
LOGGED = {"CAIRN_LOG_JSON": "1"}  # unless the user has switched it off: the log has the progress of the runs
# As in SCR: after the launcher's options, before the program.
COMMAND_OPTIONS = {"-rc": "run_cmd", "--run-cmd": "run_cmd", "-rs": "restart_cmd", "--restart-cmd": "restart_cmd"}


def say(text: str) -> None:
    """Prints a message to stderr, as the standard output is the program's."""
    with suppress(OSError):  # without buffers, whose rest would fail again at the exit, and change the exit code
        os.write(sys.stderr.fileno(), f"cairn run: {text}\n".encode(errors="backslashreplace"))


class SecretParser(Parser):
    """A parser whose errors contain no values, which may be secrets."""

    def error(self, message: str) -> NoReturn:
        """Replaces quoted values, and the value after "=" of an ambiguous option."""
        super().error(re.sub(r"""['"].*['"]|=.*(?= could match )""", "...", message, flags=re.DOTALL))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = SecretParser(
        prog="cairn run", allow_abbrev=False, usage="cairn run [options] LAUNCHER [launcher options] PROGRAM [arguments]",
        epilog="Exit codes: 0 the program came to its end, 1 cairn run itself failed, could not finish the copies that the "
               "program had left to it, a run has lost a dataset that was not made again, or an output could not be saved "
               "from the nodes, 2 wrong usage, 3 the job was halted and can continue later, 4 given up.")
    add = made.add_argument
    add("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    add("--nodes", type=int, metavar="N", help="Nodes that the program runs on; further "
        "nodes of the allocation are spares. Without a resource manager: simulate this number on this machine")
    add("--spares", type=int, metavar="S", default=0, help="Number of simulated spare nodes")
    add("--min-nodes", type=int, metavar="N",
        help="The smallest number of nodes that the program can run on, in place of SCR_MIN_NODES")
    add("--runs", type=int, metavar="N", help="The maximum number of launches, in place of SCR_RUNS; -1: any number")
    add("--hung-after", type=float, metavar="SECONDS", default=0.0,
        help="End a run in which no rank calls Cairn for this time; 0: never")
    add("--exclude", metavar="HOSTS", help="Nodes not to be used, in addition to SCR_EXCLUDE_NODES")
    add("--manager", metavar="NAME", help=f"One of {', '.join(ALL)}; default: the one of this allocation")
    add("--no-scavenge", action="store_true",
        help="At the end, only finish copies that the program has begun; do not save other data that only the nodes have")
    add("--no-heartbeats", action="store_true", help="Do not watch the nodes, only the launcher")
    add("--silence", type=float, metavar="SECONDS", default=SILENCE_S,
        help=f"Test a node that gives no sign of life for this time, in place of {SILENCE_S:g}; give more if the network "
        "sometimes stalls")
    add("-rc", "--run-cmd", metavar="COMMAND", help="The program and its arguments, as one word")
    add("-rs", "--restart-cmd", metavar="COMMAND",
        help=f"The same, for runs that have a checkpoint to restart from; {CHECKPOINT_WORD} is replaced by its name")
    add("--kill-node", metavar="NODE@WHEN", action="append", default=[],
        help="Kill a simulated node WHEN seconds after the start, or with checkpoint:K when the K-th checkpoint is made")
    add("--storage", type=Path, metavar="DIR",
        help="Directory for the storage of simulated nodes, which then stays at the end")
    add("--json", metavar="FILE", help="Also write the account at the end to FILE, as JSON")
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


@dataclass
class Commands:
    """The launcher, its options, and the program in its two forms."""

    launcher: Launcher
    name: str
    options: Tuple[str, ...]
    program: Tuple[str, ...]
    restart_cmd: Optional[str]

    def programs(self) -> List[str]:
        """The programs that are started, first and after a failure."""
        restart = shlex.split(self.restart_cmd)[:1] if self.restart_cmd else []
        return list(dict.fromkeys([self.program[0], *restart]))

    def mismatch(self) -> Optional[Mismatch]:
        """The error if a program is built for another MPI than that of the launcher."""
        found = (mismatch(program, self.name, self.launcher.mpi, libraries_of(program)) for program in self.programs())
        return next(filter(None, found), None)

    def words(self, restart_from: Optional[str]) -> List[str]:
        """The program with its arguments."""
        if restart_from is None or self.restart_cmd is None:
            return list(self.program)
        return [word.replace(CHECKPOINT_WORD, restart_from) for word in shlex.split(self.restart_cmd)]


def words_of(option: str, command: str) -> List[str]:
    """The words of a command, as a shell splits it."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise WrongUsage(f"{option}: a shell could not cut it into words: {error}") from error


def commands_of(options: argparse.Namespace) -> Commands:
    """Parses the words after the options of cairn run."""
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        raise WrongUsage("no launcher is given: cairn run [options] LAUNCHER [launcher options] PROGRAM ...")
    launcher = launcher_of(words[0])
    parts = launcher.split(words[1:], {name: 1 for name in COMMAND_OPTIONS})
    given, launcher_options = _take_commands(parts.options)
    run_cmd = given.get("run_cmd") or options.run_cmd
    restart_cmd = given.get("restart_cmd") or options.restart_cmd
    program = parts.program
    restart_words = words_of("--restart-cmd", restart_cmd) if restart_cmd else []
    if run_cmd:
        program = (*words_of("--run-cmd", run_cmd), *parts.program)
        restart_cmd = shlex.join([*restart_words, *parts.program]) if restart_cmd else None
    if not program:
        raise WrongUsage(f"no program follows {words[0]} and its options")
    return Commands(launcher, words[0], launcher_options, program, restart_cmd)


def _take_commands(options: Sequence[str]) -> Tuple[Dict[str, str], Tuple[str, ...]]:
    """Removes --run-cmd and --restart-cmd from the launcher's options."""
    given: Dict[str, str] = {}
    left: List[str] = []
    words = iter(options)
    for word in words:
        name, sign, value = word.partition("=")
        if name in COMMAND_OPTIONS:
            given[COMMAND_OPTIONS[name]] = value if sign else next(words, "")
        elif word != "--":
            left.append(word)
    return given, tuple(left)


# SIGTERM of Slurm and PBS, SIGUSR1 chosen by users, SIGUSR2 of LSF before the run limit, and SIGINT of bkill.
ASK = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)


@contextmanager
def on_signals(stop: Stop, has_keyboard: bool) -> Iterator[None]:
    """A signal of the resource manager before the end of the time requests a last checkpoint. A second signal, or one
    from the keyboard, ends the run at once. Signals that this process ignored at its start (nohup) stay ignored."""
    at_once = (signal.SIGHUP, *((signal.SIGINT,) if has_keyboard else ()))

    def ask(number: int, _: object) -> None:
        name = signal.Signals(number).name
        if stop.asked or number in at_once:
            stop.now = f"{name} was received"
        else:
            stop.asked = f"{name} was received"

    numbers = [number for number in (*ASK, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def strike_of(text: str, manager: ResourceManager) -> Strike:
    """Parses --kill-node."""
    node, _, when = text.partition("@")
    if not isinstance(manager, SimulatedNodes):
        raise WrongUsage("--kill-node is for simulated nodes only (--nodes, without a resource manager)")
    if node not in manager.nodes():
        raise WrongUsage(f"--kill-node: there is no node {node}; the nodes are {', '.join(manager.nodes())}")
    kind, _, number = when.rpartition(":")
    try:
        if kind == "checkpoint":
            return Strike(node, None, int(number), manager.lose)
        return Strike(node, float(when), None, manager.lose)
    except ValueError as error:
        raise WrongUsage(f'--kill-node {text}: say when, as in {node}@2.5 (seconds) or {node}@checkpoint:2') from error


def choose_manager(options: argparse.Namespace, native: Native, environment: Dict[str, str]) -> ResourceManager:
    """Simulates nodes if the user requests them and no resource manager provides real ones."""
    manager = manager_of(environment, options.manager, native.chosen("SCR_NODELIST"),
                         native.settings["CAIRN_REMOTE"])
    if manager.name != "local" or options.nodes is None:
        if options.spares or options.storage:
            raise WrongUsage("--spares and --storage are for simulated nodes only: give --nodes, and no "
                          "resource manager")
        return manager
    if options.nodes < 1 or options.spares < 0:
        raise WrongUsage("--nodes must be 1 or more, --spares 0 or more")
    return SimulatedNodes(environment, options.nodes, options.spares, options.storage)


def losses_held(settings: Mapping[str, str]) -> int:
    """The number of nodes of one set that may be lost at once without losing the newest checkpoint, for any level. A
    checkpoint written without the cache is in the prefix directory."""
    def held(scheme: str, copies: str, failures: str) -> int:
        return {"SINGLE": 0, "PARTNER": int(settings[copies]), "XOR": 1, "RS": int(settings[failures])}[scheme]

    if settings["SCR_COPY_TYPE"] != "FILE":
        return held(settings["SCR_COPY_TYPE"], "CAIRN_PARTNER_COPIES", "SCR_SET_FAILURES")
    levels = [key[:-len(" TYPE")] for key in settings if key.startswith("CKPT=") and key.endswith(" TYPE")]
    in_caches = [one for one in levels if settings[f"{one} ENABLED"] == "1" and settings[f"{one} OUTPUT"] == "0"
                 and settings[f"{one} BYPASS"] == "0"]
    return min((held(settings[f"{one} TYPE"], f"{one} COPIES", f"{one} SET_FAILURES") for one in in_caches), default=0)


def policy_of(options: argparse.Namespace, native: Native, wanted: int) -> Policy:
    """The policy from the options, else from the settings."""
    runs = options.runs
    if runs is None:
        retries = native.number("SCR_RETRIES")
        runs = native.number("SCR_RUNS") or (1 if retries is None else retries + 1 if retries >= 0 else -1)
    if options.min_nodes is not None and options.min_nodes < 1:
        raise WrongUsage("--min-nodes must be 1 or more")
    smallest = options.min_nodes or native.number("SCR_MIN_NODES") or wanted
    return Policy(runs, wanted, min(smallest, wanted), native.number("SCR_HALT_SECONDS") or 0)


def hung_after_of(options: argparse.Namespace, native: Native) -> float:
    """The time without progress after which a run counts as hung; 0: never. With SCR_ENABLE=0 there is no progress to
    watch, so no run counts as hung."""
    if not options.hung_after >= 0:
        raise WrongUsage("--hung-after must be 0 s or more; 0 never ends a run as hung")
    limit_s = float(options.hung_after) or watchdog_of(native)
    if limit_s and native.settings["SCR_ENABLE"] == "0":
        say("no run is ended as hung: with SCR_ENABLE=0 no run logs its progress")
        return 0.0
    if limit_s and native.chosen("CAIRN_LOG_JSON") == "0":
        raise WrongUsage("--hung-after and SCR_WATCHDOG need CAIRN_LOG_JSON=1: without that log every run seems to hang")
    return limit_s


def watchdog_of(native: Native) -> float:
    """The timeout of SCR's watchdog. SCR has two; the longer one applies here."""
    if native.settings.get("SCR_WATCHDOG", "0") in ("", "0"):
        return 0.0
    limits = [native.number(key) for key in ("SCR_WATCHDOG_TIMEOUT", "SCR_WATCHDOG_TIMEOUT_PFS")]
    known = [limit for limit in limits if limit]
    if not known:
        raise Trouble("SCR_WATCHDOG=1 needs SCR_WATCHDOG_TIMEOUT, the seconds without progress")
    return float(max(known))


def silence_of(options: argparse.Namespace) -> float:
    """How long a node may be silent."""
    if not options.silence >= SHORTEST_SILENCE_S:
        raise WrongUsage(f"--silence must be {SHORTEST_SILENCE_S:g} s or more: signs of life come each {PERIOD_S:g} s")
    return float(options.silence)


def nodes_of(options: argparse.Namespace, manager: ResourceManager, commands: Commands,
             native: Native) -> Tuple[List[str], int]:
    """All nodes, and the number of nodes for the program."""
    listed = native.chosen("SCR_NODELIST")
    nodes = expand(listed) if listed else manager.nodes()
    wanted = (options.nodes or commands.launcher.nodes(commands.options) or manager.wanted()
              or native.number("SCR_MIN_NODES") or len(nodes))
    if wanted > len(nodes):
        raise Trouble(f"the program needs {count_text(wanted, 'node')}, and the allocation has {len(nodes)}")
    return nodes, wanted


def launch_words(commands: Commands, manager: ResourceManager, native: Native, name: str) -> Command:
    """Returns a function for the whole command of a run. `name`: the name of the run, or empty."""
    ranks = commands.launcher.ranks(commands.options)
    naming = [f"{commands.launcher.name_option}={name}"] if name else []

    def words(nodes: Sequence[str], left_out: Sequence[str], newest: Optional[str],
              environment: Mapping[str, str]) -> List[str]:
        settings = sorted(key for key in environment
                          if key.startswith(("SCR_", "CAIRN_", STARTED_BY_US)) and key not in OF_THIS_NODE)
        passing = commands.launcher.passing(settings, commands.options, environment)
        where = [*passing, *commands.launcher.on_nodes(nodes, left_out, ranks)] if manager.names_are_hosts() else []
        restart_from = (newest or native.restart_name()) if commands.restart_cmd else None
        return [commands.name, *commands.options, *naming, *where, *manager.wrap(nodes, ranks),
                *commands.words(restart_from)]
    return words


def settings_for(manager: ResourceManager, native: Native, job: str,
                 environment: Dict[str, str]) -> Callable[[Optional[float]], Dict[str, str]]:
    """The program's environment, with which no rank needs to query the resource manager."""
    known = {**LOGGED, **environment, **manager.settings(), "SCR_PREFIX": native.prefix, "SCR_JOB_ID": job, STARTED_BY_US: "1"}

    def settings(end_time_s: Optional[float]) -> Dict[str, str]:
        return known if end_time_s is None else {**known, "SCR_END_TIME": str(int(end_time_s))}
    return settings


def plan_of(options: argparse.Namespace, native: Native, manager: ResourceManager, commands: Commands, job: str,
            wanted: int, environment: Dict[str, str]) -> Plan:
    """The plan for the loop."""
    name = commands.launcher.run_name(commands.options, commands.program)
    return Plan(policy_of(options, native, wanted), launch_words(commands, manager, native, name),
                settings_for(manager, native, job, environment), commands.launcher.patience_s,
                commands.launcher.lost_patience_s, not options.no_heartbeats, silence_of(options),
                hung_after_of(options, native), losses_held(native.settings), name, EndTime(native, manager).ask,
                commands.launcher.ranks(commands.options))


def job_of(native: Native, manager: ResourceManager) -> str:
    """The id of the job."""
    return native.chosen("SCR_JOB_ID") or manager.job_id() or native.settings["SCR_JOB_ID"]


def tests_for(native: Native, manager: ResourceManager, left_out: Optional[str],
              say_line: Callable[[str], None]) -> List[NodeTest]:
    """The tests that the nodes must pass. `say_line` prints messages of the tests."""
    settings = {**native.beside(manager.settings()).settings, "SCR_JOB_ID": job_of(native, manager)}
    excluded = expand(f"{left_out or ''},{native.chosen('SCR_EXCLUDE_NODES') or ''}")
    return tests_of(settings["SCR_NODE_TESTS"].split(","), manager, excluded, settings, say_line)


def unsaved(manager: ResourceManager, what: str, later: str = "") -> str:
    """The message about an incomplete scavenge, with what happens to the rest, or how to save it later."""
    if isinstance(manager, SimulatedNodes) and not manager.is_kept:
        later = "what only the simulated nodes had is deleted with them (--storage DIR keeps them)"
    return f"{what}; {later}" if later else what


def joined(*parts: str) -> str:
    """Those that are not empty."""
    return "; ".join(filter(None, parts))


def planned_copies(native: Native) -> Dict[int, str]:
    """By number, the labels of the datasets whose copies have a plan in the prefix directory, also of earlier runs. Empty if
    it does not answer soon."""
    with suppress(Trouble):  # errors of the prefix directory are reported elsewhere
        plans = native.unfinished_copies(PLANS_PATIENCE_S)
        return {one["number"]: dataset_text(one["name"], one["number"]) for one in plans}
    return {}


def left_text(work: Job) -> str:
    """What the program has left, and is not known to be in the prefix directory; empty if there is nothing."""
    left = work.unflushed.left()
    return f"not in the prefix directory: {', '.join(left)}" if left else ""


def lost_text(work: Job) -> str:
    """What nothing can copy any more, and the program has not made good; empty if there is nothing."""
    lost = work.unflushed.missing()
    return f"lost before the copy to the prefix directory: {', '.join(lost)}" if lost else ""


def with_left(work: Job, action: Action) -> Action:
    """A job has not succeeded as long as its data are not where they must be."""
    left, lost = left_text(work), lost_text(work)
    if action.kind != Kind.SUCCESS:
        return replace(action, reason=joined(action.reason, lost))
    missing = joined(f"what it left to copy is {left}" if left else "", lost)
    return replace(action, kind=Kind.FAILED, reason=f"{action.reason}, but {missing}") if missing else action


def skipped(work: Job, manager: ResourceManager, stop: Stop, later: str) -> str:
    """What is left, according to the log, where a signal ended the run at once; empty if no signal did. This process may be
    killed soon, so it does not wait for the prefix directory."""
    if not stop.now:
        return ""
    unfinished = copies_text(work.unflushed.in_flight())
    left = f"; not finished: {unfinished}" if unfinished else ""
    return unsaved(manager, f"skipped, because {stop.now}{left}", later)


def scavenge_at_end(work: Job, native: Native, manager: ResourceManager, plan: Plan, stop: Stop,
                    succeeded: bool, tick: Callable[[], None], events: Events) -> str:
    """Saves data that only the nodes have. Returns the result as text, empty if there was nothing to save. A job that has
    finished has copied its newest checkpoint, unless SCR_FLUSH=0."""
    if native.settings["SCR_ENABLE"] == "0" or stop.now:
        return skipped(work, manager, stop, "cairn scavenge saves the data")
    account = work.account
    try:
        end_time_s = plan.end_time()
        wish = Wish({**LOGGED, **settings_on_nodes(native, manager, account.job, end_time_s)},
                    checkpoints=not work.progress.finalized or native.settings["SCR_FLUSH"] != "0",
                    ran_on=account.runs[-1].nodes if account.runs else (), run_ended=True, end_time_s=end_time_s,
                    is_made_good=work.unflushed.is_made_good, mark_older=work.unflushed.mark_older)
        result = Scavenge(wish, native, manager.remote(), say, lambda: stop.now, tick, events).run(
            account.nodes, down_of(account.nodes, manager))
    except Exception as error:  # pylint: disable=broad-except
        return unsaved(manager, joined(f"failed: {error}", left_text(work)), TRIES_AGAIN)
    work.unflushed.note_in_prefix(result.now_in_prefix())
    work.unflushed.note_unsaved(result.unsaved_outputs())
    left = left_text(work)
    # If the nodes cannot be reached, a successful job needs no message about that each time.
    if succeeded and not result.saved and not result.waits and not result.lost() and not left:
        return ""
    if not left and result.verdict(work.unflushed.lost()) in (None, Verdict.SAVED):
        return result.text()
    return unsaved(manager, joined(result.text(), left), TRIES_AGAIN)


def drain_with(native: Native, manager: ResourceManager, job: str, plan: Plan, stop: Stop,
               tick: Callable[[], None]) -> Callable[[Sequence[str]], bool]:
    """Returns a function that finishes the copies of the last run, also on nodes that the next run does not use. The next
    run gives the files their names, and copies what could not be copied here. The function returns True if there was
    something to copy."""
    def drain(nodes: Sequence[str]) -> bool:
        try:
            return bool(drain_of(native, manager, job, plan, lambda: stop.now or stop.asked, tick).run(nodes))
        except Exception as error:  # pylint: disable=broad-except
            say(f"the copies that the last run had begun are left to the next one: {error}")
            return True
    return drain


def drain_of(native: Native, manager: ResourceManager, job: str, plan: Plan, asked_to_stop: Callable[[], str],
             tick: Callable[[], None]) -> Drain:
    """A drain of the last run, which has ended."""
    end_s = plan.end_time()

    def why_stop() -> str:
        return "the allocation ends" if end_s is not None and time.time() > end_s - MARGIN_S else asked_to_stop()
    settings = {**LOGGED, **settings_on_nodes(native, manager, job, end_s)}
    return Drain(NodeWork(native, settings, why_stop, tick), native, manager.remote(), say, run_ended=True)


def drain_at_end(work: Job, native: Native, manager: ResourceManager, plan: Plan, stop: Stop,
                 tick: Callable[[], None]) -> str:
    """Finishes the copies that the program had begun, where nothing else is to be saved. Returns what could not be
    finished; empty if all is."""
    if native.settings["SCR_ENABLE"] == "0" or stop.now:
        return skipped(work, manager, stop, "cairn drain finishes the copies")
    nodes = work.account.nodes
    down = down_of(nodes, manager)
    try:
        drain = drain_of(native, manager, work.account.job, plan, lambda: stop.now, tick)
        drained = drain.run([node for node in nodes if node not in down])
        drain.give_names(drained)
    except Exception as error:  # pylint: disable=broad-except
        return unsaved(manager, joined(f"the copies that the program had begun: {error}", left_text(work)), "cairn drain tries again")
    work.unflushed.mark_older(drained)
    needed = [one for one in drained if not one.is_older]
    work.unflushed.note_in_prefix((one.number, one.name) for one in needed if one.is_published())
    open_ones = [one for one in needed if not one.is_published()]
    work.unflushed.note_unsaved((one.number, one.name) for one in open_ones if one.output)
    unfinished = [f"{one.name or one.number} not finished: {one.reason}" for one in open_ones]
    left = joined(*unfinished, left_text(work))
    return unsaved(manager, left, TRIES_AGAIN) if left else ""


def advice_at_end(work: Job, native: Native, strikes: Sequence[Strike]) -> List[str]:
    """Advice about requests of the user that did not happen."""
    progress = work.progress
    missed = [strike.missed(progress.commits) for strike in strikes]
    if progress.commits:
        return missed
    try:  # read again, as the program may have changed settings by SCR_Config
        settings = Native(native.path, native.prefix, native.environment).settings
    except Trouble:
        settings = native.settings
    chosen = {**settings, "CAIRN_LOG_JSON": native.chosen("CAIRN_LOG_JSON") or "1"}
    return [*missed, never_due(work.account, progress, settings), no_calls(work.account, progress, chosen)]


def last_state(prefix: str) -> Optional[Dict[str, Any]]:
    """The state of the previous `cairn run`."""
    try:
        return read_state(prefix)
    except Trouble:  # this one replaces it
        return None


def say_what_is_ignored(native: Native, manager: SimulatedNodes) -> None:
    """Settings that simulated nodes override."""
    for key in ("SCR_CACHE_BASE", "SCR_CNTL_BASE"):
        chosen = native.chosen(key)
        if chosen:
            say(f"{key}={chosen} is ignored: simulated nodes keep their files in {manager.storage('%n')}. --storage chooses "
                "another directory")


def run(options: argparse.Namespace, native_path: Path) -> int:
    """Runs the job; returns the exit code."""
    environment = dict(os.environ)
    native = Native(native_path, options.prefix, environment)
    commands = commands_of(options)
    wrong_mpi = commands.mismatch()
    if wrong_mpi:
        raise WrongUsage(f"{wrong_mpi.what}; {wrong_mpi.remedy}")
    with ExitStack() as stack:
        manager = choose_manager(options, native, environment)
        if isinstance(manager, SimulatedNodes):
            stack.enter_context(manager)
            say_what_is_ignored(native, manager)
        nodes, wanted = nodes_of(options, manager, commands, native)
        manager.wrap(nodes[:wanted], commands.launcher.ranks(commands.options))  # checks the options before the first launch
        state_file = stack.enter_context(StateFile(native.prefix))
        last = last_state(native.prefix)
        job = job_of(native, manager)
        plan = plan_of(options, native, manager, commands, job, wanted, environment)
        account = Account(manager.name, Path(commands.name).name, job, nodes, wanted, begun_s=time.time())
        as_root = commands.launcher.trouble_as_root(commands.options, environment) if os.geteuid() == 0 else ""
        if as_root:
            say(as_root)
        stop = Stop()
        stack.enter_context(on_signals(stop, os.isatty(0)))
        events = stack.enter_context(EventLog(native, plan.environment(None), say))
        strikes = [strike_of(text, manager) for text in options.kill_node]

        def beat() -> None:
            state_file.write(account, at_once=False)

        if native.settings["SCR_ENABLE"] != "0":
            plan = replace(plan, before_relaunch=drain_with(native, manager, job, plan, stop, beat),
                           planned_copies=lambda: planned_copies(native))
        work = Job(plan, manager, tests_for(native, manager, options.exclude, say), native, JobLog(native.prefix, job),
                   state_file, account, stop, say, strikes, events=events)
        beat()
        Unpublished(native, last, say, lambda: stop.now or stop.asked, beat).publish(plan.end_time)
        action = work.run()
        account.scavenged = (
            drain_at_end(work, native, manager, plan, stop, beat) if options.no_scavenge else
            scavenge_at_end(work, native, manager, plan, stop, action.kind == Kind.SUCCESS, beat, events))
        action = with_left(work, action)
        account.outcome, account.reason = action.kind.name.lower().replace("_", " "), action.reason
        state_file.write(account, alive=False)
        show(options.json, account, work.progress, advice_at_end(work, native, strikes))
        return int(action.kind.value)


def show(json_file: Optional[str], account: Account, progress: Progress, advice: Sequence[str]) -> None:
    """Prints the account at the end. An error of writing the file does not change the exit code."""
    now_s = time.time()
    for line in lines_of(account, progress, now_s, advice):
        say(line)
    try:
        if json_file:
            write(json_file, json.dumps(summary_of(account, progress, now_s, advice), indent=2) + "\n")
    except Trouble as trouble:
        say(f"the account could not be written: {trouble}")


def _name_of(option: str) -> str:
    """The option without its value."""
    return option.partition("=")[0] if option.startswith("--") else option[:2]


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code of `cairn run`."""
    made = parser()
    options, unknown = made.parse_known_args(list(arguments))
    if unknown:  # a value may be a secret
        made.error(f"unrecognized arguments: {' '.join(map(_name_of, unknown))}")
    try:
        return run(options, native_path)
    except Trouble as trouble:
        report(trouble)
        return USAGE if isinstance(trouble, WrongUsage) else FAILURE
