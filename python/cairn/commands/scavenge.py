"""cairn scavenge: brings what the nodes of a dead job still hold to the prefix directory, and makes it whole there."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from cairn.account import Account
from cairn.command_line import FAILURE, USAGE, Parser, report
from cairn.commands.for_scripts import end_time_of
from cairn.event_log import EventLog
from cairn.found_job import FoundJob
from cairn.hosts import expand
from cairn.long_work import TEMPORARY
from cairn.native import Native, Trouble, WrongUsage, check_prefix
from cairn.resources import ALL, manager_of
from cairn.resources.listed import ListedHosts
from cairn.resources.local import NodesHere, SimulatedNodes
from cairn.roles import ResourceManager
from cairn.scavenge import Result, Scavenge, Verdict, Wish
from cairn.state_file import is_over, read_state

EXIT_CODES = {None: 0, Verdict.SAVED: 0, Verdict.COPIED: 0, Verdict.FAILED: 1, Verdict.LATER: TEMPORARY}


def say(text: str) -> None:
    """To people."""
    print(f"cairn scavenge: {text}", file=sys.stderr, flush=True)


def add_place(made: argparse.ArgumentParser) -> None:
    """The options that say where a dead job ran."""
    add = made.add_argument
    add("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    add("--nodes", metavar="HOSTS", help="The nodes, in place of SCR_NODELIST and of those of the allocation")
    add("--manager", metavar="NAME", help=f"One of {', '.join(ALL)}; default: the one of this allocation")
    add("--storage", type=Path, metavar="DIR", help="The directory of nodes that cairn run simulated")


def parser() -> argparse.ArgumentParser:
    """The command line. `-j` and `-v` stand in scripts that were written for SCR."""
    made = Parser(
        prog="cairn scavenge", description="It rebuilds there outputs, the oldest first, and then the newest "
        "checkpoint that is complete enough.",
        epilog="Exit codes: 0 saved, or nothing to save, 1 something could not be saved or found, 2 wrong usage, "
               "75 try again later: a job uses the caches, the time is up, or another scavenge is running.")
    add_place(made)
    add = made.add_argument
    add("--no-rebuild", action="store_true", help="Only copy; cairn rebuild --prefix rebuilds it later")
    add("--json", action="store_true", help="Print JSON")
    add("-j", "--joblauncher", dest="launcher", help=argparse.SUPPRESS)
    add("-v", "--verbose", dest="verbose", action="store_true", help=argparse.SUPPRESS)
    return made


def settings_on_nodes(native: Native, manager: ResourceManager, job: str, end_time_s: Optional[float]) -> Dict[str, str]:
    """In which the command finds the caches of the job on a node."""
    found = {**native.for_nodes(), **manager.settings(), "SCR_JOB_ID": job}
    if end_time_s is not None:
        found["SCR_END_TIME"] = str(int(end_time_s))
    return {key: value for key, value in found.items() if key.startswith(("SCR_", "CAIRN_"))}


def down_of(nodes: Sequence[str], manager: ResourceManager) -> Dict[str, str]:
    """Those that cannot answer. One that was left out of the runs may have been too slow only, and is asked."""
    source = "" if isinstance(manager, NodesHere) else f"{manager.name} says: "
    return {node: source + why for node, why in manager.down(nodes).items()}


class Place(NamedTuple):
    """The way to the nodes, the nodes, and the job that has been there."""

    manager: ResourceManager
    nodes: List[str]
    job: FoundJob
    run_ended: bool  # known for certain

    def elsewhere(self) -> List[str]:
        """Nodes of the last run that are not among those asked."""
        asked = {node.partition(".")[0] for node in self.nodes}
        return [name for name, host in (self.job.last_run.nodes if self.job.last_run else ())
                if not asked.intersection((name.partition(".")[0], host.partition(".")[0]))]


def place_of(options: argparse.Namespace, native: Native, environment: Mapping[str, str]) -> Place:
    """By the options and settings, by the resource manager, or else by the records of the last run or its `cairn run`."""
    state = read_state(native.prefix)
    last: Account = state["account"] if state else Account()
    job = native.job()
    listed = options.nodes or native.chosen("SCR_NODELIST")
    listed_here = bool(listed) and all(map(is_this_host, expand(listed)))
    manager = manager_of(environment, options.manager, listed or hosts_of(job, last), native.settings["CAIRN_REMOTE"])
    if options.storage:
        manager = SimulatedNodes.left_in(environment, options.storage)
    elif isinstance(manager, ListedHosts) and listed_here:
        names = job.last_run.names() if job.last_run and job.is_on_this_host() else expand(listed)
        manager, listed = NodesHere(environment, names, job.bases() if job.last_run else ()), None
    elif manager.name == "local" and not listed and job.last_run:
        manager = NodesHere(environment, job.last_run.names(), job.bases())
    if job.is_default:
        job = named(job, manager.job_id() or last.job)
    nodes = expand(listed) if listed else manager.nodes()
    return Place(manager, nodes, job, is_over(state, job))


def is_this_host(name: str) -> bool:
    """It needs no way to another one."""
    return name.partition(".")[0] in ("localhost", socket.gethostname().partition(".")[0])


def hosts_of(job: FoundJob, last: Account) -> str:
    """Of the last run, where they are not this machine alone."""
    if job.last_run:
        return "" if job.is_on_this_host() else ",".join(job.last_run.hosts())
    return "" if last.manager in ("", "local") else ",".join(last.nodes)


def named(job: FoundJob, name: Optional[str]) -> FoundJob:
    """Where neither the user nor the last run names a job."""
    if name:
        return replace(job, job=name, text=f"job {name} of {job.user}")
    raise Trouble(f"the job that ran in {job.prefix} is not known: {job.trouble or 'no run is recorded there'}. Give another "
                  "prefix directory (-p, SCR_PREFIX); or the job (SCR_JOB_ID), its nodes (--nodes), and SCR_CACHE_BASE if "
                  "the job had it set")


def check_found(result: Result, job: FoundJob, state: Optional[Dict[str, Any]]) -> None:
    """That the nodes hold nothing of a job proves nothing if another job ran in the directory."""
    ran = job.job_of_last_run or (state["account"].job if state and not job.last_run else "")
    if result.listed == 0 and ran and ran != job.job:
        raise Trouble(f"no node holds anything of job {job.job}, but the last run in {job.prefix} was of job {ran}. Unset "
                      f"SCR_JOB_ID, or set SCR_JOB_ID={ran}, to save that job's data")


def what_came(result: Result, manager: ResourceManager, job: FoundJob) -> str:
    """Where no line about a dataset says it; else empty."""
    if result.waits and not result.saved:
        return f"nothing was tried: {result.waits}"
    if len(result.silent) == len(result.nodes):
        return f"nothing was saved: {why_silent(manager, result.nodes)}"
    if result.may_have_missed():
        return missed_text(result)
    if result.lost():
        return f"not all could be saved: {result.text()}"
    if result.listed == 0:
        return f"nothing to save: the nodes hold nothing of job {job.job}"
    if result.complete == 0:
        return "nothing to save: no dataset on the nodes was complete when the job died"
    if result.verdict() is None:
        those = "the nodes that answered hold" if result.silent else "the nodes hold"
        return f"nothing to save: the prefix directory has all that {those}"
    return ""


def ends_of(result: Result) -> List[str]:
    """The last lines: what came of it, and what a restart uses now."""
    restart = f"a restart will use {result.restart}" if result.restart else (
        "the prefix directory has no checkpoint to restart from")
    return [*([result.note] if result.note else []), restart]


def why_silent(manager: ResourceManager, nodes: Sequence[str]) -> str:
    """Where none of them has answered."""
    if isinstance(manager, NodesHere) and len(manager.down(nodes)) == len(nodes):
        return "the nodes of the last run were on this machine, and their storage is gone"
    return f"no node answered; the commands go by {manager.remote().name}"


def missed_text(result: Result) -> str:
    """What may be missing, and what is known of the rest."""
    if result.saved:
        return f"there may be more to save, because not all caches could be listed: {result.text()}"
    why = f"nothing was saved, because not all caches could be listed: {result.text()}"
    if result.complete:
        return f"{why}. The prefix directory has all that was listed"
    if result.listed:
        return f"{why}. Nothing that was listed was complete when the job died"
    return why if len(result.not_seen()) == len(result.nodes) else f"{why}. The other nodes hold nothing of the job"


class Reached(NamedTuple):
    """The nodes of a dead job, and how commands there find its caches."""

    place: Place
    nodes: List[str]  # all, also those that are not asked
    down: Dict[str, str]  # those that are not asked, each with the reason
    wish: Wish


@contextmanager
def reached(options: argparse.Namespace, native: Native, environment: Mapping[str, str],
            log: Callable[[str], None]) -> Iterator[Reached]:
    """By `options.prefix`, `.nodes`, `.manager` and `.storage`."""
    check_prefix(native.prefix)
    place = place_of(options, native, environment)
    manager, job = place.manager, place.job
    with ExitStack() as stack:
        if isinstance(manager, SimulatedNodes):
            stack.enter_context(manager)
        log(f"looking for {job.text} on {', '.join(place.nodes)}, in {', '.join(job.stores)}")
        end_time_s = end_time_of(native, manager)
        settings = settings_on_nodes(native, manager, job.job, end_time_s)
        wish = Wish(job.settings_for_nodes(settings, {**environment, **manager.settings()}), ran_on=job.nodes(),
                    run_ended=place.run_ended, end_time_s=end_time_s)
        absent = {} if options.nodes else {node: "a node of the last run, but not of this allocation; name it by --nodes"
                                           for node in place.elsewhere()}
        yield Reached(place, [*place.nodes, *absent], {**down_of(place.nodes, manager), **absent}, wish)


def scavenge(options: argparse.Namespace, native_path: Path) -> Result:
    """The whole of it."""
    environment = dict(os.environ)
    native = Native(native_path, options.prefix, environment)
    with reached(options, native, environment, say) as (place, nodes, down, wish):
        wish = replace(wish, rebuild=not options.no_rebuild)
        with EventLog(native, {**environment, **wish.settings}, say) as events:
            result = Scavenge(wish, native, place.manager.remote(), say, events=events).run(nodes, down)
    check_found(result, place.job, read_state(native.prefix))
    result.note = what_came(result, place.manager, place.job)
    result.restart = native.restart_name() or ""
    for line in ends_of(result):
        say(line)
    return result


def exit_code_of(work: Callable[[], int], name: str) -> int:
    """Of a command that the next one of this name continues, whatever ended it."""
    try:
        return work()
    except Trouble as trouble:
        report(trouble)
        return USAGE if isinstance(trouble, WrongUsage) else FAILURE
    except KeyboardInterrupt:
        print(f"cairn: interrupted; the next {name} continues with what was copied", file=sys.stderr)
        return TEMPORARY


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))

    def work() -> int:
        result = scavenge(options, native_path)
        if options.json:
            print(json.dumps(result.as_json(), indent=2))
        return EXIT_CODES[result.verdict()]
    return exit_code_of(work, "scavenge")
