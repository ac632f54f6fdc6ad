"""cairn scavenge: brings what the nodes of a dead job still hold to the prefix directory, and makes it whole there."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from cairn.account import Account
from cairn.command_line import FAILURE, USAGE, Parser, report
from cairn.commands.for_scripts import end_time_of
from cairn.event_log import EventLog
from cairn.found_job import FoundJob
from cairn.hosts import expand
from cairn.native import Native, Trouble, WrongUsage, check_prefix
from cairn.resources import ALL, manager_of
from cairn.resources.local import NodesHere, SimulatedNodes
from cairn.roles import ResourceManager
from cairn.scavenge import Result, Scavenge, Verdict, Wish
from cairn.state_file import read_state

EXIT_CODES = {None: 0, Verdict.SAVED: 0, Verdict.COPIED: 0, Verdict.FAILED: 1, Verdict.LATER: 75}


def say(text: str) -> None:
    """To people."""
    print(f"cairn scavenge: {text}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line. `-j` and `-v` stand in scripts that were written for SCR."""
    made = Parser(
        prog="cairn scavenge", description="Brings what the nodes of a dead job still hold to the prefix directory, and "
        "makes it whole there: outputs, the oldest first, then the newest checkpoint that can be had.",
        epilog="Exit codes: 0 saved, or nothing had to be; 1 something could not be saved, or looked for, 2 wrong usage, "
               "75 try again later: a job is running with the caches, the time is up, or another scavenge is at it.")
    add = made.add_argument
    add("-p", "--prefix", metavar="DIR", help="the prefix directory, in place of SCR_PREFIX")
    add("--nodes", metavar="HOSTS", help="the nodes, in place of SCR_NODELIST and of those of the allocation")
    add("--no-rebuild", action="store_true", help="only copy; cairn rebuild --prefix makes it whole later")
    add("--manager", metavar="NAME", help=f"{', '.join(ALL)}; else the one that has started this")
    add("--storage", type=Path, metavar="DIR", help="of nodes that cairn run has simulated")
    add("--json", action="store_true", help="print JSON")
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
    return {node: f"{manager.name} says: {why}" for node, why in manager.down(nodes).items()}


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
    """By the options and settings, by the resource manager, or else by what the last run, or its `cairn run`, wrote down."""
    state = read_state(native.prefix)
    told: Account = state["account"] if state else Account()
    job = native.job()
    listed = options.nodes or native.chosen("SCR_NODELIST")
    manager = manager_of(environment, options.manager, listed or hosts_of(job, told), native.settings["CAIRN_REMOTE"])
    if options.storage:
        manager = SimulatedNodes.left_in(environment, options.storage)
    elif manager.name == "local" and not listed and job.last_run:
        manager = NodesHere(environment, job.last_run.names(), job.bases())
    if job.is_default:
        job = named(job, manager.job_id() or told.job)
    nodes = expand(listed) if listed else manager.nodes()
    ended = job.last_run is not None and job.last_run.state in ("ended", "died")
    return Place(manager, nodes, job, ended or (bool(told.outcome) and told.job == job.job))


def hosts_of(job: FoundJob, told: Account) -> str:
    """Of the last run, where they are not this machine alone."""
    if job.last_run:
        return "" if job.is_on_this_host() else ",".join(job.last_run.hosts())
    return "" if told.manager in ("", "local") else ",".join(told.nodes)


def named(job: FoundJob, name: Optional[str]) -> FoundJob:
    """Where neither the user nor the last run has named a job."""
    if name:
        return replace(job, job=name, text=f"job {name} of {job.user}")
    raise Trouble(f"nothing in {job.prefix} says which job ran there: {job.trouble or 'no run has written it down'}. Name "
                  "the job by SCR_JOB_ID, its nodes by --nodes, and its caches by SCR_CACHE_BASE if it had that set; or "
                  "name the right prefix directory (-p, SCR_PREFIX)")


def say_what_came(result: Result, manager: ResourceManager, job: FoundJob) -> None:
    """Where no line for a dataset says it."""
    if result.waits and not result.saved:
        say(f"nothing was tried: {result.waits}")
    elif len(result.silent) == len(result.nodes):
        say(f"nothing was saved: no node has answered; the commands go by {manager.remote().name}")
    elif result.nothing_known():
        say(f"nothing was saved, and it is not known what there is: {result.text()}; the others hold nothing of the job")
    elif result.listed == 0:
        say(f"nothing has to be saved: the nodes hold nothing of job {job.job}")
    elif result.verdict() is None:
        say("nothing has to be saved: the prefix directory has what the nodes hold")


def scavenge(options: argparse.Namespace, native_path: Path) -> Result:
    """The whole of it."""
    environment = dict(os.environ)
    native = Native(native_path, options.prefix, environment)
    check_prefix(native.prefix)
    with ExitStack() as stack:
        place = place_of(options, native, environment)
        manager, nodes, job = place.manager, place.nodes, place.job
        if isinstance(manager, SimulatedNodes):
            stack.enter_context(manager)
        say(f"looks for {job.text} on {', '.join(nodes)}, in {', '.join(job.stores)}")
        end_time_s = end_time_of(native, manager)
        settings = settings_on_nodes(native, manager, job.job, end_time_s)
        wish = Wish(job.settings_for_nodes(settings, {**environment, **manager.settings()}),
                    rebuild=not options.no_rebuild, run_ended=place.run_ended, end_time_s=end_time_s)
        events = stack.enter_context(EventLog(native, {**environment, **wish.settings}, say))
        work = Scavenge(wish, native, manager.remote(), say, events=events)
        absent = {} if options.nodes else {node: "the last run was on it, and it is none of these nodes: give --nodes"
                                           for node in place.elsewhere()}
        result = work.run([*nodes, *absent], {**down_of(nodes, manager), **absent})
    say_what_came(result, manager, job)
    restart = native.restart_name()
    say(f"a restart begins with {restart}" if restart else "the prefix directory has no checkpoint to restart from")
    return result


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        result = scavenge(options, native_path)
    except Trouble as trouble:
        report(trouble)
        return USAGE if isinstance(trouble, WrongUsage) else FAILURE
    except KeyboardInterrupt:
        print("cairn: interrupted; what was copied stays, and the next scavenge goes on with it", file=sys.stderr)
        return EXIT_CODES[Verdict.LATER]
    if options.json:
        print(json.dumps(result.as_json(), indent=2))
    return EXIT_CODES[result.verdict()]
