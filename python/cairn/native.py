"""Calls the native command for settings, the halt file and the index."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from cairn.found_job import FoundJob
from cairn.halting import SIGNALLED, Halt

PATIENCE_S = 60
STOP_PATIENCE_S = 10  # for a request that is tried again; the run is not watched meanwhile
SECRET = "(not shown)"
# Settings of this node only.
OF_THIS_NODE = ("SCR_NODE_NAME",)


class Trouble(Exception):
    """The reason why the command cannot go on, with the remedy."""


class WrongUsage(Trouble):
    """The command line or a setting is wrong."""


def is_directory(path: str) -> bool:
    """Raises Trouble if that cannot be known: it is in the prefix directory, which may fail."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Trouble(f"prefix directory: {path}: {error.strerror}") from error


def check_prefix(prefix: str) -> None:
    """Raises Trouble if the prefix directory does not exist."""
    if not is_directory(prefix):
        raise Trouble(f"{prefix} is not a directory; name the prefix directory of the job by --prefix or SCR_PREFIX")


class Native:
    """The command `cairn` at `path`, about one prefix directory (None: that of the settings)."""

    def __init__(self, path: Path, prefix: Optional[str], environment: Mapping[str, str]) -> None:
        self.path = path
        self.environment = dict(environment)
        answer = self._json(["config", "--json", *(["-p", prefix] if prefix else [])])
        # Sizes are in bytes, whatever their units were.
        self.settings: Dict[str, str] = {one["key"]: str(one.get("bytes", one["value"])) for one in answer["settings"]}
        self._defaults = {one["key"] for one in answer["settings"] if one["source"] == "default"}
        self.prefix = self.settings["SCR_PREFIX"]

    def chosen(self, key: str) -> Optional[str]:
        """The value of a setting if it is set; None if the default applies."""
        return None if key in self._defaults else self.settings.get(key) or None

    def number(self, key: str) -> Optional[int]:
        """The same for a whole number."""
        text = self.chosen(key)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError as error:
            raise Trouble(f'{key}: "{text}" is not a whole number') from error

    def beside(self, added: Mapping[str, str]) -> "Native":
        """The same for a program whose environment also has `added`."""
        return Native(self.path, self.prefix, {**self.environment, **added}) if added else self

    def for_nodes(self) -> Dict[str, str]:
        """The environment with which the command finds the same settings on another node. Includes those of files, which
        may use variables that are not set there. Without secrets, as it will be on a command line."""
        return {key: value for key, value in self.settings.items() if key.startswith(("SCR_", "CAIRN_")) and value
                and value != SECRET and key not in self._defaults and key not in OF_THIS_NODE}

    def job(self) -> FoundJob:
        """The job whose caches the commands use."""
        return FoundJob.of_json(self._json(["job", "-p", self.prefix]))

    def explain(self) -> Dict[str, Any]:
        """The checkpoint of a restart, and the places of datasets."""
        answer: Dict[str, Any] = self._json(["explain", "--json", "-p", self.prefix])
        return answer

    def prefix_id(self, prefix: str) -> str:
        """The id of a prefix directory; empty if it has none."""
        return str(self._json(["index", "id", "--json", "-p", prefix])["id"])

    def halt(self) -> Halt:
        """The current requests."""
        return self._halt("--list")

    def ask_to_stop(self) -> Halt:
        """Requests a stop after the next checkpoint, because a signal was received. Returns the requests afterwards:
        another request stays."""
        return self._halt("--reason", SIGNALLED, patience_s=STOP_PATIENCE_S)

    def take_back(self, reason: str) -> Halt:
        """Withdraws this reason and no other. Returns the requests afterwards."""
        return self._halt("--unset-reason", "--reason", reason)

    def _halt(self, *arguments: str, patience_s: float = PATIENCE_S) -> Halt:
        answer = self._json(["halt", *arguments, "--json", "--prefix", self.prefix], patience_s=patience_s)
        return Halt.of_json(answer["prefixes"][0])

    def has_datasets(self) -> bool:
        """True if a dataset has ever been copied to the prefix directory."""
        return is_directory(f"{self.prefix}/.cairn/datasets")

    def can_make_whole(self) -> bool:
        """True if the prefix directory has a scavenged dataset that seems to be complete, and that is not published,
        outlived or refused."""
        if not is_directory(f"{self.prefix}/.cairn/scavenged"):
            return False
        scavenged = self._json(["index", "list", "--json", "-p", self.prefix], incomplete=True)["scavenged"]
        return any(one["state"] == "saved" for one in scavenged)

    def unfinished_copies(self, patience_s: float = PATIENCE_S) -> List[Dict[str, Any]]:
        """The datasets whose copy to the prefix directory a run has planned and not finished."""
        return list(self._json(["drain-node", "--list", "--json", "-p", self.prefix], patience_s=patience_s)["datasets"])

    def restart_name(self) -> Optional[str]:
        """The checkpoint in the prefix directory that a restart would begin with."""
        if not self.has_datasets():
            return None
        # If a record cannot be read, the command fails, but lists the others.
        name = self._json(["index", "list", "--json", "-p", self.prefix], incomplete=True)["restart"]
        return None if name is None else str(name)

    def _json(self, arguments: List[str], incomplete: bool = False, patience_s: float = PATIENCE_S) -> Any:
        answer = self._call(arguments, incomplete, patience_s)
        try:
            found = json.loads(answer)
        except ValueError as error:
            raise Trouble(f"cairn {arguments[0]} did not print JSON: {error}") from error
        if set(found) == {"errors"}:
            raise Trouble("; ".join(found["errors"]))
        return found

    def _call(self, arguments: List[str], incomplete: bool, patience_s: float) -> str:
        """The output of the command. Raises Trouble if it fails, unless the output may be incomplete."""
        command = [str(self.path), *arguments]
        try:
            done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience_s,
                                  check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Trouble(f"{self.path}: {error}") from error
        if done.returncode != 0 and not (incomplete and done.stdout):
            said = done.stderr.strip().removeprefix("cairn: error: ")
            raise Trouble(said or f"cairn {arguments[0]} failed with exit code {done.returncode}")
        return done.stdout


def cache_folders(settings: Mapping[str, str]) -> List[str]:
    """The directories with the files of a job with these settings on a node; %n stands for the name of the node."""
    stores = {key[len("STORE="):-len(" ENABLED")] for key, value in settings.items()
              if key.startswith("STORE=") and key.endswith(" ENABLED") and value != "0"}
    return sorted(stores | {settings["SCR_CACHE_BASE"], settings["SCR_CNTL_BASE"]})
