"""scr_ckpt_interval: the best checkpoint interval of a job, from the log of its runs."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Sequence

from cairn.command_line import report
from cairn.commands import for_scripts
from cairn.job_log import NAME, TEXT_NAME, Entry, read_log
from cairn.native import Native, Trouble, check_prefix
from cairn.reporting.checkpoint_interval import MODELS, Costs, costs_of

DONE, TROUBLE = 0, 1
FIRST_OVERHEAD = 10.0  # percent: SCR's answer without a log


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = for_scripts.parser(
        "scr_ckpt_interval", "It prints the interval that loses the least time, in seconds for "
        "SCR_CHECKPOINT_SECONDS, by what the checkpoints of earlier runs cost and how long these runs lasted.",
        "Exit codes: 0 done, 1 no log could be read, or it has no finished checkpoint, 2 wrong usage.")
    add = made.add_argument
    add("--percent", action="store_true",
        help=f"Print the cost in percent of the interval, for SCR_CHECKPOINT_OVERHEAD; {FIRST_OVERHEAD} as long as no "
             "checkpoint is known")
    add("--model", choices=tuple(MODELS), default="daly", help="The model that estimates it (daly)")
    add("--stats", action="store_true", help="Print what the estimate is made of")
    add("--logfile", metavar="LOG", help=f"The log (.cairn/{NAME} in the prefix directory, else .cairn/{TEXT_NAME})")
    return made


def log_of(options: argparse.Namespace, native_path: Path) -> Path:
    """The log to read. Prefers the JSON log, which has times in microseconds, to the text log, which has seconds."""
    if options.logfile:
        return Path(options.logfile)
    if options.prefix:
        check_prefix(options.prefix)
    folder = Path(Native(native_path, options.prefix, dict(os.environ)).prefix) / ".cairn"
    return next((path for path in (folder / NAME, folder / TEXT_NAME) if path.exists()), folder / NAME)


def costs_in(log: Path) -> Costs:
    """Raises Trouble if the log cannot be read or has no checkpoint."""
    try:
        entries = read_log(log, Entry.of_either).entries
    except FileNotFoundError as error:
        raise Trouble(f"{log} does not exist; run once with CAIRN_LOG_JSON=1 or SCR_LOG_ENABLE=1") from error
    costs = costs_of(entries)
    if costs is None:
        raise Trouble(f"{log} has no finished checkpoint that took time, so there is nothing to estimate from")
    return costs


def print_all(costs: Costs, model: str, interval_s: float, percent: float, as_json: bool) -> None:
    """Prints the figures of the estimate."""
    figures = {"starts": costs.starts, "total_s": round(costs.total_s, 3),
               "mean_time_to_interrupt_s": round(costs.between_interrupts_s, 3), "checkpoints": costs.checkpoints,
               "checkpoint_s": round(costs.checkpoint_s, 3), "flush_s": round(costs.flush_s, 3),
               "checkpoint_cost_s": round(costs.cost_s, 6), "model": model, "interval_s": round(interval_s, 3),
               "percent": round(percent, 3)}
    print(json.dumps(figures, indent=2) if as_json else "\n".join(f"{key}: {value}" for key, value in figures.items()))


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    log = log_of(options, native_path)
    try:
        costs = costs_in(log)
    except Trouble as trouble:
        report(trouble)
        if options.percent and not options.stats:
            print(FIRST_OVERHEAD)
        return TROUBLE
    interval_s = MODELS[options.model](costs.cost_s, costs.between_interrupts_s)
    percent = 100 * costs.cost_s / interval_s
    if options.stats or options.json:
        print_all(costs, options.model, interval_s, percent, options.json)
    else:
        print(round(percent, 3) if options.percent else max(1, int(interval_s)))
    return DONE


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), TROUBLE)
