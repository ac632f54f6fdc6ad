"""scr_list_dir: prints the cache and control directories of a job on this node."""

from __future__ import annotations

import argparse
import json
import os
import socket
from pathlib import Path
from typing import List, Sequence

from cairn.commands import for_scripts
from cairn.native import Native, Trouble, check_prefix

DONE, TROUBLE = 0, 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = for_scripts.parser(
        "scr_list_dir", "These are the directories in the caches, with blanks between them, or the control directory.",
        "Exit codes: 0 done, 1 the directories are not known, 2 wrong usage.")
    add = made.add_argument
    add("kind", metavar="control|cache", choices=("control", "cache"), help="Which directories")
    add("-b", "--base", action="store_true", help="The directories that all users and jobs share, as in the settings")
    add("-u", "--user", metavar="NAME", help="The user's name in paths, in place of SCR_USER_NAME")
    add("-j", "--jobid", metavar="ID", help="The job's id in paths, in place of SCR_JOB_ID")
    return made


def native_of(options: argparse.Namespace, native_path: Path) -> Native:
    """The native command for the job of the options."""
    chosen = {"SCR_USER_NAME": options.user, "SCR_JOB_ID": options.jobid}
    return Native(native_path, options.prefix, {**os.environ, **{key: value for key, value in chosen.items() if value}})


def names_of(native: Native, caches: Sequence[str], job: str) -> List[str]:
    """The names of the job's directory below each base. Normally there is one; after the prefix directory was moved there
    may be another."""
    found = sorted({Path(cache).name for cache in caches})
    if found:
        return found
    prefix_id = native.prefix_id(native.prefix)
    if not prefix_id:
        raise Trouble(f"no run has worked in the prefix directory {native.prefix} yet, so its job has no directories; "
                      "--base prints where they will be")
    return [f"cairn.{job}.{prefix_id}"]


def directories_of(options: argparse.Namespace, native: Native) -> List[str]:
    """The directories on this node."""
    job = native.job()
    node = native.settings["SCR_NODE_NAME"] or socket.gethostname()
    bases = [base.replace("%n", node) for base in (job.stores if options.kind == "cache" else [job.control_base])]
    if options.base:
        return bases
    return [f"{base}/{job.user}/{name}" for base in bases for name in names_of(native, job.caches, job.job)]


def answer(options: argparse.Namespace, native_path: Path) -> int:
    """The exit code."""
    if options.prefix:
        check_prefix(options.prefix)
    found = directories_of(options, native_of(options, native_path))
    print(json.dumps(found, indent=2) if options.json else " ".join(found))
    return DONE


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    return for_scripts.exit_code_of(lambda: answer(options, native_path), TROUBLE)
