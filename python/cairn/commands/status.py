"""cairn status: how the job of a prefix directory is getting on."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from cairn.account import Account, time_text
from cairn.halting import why_stop
from cairn.job_log import JobLog, Progress
from cairn.native import Native, Trouble
from cairn.state_file import read_state


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="cairn status", description=__doc__.partition(": ")[2],
                                   epilog="Exit codes: 0 done, 1 there is nothing to show, 2 wrong usage.")
    add = made.add_argument
    add("prefix", nargs="?", metavar="FOLDER", help="the prefix directory, in place of SCR_PREFIX")
    add("-p", "--prefix", dest="chosen", metavar="FOLDER", help="the same")
    add("--watch", action="store_true", help="again and again")
    add("--interval", type=float, default=2.0, metavar="SECONDS", help="with --watch: how often (2)")
    add("--json", action="store_true", help="print JSON")
    return made


def halt_of(native: Native, now_s: float) -> Optional[str]:
    """Why the job is to stop; None: it is not. A halt file that cannot be read stops nothing."""
    try:
        return why_stop(native.halt(), now_s, 0, None)
    except Trouble as trouble:
        return f"is not known: {trouble}"


def status_of(native: Native, now_s: float) -> Dict[str, Any]:
    """Everything there is to know."""
    state = read_state(native.prefix)
    if state is None:
        raise Trouble(f"no cairn run has worked in {native.prefix}; name the prefix directory of the job "
                      "(cairn status FOLDER, or SCR_PREFIX)")
    account: Account = state["account"]
    progress = Progress()
    for entry in JobLog(native.prefix, account.job, from_the_start=True).news():
        if entry.time_s >= account.begun_s:
            progress.add(entry)
    checkpoint: Optional[Dict[str, Any]] = None
    if progress.newest_name:
        checkpoint = {"name": progress.newest_name, "age_s": max(0.0, now_s - progress.newest_s),
                      "cost_s": progress.newest_cost_s, "protection": progress.newest_protection}
    mean = progress.spent_s / progress.commits if progress.commits else None
    return {"prefix": native.prefix, "alive": state["alive"], "outcome": account.outcome,
            "reason": account.reason, "host": state["host"], "process": state["process"],
            "manager": account.manager, "launcher": account.launcher, "job": account.job,
            "nodes": account.nodes, "wanted": account.wanted, "spares_left": account.spares(),
            "unfit": account.unfit, "begun_s": account.begun_s,
            "runs": [{"number": run.number, "nodes": run.nodes, "begun_s": run.begun_s, "how": run.how,
                      "failed": run.failed, "restarted_from": run.restarted_from} for run in account.runs],
            "checkpoint": checkpoint, "checkpoints": progress.commits, "mean_cost_s": mean,
            "lost_s": account.lost_s(now_s), "halt": halt_of(native, now_s)}


def lines_of(status: Dict[str, Any], now_s: float) -> List[str]:
    """For people."""
    runs, checkpoint = status["runs"], status["checkpoint"]
    failed = sum(run["failed"] for run in runs)
    if status["outcome"]:
        life = f"{status['outcome']}: {status['reason']}"
    elif status["alive"]:
        life = f"alive for {time_text(now_s - status['begun_s'])}"
    else:
        life = f"no sign of life; it was process {status['process']} on {status['host']}"
    lines = [f"job         {status['job']} in {status['prefix']}", f"cairn run   {life}",
             f"runs        {len(runs)}, of which {failed} died"
             + (f"; now on {','.join(runs[-1]['nodes'])}" if runs and status["alive"] else "")]
    lines += [f"            run {run['number']} died: {run['how']}" for run in runs[-4:] if run["failed"]]
    lines.append(f"nodes       {status['wanted']} of {len(status['nodes'])} used; spares left: {status['spares_left']}"
                 + "".join(f"; {node}: {why}" for node, why in sorted(status["unfit"].items())))
    if checkpoint:
        lines.append(f"checkpoint  {checkpoint['name']}, {time_text(checkpoint['age_s'])} old, "
                     f"{checkpoint['protection']}; it took {time_text(checkpoint['cost_s'])}")
        lines.append(f"            {status['checkpoints']} made, {time_text(status['mean_cost_s'] or 0)} each")
    else:
        lines.append("checkpoint  none yet")
    lines.append(f"time lost   {time_text(status['lost_s'])}")
    if status["halt"]:
        lines.append(f"to stop     {status['halt']}")
    return lines


def show(native: Native, as_json: bool) -> None:
    """Once."""
    now = time.time()
    status = status_of(native, now)
    print(json.dumps(status, indent=2) if as_json else "\n".join(lines_of(status, now)), flush=True)


def watch(native: Native, as_json: bool, interval_s: float) -> None:
    """Again and again. A look that fails, as the prefix directory cannot be read for a while, is not the last."""
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
        native = Native(native_path, options.chosen or options.prefix, dict(os.environ))
        show(native, options.json)
        if options.watch:
            watch(native, options.json, options.interval)
    except Trouble as trouble:
        print(f"cairn: error: {trouble}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    return 0
