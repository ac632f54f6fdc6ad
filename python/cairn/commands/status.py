"""cairn status: shows the state of the job of a prefix directory."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from cairn import folding
from cairn.account import NOTICEABLE_S, Account, count_text, dataset_text, time_text
from cairn.command_line import Parser, report
from cairn.found_job import DIED, ENDED, RUNS, UNKNOWN, FoundJob
from cairn.halting import why_stop
from cairn.job_log import IN_PREFIX, NOT_PROTECTED, JobLog, Progress
from cairn.native import Native, Trouble, check_prefix
from cairn.state_file import is_of_cairn_run, read_state
from cairn.unflushed import Unflushed

# What becomes of a dataset that is not in the prefix directory, with its text.
COPIES = {"begun": "; its copy has begun", "waits": "; its copy waits", "none": ""}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(prog="cairn status", epilog="Exit codes: 0 done, 1 there is nothing to show, 2 wrong usage.")
    add = made.add_argument
    add("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    add("--watch", action="store_true", help="Repeat until interrupted")
    add("--interval", type=float, default=2.0, metavar="SECONDS", help="With --watch: how often (2)")
    add("--json", action="store_true", help="Print JSON")
    return made


def halt_of(native: Native, now_s: float) -> Optional[str]:
    """Why the job must stop; None if it need not. An unreadable halt file does not stop a job."""
    try:
        return why_stop(native.halt(), now_s, 0, None)
    except Trouble as trouble:
        return f"is not known: {trouble}"


def account_without_cairn_run(job: FoundJob) -> Account:
    """An account from the record of the last run."""
    run = job.last_run
    nodes = run.names() if run else []
    return Account(job=job.job, nodes=nodes, wanted=len(nodes), begun_s=run.started_s if run else 0.0)


def life_of(state: Optional[Dict[str, Any]], job: FoundJob) -> str:
    """The state of `cairn run` if there is one, else of the program."""
    if state:
        return ENDED if state["account"].outcome else RUNS if state["alive"] else DIED
    return job.last_run.state if job.last_run else UNKNOWN


def end_last_run(account: Account, last_sign_s: float) -> None:
    """Completes the account of a killed `cairn run`, which could not record the end of its program."""
    for run in account.runs[-1:]:
        if not run.how:
            run.how, run.failed, run.ended_s = "cairn run was killed", True, last_sign_s


def in_log(prefix: str, account: Account) -> Tuple[Progress, Unflushed]:
    """What the log says, if there is one."""
    progress, unflushed = Progress(), Unflushed()
    for entry in JobLog(prefix, account.job, from_the_start=True).news():
        if entry.time_s >= account.begun_s:
            progress.add(entry)
            unflushed.add(entry)
    return progress, unflushed


def shortened(paths: Sequence[str]) -> str:
    """The first paths, and the number of the others."""
    return ", ".join(paths[:2]) + (f" and {len(paths) - 2} more" if len(paths) > 2 else "")


def places_of(name: str, explained: Dict[str, Any]) -> str:
    """The places of a dataset now, from `cairn explain`. Empty if it is nowhere."""
    words = {"cache": f"in {shortened(explained['caches'])}", "prefix": IN_PREFIX}
    found = [one for one in explained["datasets"] if one["name"] == name]
    usable = [words.get(one["place"], one["text"]) + (f", {NOT_PROTECTED}" if one.get("only_written") else "")
              for one in found if one["usable"]]
    # For other places, such as scavenged data, the text contains the place.
    bad = [f"{words[one['place']]}, but {one['text']}" if one["place"] in words else one["text"] for one in found]
    return ", and ".join(dict.fromkeys(usable)) or "; ".join(bad)


def checkpoint_of(progress: Progress, now_s: float) -> Optional[Dict[str, Any]]:
    """The newest checkpoint in the log."""
    newest = progress.newest_checkpoint()
    if not newest.name:
        return None
    return {"name": newest.name, "age_s": max(0.0, now_s - newest.committed_s),
            "cost_s": newest.cost_s, "protection": newest.protection}


def newest_seen(explained: Dict[str, Any], logged: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """The checkpoint that a restart takes or could take, even if the log has a newer one; otherwise the newest of which
    anything is left. If the log has it too, with the details of the log."""
    datasets = [one for one in explained["datasets"] if one["name"]]
    names = [one["name"] for mark in ("taken", "usable") for one in datasets if one[mark]]
    if not names and logged:
        return logged
    name = next(iter([*names, *(one["name"] for one in datasets)]), "")
    if logged and name == logged["name"]:
        return logged
    return {"name": name, "age_s": None, "cost_s": None} if name else None


def newest_copied(native: Native) -> Optional[Dict[str, Any]]:
    """The newest copied checkpoint of a job without a log. Reading the caches of a running job would disturb it."""
    name = native.restart_name()
    return {"name": name, "age_s": None, "cost_s": None, "protection": IN_PREFIX} if name else None


def where_now(native: Native, logged: Optional[Dict[str, Any]], job: FoundJob) -> Optional[Dict[str, Any]]:
    """The checkpoint with its places now, which may have changed since the log."""
    explained = native.explain()
    found = newest_seen(explained, logged)
    if not found:
        return None
    unseen = "" if job.is_on_this_host() or not job.last_run else (
        f"; the caches of {', '.join(job.last_run.names())} are not visible from here")
    nowhere = f"not in the prefix directory, and not in a cache that is visible here{unseen}"
    return {**found, "protection": places_of(found["name"], explained) or nowhere, "restart": explained["summary"]}


def copies_of(native: Native) -> List[Dict[str, Any]]:
    """Datasets that are being copied to the prefix directory, or were when the job died."""
    try:
        return native.unfinished_copies()
    except Trouble:  # errors of the prefix directory are reported elsewhere
        return []


def unflushed_of(unflushed: Unflushed, copies: Sequence[Dict[str, Any]], live_until_s: Optional[float]) -> List[Dict[str, Any]]:
    """The datasets of the last run that are not in the prefix directory, with their states. The states are those of
    `live_until_s`, or of the last sign of life of a run that is over: since then, caches may be lost."""
    planned = [(one["number"], one["name"]) for one in copies]
    until_s = unflushed.last_s if live_until_s is None else live_until_s

    def copy_of(number: Optional[int], name: str, is_in_flight: bool) -> str:
        return "begun" if (number, name) in planned else "waits" if is_in_flight and live_until_s is not None else "none"
    return [{"number": one.complete.dataset, "name": one.complete.name, "state": one.state(), "state_s": one.in_state_s(until_s),
             "copy": copy_of(one.complete.dataset, one.complete.name, one.is_in_flight)} for one in unflushed.waiting()]


def process_of(state: Optional[Dict[str, Any]], job: FoundJob) -> Dict[str, Any]:
    """The process that is alive as long as the job."""
    if state:
        return {"host": state["host"], "process": state["process"]}
    return {"host": job.last_run.host, "process": job.last_run.process} if job.last_run else {"host": "", "process": 0}


def state_of(native: Native, job: FoundJob) -> Optional[Dict[str, Any]]:
    """The state of the `cairn run` of the last run; None if that was started without one."""
    state = read_state(native.prefix)
    if state is None and job.last_run is None and not native.has_datasets():
        raise Trouble(f"no job has worked in {native.prefix}; name the prefix directory of the job (cairn status -p DIR, "
                      "or SCR_PREFIX)" + (f"; {job.trouble}" if job.trouble else ""))
    return state if state and is_of_cairn_run(state, job) else None


def status_of(native: Native, now_s: float) -> Dict[str, Any]:
    """All facts about the job."""
    job = native.job()
    state = state_of(native, job)
    account: Account = state["account"] if state else account_without_cairn_run(job)
    life = life_of(state, job)
    if state and life == DIED:
        end_last_run(account, state["beat_s"])
    copies = copies_of(native)  # before the log, which says what has come since
    progress, unflushed = in_log(native.prefix, account)
    checkpoint = checkpoint_of(progress, now_s)
    if life != RUNS:
        checkpoint = where_now(native, checkpoint, job)
    elif not checkpoint:
        checkpoint = newest_copied(native)
    mean = progress.spent_s / progress.commits if progress.commits else None
    return {"prefix": native.prefix, "alive": life == RUNS, "life": life, "by_cairn_run": state is not None,
            "program": job.last_run.state if job.last_run else UNKNOWN,
            "ended_s": job.last_run.ended_s if job.last_run else 0.0, "outcome": account.outcome,
            "reason": account.reason, **process_of(state, job),
            "manager": account.manager, "launcher": account.launcher, "job": account.job,
            "nodes": account.nodes, "wanted": account.wanted, "spares_left": account.spares(),
            "unfit": account.unfit, "begun_s": account.begun_s,
            "last_run": {"state": job.last_run.state, "by_cairn_run": job.last_run.by_cairn_run, "host": job.last_run.host,
                         "process": job.last_run.process} if job.last_run else None,
            "runs": [{"number": run.number, "nodes": run.nodes, "begun_s": run.begun_s, "how": run.how,
                      "failed": run.failed, "restarted_from": run.restarted_from,
                      "from_scratch": run.from_scratch} for run in account.runs],
            "checkpoint": checkpoint, "checkpoints": progress.commits, "mean_cost_s": mean,
            "copies": copies, "unflushed": unflushed_of(unflushed, copies, now_s if life == RUNS else None),
            "lost_s": account.lost_s(now_s), "halt": halt_of(native, now_s), "left_caches": list(job.left_caches)}


def life_line(status: Dict[str, Any], now_s: float) -> str:
    """The line about the life of the job."""
    process = f"process {status['process']} on {status['host']}"
    since = time_text(now_s - status["begun_s"])
    what = "cairn run  " if status["by_cairn_run"] else "program    "
    if status["outcome"]:
        return f"{what} {status['outcome']}: {status['reason']}"
    if status["life"] == RUNS:
        return f"{what} alive for {since}, {process}"
    if status["life"] == ENDED:
        return f"{what} ended {time_text(now_s - status['ended_s'])} ago"
    if status["life"] == DIED:
        return f"{what} dead: {process} has ended without recording its end" + (
            "; its program still runs" if status["by_cairn_run"] and status["program"] == RUNS else "")
    return f"{what} unknown: no sign of life is visible from this machine" + (f"; it was {process}" if status["process"] else "")


def other_program_line(status: Dict[str, Any]) -> List[str]:
    """The line about a live program that the shown `cairn run` did not start."""
    run = status["last_run"]
    if not status["by_cairn_run"] or not run or run["by_cairn_run"] or run["state"] != RUNS:
        return []
    return [f"program     alive, process {run['process']} on {run['host']}; it was started without cairn run"]


def checkpoint_lines(status: Dict[str, Any]) -> List[str]:
    """The newest checkpoint, and the cost of checkpoints."""
    checkpoint = status["checkpoint"]
    if not checkpoint:
        return ["checkpoint  none yet" if status["alive"] else "checkpoint  none"]
    age = f", {time_text(checkpoint['age_s'])} old" if checkpoint["age_s"] is not None else ""
    cost = f"; it took {time_text(checkpoint['cost_s'])}" if checkpoint["cost_s"] is not None else ""
    lines = [f"checkpoint  {checkpoint['name']}{age}, {checkpoint['protection']}{cost}"]
    if status["checkpoints"]:
        lines.append(f"            {status['checkpoints']} made, {time_text(status['mean_cost_s'] or 0)} each")
    return lines + ([f"restart     {checkpoint['restart']}"] if "restart" in checkpoint else [])


def copy_lines(status: Dict[str, Any]) -> List[str]:
    """The progress of copies to the prefix directory."""
    remedy = "" if status["alive"] else "; cairn drain finishes the copy"
    return [f"copying     {dataset_text(one['name'], one['number'])}: {one['copied']} of "
            f"{count_text(one['ranks'], 'part')} copied{remedy}" for one in status["copies"]]


def unflushed_lines(status: Dict[str, Any]) -> List[str]:
    """The datasets that are not in the prefix directory."""
    was, then = ("", "") if status["alive"] else ("was ", " at the last sign of life")
    return [f"not flushed {dataset_text(one['name'], one['number'])}: {was}{one['state']} for "
            f"{time_text(one['state_s'])}{then}{COPIES.get(one['copy'], '')}" for one in status["unflushed"]]


def run_lines(status: Dict[str, Any]) -> List[str]:
    """The runs and their nodes."""
    runs = status["runs"]
    if not status["by_cairn_run"]:
        return [f"nodes       {len(status['nodes'])}: {shortened(status['nodes'])}"] if status["nodes"] else []
    lines = [f"runs        {len(runs)}, of which {sum(run['failed'] for run in runs)} died"
             + (f"; now on {','.join(runs[-1]['nodes'])}" if runs and status["alive"] else "")]
    lines += [f"            run {run['number']} died: {run['how']}" for run in runs[-4:] if run["failed"]]
    lines += [f"            run {run['number']} BEGAN FROM SCRATCH: {run['from_scratch']}" for run in runs[-4:]
              if run["from_scratch"]]
    use = "in use" if status["alive"] else "were used"
    spares = count_text(status["spares_left"], "spare")
    return [*lines, f"nodes       {status['wanted']} of {len(status['nodes'])} {use}; {spares} left"
            + "".join(f"; {line}" for line in folding.lines_of(dict(sorted(status["unfit"].items()))))]


def lines_of(status: Dict[str, Any], now_s: float) -> List[str]:
    """The status as text."""
    lines = [f"job         {status['job']} in {status['prefix']}", life_line(status, now_s),
             *other_program_line(status), *run_lines(status), *checkpoint_lines(status),
             *copy_lines(status), *unflushed_lines(status)]
    if status["by_cairn_run"] and status["lost_s"] >= NOTICEABLE_S:
        lines.append(f"time lost   {time_text(status['lost_s'])}")
    if status["halt"]:
        lines.append(f"to stop     {status['halt']}")
    return lines + [f"note        {text}" for text in status["left_caches"]]


def show(native: Native, as_json: bool) -> None:
    """Prints the status once."""
    now = time.time()
    status = status_of(native, now)
    print(json.dumps(status, indent=2) if as_json else "\n".join(lines_of(status, now)), flush=True)


def watch(native: Native, as_json: bool, interval_s: float) -> None:
    """Prints the status until interrupted. Errors, such as a prefix directory that is temporarily unavailable, do not end
    it."""
    while True:
        time.sleep(max(interval_s, 0.1))
        print("" if as_json else "\x1b[H\x1b[2J" if sys.stdout.isatty() else "")
        try:
            show(native, as_json)
        except Trouble as trouble:
            print(f"cairn: error: {trouble}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    try:
        native = Native(native_path, options.prefix, dict(os.environ))
        check_prefix(native.prefix)
        show(native, options.json)
        if options.watch:
            watch(native, options.json, options.interval)
    except Trouble as trouble:
        report(trouble)
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    return 0
