"""cairn doctor: checks whether this system is fit for a job, and prints what to do if it is not."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cairn.account import size_text, time_text
from cairn.colour import coloured
from cairn.command_line import Parser, report
from cairn.commands import for_scripts
from cairn.commands.for_scripts import Here
from cairn.commands.run import commands_of, tests_for
from cairn.folding import folded, who_text
from cairn.hosts import expand
from cairn.launchers import launcher_of
from cairn.launchers.mpi import OpenMpi
from cairn.native import Trouble, WrongUsage, cache_folders
from cairn.node_tests import unfit
from cairn.preloading import obstacle, remarks_on_preloaded
from cairn.program_mpi import OPEN_MPI, cannot_start, family_of_launcher, libraries_of, linked_mpis
from cairn.roles import Answer, Ask, ResourceManager, ask_here

GOOD, NOTE, BAD = "good", "note", "bad"
COLOURS = {GOOD: "green", NOTE: "yellow", BAD: "red"}
TMPFS_TYPES = ("tmpfs", "ramfs")
TOO_SMALL = 1 << 20  # the blocks and records of a single rank need more
SMALL = 1 << 30
MPI_LAUNCHERS = ("mpirun", "mpiexec")
LAUNCHERS = ("srun", "flux", "jsrun", *MPI_LAUNCHERS)


class Finding(NamedTuple):
    """A result of a check, with the remedy if it is not good."""

    level: str
    what: str
    remedy: str = ""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="cairn doctor",
        epilog="Exit codes: 0 fit, 1 not fit, 2 wrong usage.")
    made.add_argument("-p", "--prefix", metavar="DIR", help="The prefix directory, in place of SCR_PREFIX")
    made.add_argument("command", nargs=argparse.REMAINDER, metavar="LAUNCHER ... PROGRAM",
                      help="Also check that this program is built for the MPI of this launcher; give them as for cairn run. "
                      "With -- PROGRAM alone: check whether cairn wrap can preload its library into it")
    made.set_defaults(run_cmd=None, restart_cmd=None)
    made.add_argument("--all-nodes", action="store_true", help="Also test all nodes of the allocation")
    made.add_argument("--json", action="store_true", help="Print JSON")
    return made


def check_launchers(ask: Ask = ask_here) -> Iterator[Finding]:
    """Checks that a launcher works, and finds its MPI."""
    answers = {name: ask([name, "--version"]) for name in LAUNCHERS if shutil.which(name)}
    remedy = "load the module of the MPI with which the program was built, or set PATH"
    if not answers:
        yield Finding(BAD, "no launcher of MPI programs was found", remedy)
    works = any(answer.code == 0 for answer in answers.values())
    for name, answer in answers.items():
        if answer.code == 0:
            yield Finding(GOOD, f"launcher {name}: {whose(answer.text)}")
        else:
            yield Finding(NOTE if works else BAD, f"launcher {name} does not work: {first_line(answer.text)}", remedy)
    if answers.get("srun", Answer(1, "")).code == 0:
        yield from check_srun(ask)


@dataclass(frozen=True)
class OpenMpiHere:
    """Conditions under which Open MPI's launcher starts a program here."""

    environment: Mapping[str, str]
    options: Sequence[str] = ()  # of the launcher on the command line
    as_root: bool = False
    cores: Optional[int] = None  # of this machine; None: a resource manager limits the ranks

    def check(self, ask: Ask = ask_here) -> Iterator[Finding]:
        """Findings about problems only."""
        answers = {name: ask([name, "--version"]) for name in MPI_LAUNCHERS if shutil.which(name)}
        works = [name for name, answer in answers.items() if answer.code == 0]
        names = [name for name in works if family_of_launcher(answers[name].text) == OPEN_MPI]
        if not names:
            return
        launchers = " and ".join(names)
        trouble = OpenMpi().trouble_as_root(self.options, self.environment) if self.as_root else ""
        if trouble:
            yield Finding(BAD if names == works else NOTE, f"{launchers}: {trouble.partition(': ')[0]}",
                          trouble.partition(": ")[2])
        if self.cores is not None and not OpenMpi().oversubscribes(self.options, self.environment):
            yield Finding(NOTE, f"{launchers}: Open MPI's launcher starts at most {self.cores} ranks on this machine, one for "
                          "each core", "for more, with Open MPI 4: set OMPI_MCA_rmaps_base_oversubscribe=1; with Open MPI 5: "
                          "mpirun --oversubscribe. For simulated nodes, cairn run --nodes sets this itself")


def cores_here(cpus: Path = Path("/sys/devices/system/cpu")) -> int:
    """The number of cores that this process may use. A core may have several processors."""
    allowed = os.sched_getaffinity(0)
    return len({content_of(cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list") or str(cpu) for cpu in allowed})


def whose(version: str) -> str:
    """The output of --version on one line. Hydra of MPICH prints its version on the second line."""
    number = re.search(r"^\s+Version:\s*(\S+)", version, re.MULTILINE)
    return f"Hydra of MPICH {number.group(1)}" if "HYDRA" in version and number else first_line(version)


def first_line(text: str) -> str:
    """The first line of a command's output."""
    return (text.strip().splitlines() or ["it prints nothing"])[0].strip()


def check_srun(ask: Ask) -> Iterator[Finding]:
    """Without a suitable plugin, the ranks that srun starts do not find each other, and are separate programs."""
    answer = ask(["srun", "--mpi=list"])
    kinds = re.findall(r"^\s+(\w+)\s*$", answer.text, re.MULTILINE) if answer.code == 0 else []
    if kinds and not any(kind.startswith(("pmix", "pmi2", "cray")) for kind in kinds):
        yield Finding(NOTE, f"srun has only these MPI plugins: {', '.join(kinds)}; its ranks may not find each other",
                      "start programs with mpirun or mpiexec, or ask your site for Slurm's plugin pmix or pmi2")


def check_clustershell() -> Iterator[Finding]:
    """ClusterShell is needed for lists of hosts."""
    try:
        expand("n[1-2]")
        yield Finding(GOOD, "ClusterShell is installed")
    except Trouble as trouble:
        yield Finding(BAD, str(trouble), "install it")


def check_manager(manager: ResourceManager) -> Iterator[Finding]:
    """The nodes, the end of the allocation, and its survival of a dead node."""
    try:
        nodes = manager.nodes()
    except Trouble as trouble:
        yield Finding(BAD, f"resource manager {manager.name}: {trouble}", "set SCR_NODELIST")
        return
    if manager.name == "local":
        yield Finding(NOTE, "no resource manager: one node, and no spare nodes",
                      "to try recovery with simulated nodes: cairn run --nodes N --spares S")
        return
    left = manager.seconds_left(time.time())
    yield Finding(GOOD, f"resource manager {manager.name}: {len(nodes)} nodes")
    if left is None:
        yield Finding(NOTE, "the end of the allocation is unknown", "set SCR_END_TIME; SCR_HALT_SECONDS has no effect without it")
    else:
        yield Finding(GOOD, f"the allocation ends in {time_text(left)}")
    remedies = {"slurm": "start the job with --no-kill", "lsf": "set LSB_DJOB_COMMFAIL_ACTION=KILL_TASKS",
                "pbs": "submit the job with -W tolerate_node_failures=all"}
    if manager.name in remedies:
        yield Finding(NOTE, "it is unknown whether the allocation survives the loss of a node", remedies[manager.name])


def dead_mount(what: str, path: Path) -> Optional[Finding]:
    """A parent directory of `path` that is a FUSE mount without its process: nothing below it can be read or created."""
    for above in reversed([path, *path.parents]):
        try:
            above.stat()
        except OSError as error:
            return None if error.errno != errno.ENOTCONN else Finding(
                BAD, f"{what}: the process that served the mount {above} has ended",
                f"unmount it (fusermount3 -u {above}), then mount it again")
    return None


def why_unwritable(folder: Path) -> str:
    """Why no directory can be created there; empty if one can. access() does not show that, as it allows root everything,
    even in /proc."""
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".cairn.doctor.", dir=folder))
    except OSError as error:
        return error.strerror
    return ""


def check_prefix(prefix: str) -> Iterator[Finding]:
    """It must exist and be writable."""
    dead = dead_mount(f"prefix directory {prefix}", Path(prefix))
    unwritable = "" if dead else why_unwritable(Path(prefix))
    if dead:
        yield dead
    elif not os.path.isdir(prefix):
        state = "is not a directory" if os.path.exists(prefix) else "does not exist"
        yield Finding(BAD, f"prefix directory {prefix} {state}", "create it, or name another with --prefix or SCR_PREFIX")
    elif unwritable:
        yield Finding(BAD, f"prefix directory {prefix} cannot be written ({unwritable})",
                      "name another with --prefix or SCR_PREFIX")
    else:
        free = shutil.disk_usage(prefix).free
        yield Finding(GOOD if free >= TOO_SMALL else BAD, f"prefix directory {prefix}: {size_text(free)} free",
                      "" if free >= TOO_SMALL else "free space there, or name another with --prefix or SCR_PREFIX")
        if file_system_of(prefix) in TMPFS_TYPES:
            yield Finding(NOTE, f"{prefix} is in the memory of this node: if the node fails, it is lost",
                          "set SCR_PREFIX to a directory on the parallel file system")
        yield from check_left_by_scr(Path(prefix))


def check_left_by_scr(prefix: Path) -> Iterator[Finding]:
    """Checkpoints of SCR in a directory without datasets of Cairn."""
    index, datasets = prefix / ".scr" / "index.scr", prefix / ".cairn" / "datasets"
    try:
        is_left = index.exists() and not datasets.is_dir()
    except OSError as error:
        yield Finding(NOTE, f"whether SCR left checkpoints in {prefix} cannot be found out: {error.filename}: "
                      f"{error.strerror}", "make that readable for you")
        return
    if is_left:
        yield Finding(NOTE, f"SCR left checkpoints in {prefix} that no run of Cairn has imported",
                      "start the program: SCR_Init imports the one to restart from, which cairn explain names")


def file_system_of(path: str, mounts: Optional[str] = None) -> str:
    """The type of the file system, from the longest mount point above the path."""
    best, kind = "", "?"
    text = Path("/proc/mounts").read_text(encoding="utf-8") if mounts is None else mounts
    for words in map(str.split, text.splitlines()):
        point = words[1].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, words[2]
    return kind


def there(path: Path) -> Path:
    """The directory, or its nearest existing parent."""
    while not path.exists():
        path = path.parent
    return path


def check_cache(base: str, node: str, rank_bytes: int, memory_left: Optional[int], makes_it: bool = True) -> Iterator[Finding]:
    """Space for a rank's checkpoint, permissions, and what may delete the cache."""
    wanted = Path(base.replace("%n", node))
    dead = dead_mount(f"cache {base}", wanted)
    if dead:
        yield dead
        return
    folder = there(wanted)
    unwritable = why_unwritable(folder)
    if unwritable:
        yield Finding(BAD, f"cache {base}: {folder} cannot be written ({unwritable})",
                      "choose another with SCR_CACHE_BASE or STORE")
        return
    if folder != wanted and not makes_it:
        yield Finding(BAD, f"cache {base} does not exist, and MKDIR=0 keeps a run from creating it",
                      "create it, or remove MKDIR=0 from its STORE line")
        return
    if folder != wanted and "%n" not in base:
        yield Finding(NOTE, f"cache {base} does not exist; the first run creates it in {folder}",
                      "if a disk should be mounted there, mount it; or choose another with SCR_CACHE_BASE or STORE")
    free = shutil.disk_usage(folder).free
    kind = file_system_of(str(folder.resolve()))
    left = memory_left if kind in TMPFS_TYPES else None
    yield check_room(f"cache {base} ({kind})", free, left, rank_bytes)
    if left is not None:
        yield Finding(NOTE, f"the job may use {size_text(left)} more memory, and files in {base} count as memory",
                      "remove old caches (cairn clean), ask for more memory, or choose a cache on a disk with SCR_CACHE_BASE "
                      "or STORE")
    if str(folder.resolve()).startswith("/dev/shm") and removes_ipc():
        yield Finding(NOTE, "systemd-logind removes a user's files in /dev/shm when the user's last session ends",
                      "ask for RemoveIPC=no in logind.conf")


def check_room(cache: str, free: int, memory_left: Optional[int], rank_bytes: int) -> Finding:
    """Checks whether a checkpoint of one rank fits; rank_bytes is 0 if its size is unknown."""
    limited = memory_left is not None and memory_left < free
    room = min(free, memory_left) if memory_left is not None else free
    what = f"{cache}: {size_text(room)} " + ("of memory left for the job" if limited else "free")
    larger = "choose a larger one with SCR_CACHE_BASE or STORE" + (", or ask for more memory" if limited else "")
    if room < rank_bytes:
        return Finding(BAD, f"{what}, but each rank writes {size_text(rank_bytes)} to a checkpoint", larger)
    if rank_bytes:
        return Finding(GOOD, f"{what}, room for a checkpoint of {room // rank_bytes} ranks")
    if room < TOO_SMALL:
        return Finding(BAD, f"{what}, too little for any checkpoint", larger)
    if room < SMALL:
        return Finding(NOTE, f"{what}; it is unknown whether a checkpoint fits",
                       "set CAIRN_CHECKPOINT_SIZE to the size of a checkpoint per rank, and run cairn doctor again")
    return Finding(GOOD, what)


def removes_ipc(etc: Path = Path("/etc/systemd"), running: Path = Path("/run/systemd/system")) -> bool:
    """True if logind runs, and RemoveIPC is not off. Always false for system users."""
    if not running.exists() or os.getuid() < 1000:
        return False
    said = ""
    for path in [etc / "logind.conf", *sorted((etc / "logind.conf.d").glob("*.conf"))]:
        try:
            said = (re.findall(r"^\s*RemoveIPC\s*=\s*(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
                    or [said])[-1]
        except OSError:
            continue
    return said.lower() not in ("no", "false", "0", "off")


class MemoryFiles(NamedTuple):
    """The files of a cgroup with its limit, its use, and the statistics of the file cache, which the kernel frees when it
    needs memory. (Files in /dev/shm do not belong to it.)"""

    limit: str
    used: str
    reclaimable: Tuple[str, ...]

    def left(self, folder: Path) -> Optional[int]:
        """Free bytes; None without a limit."""
        limit = re.fullmatch(r"(\d+)\s*", content_of(folder / self.limit))
        if not limit or int(limit.group(1)) >= 1 << 60:
            return None
        given_back = re.findall(rf"^(?:{'|'.join(self.reclaimable)}) (\d+)$", content_of(folder / "memory.stat"), re.MULTILINE)
        used = int(content_of(folder / self.used) or 0) - sum(map(int, given_back))
        return max(0, int(limit.group(1)) - max(0, used))


def content_of(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""


MEMORY_1 = MemoryFiles("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
MEMORY_2 = MemoryFiles("memory.max", "memory.current", ("active_file", "inactive_file"))


def memory_left(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Optional[int]:
    """The memory that may still be used: the minimum over this process's cgroup and its parents, of version 1 or 2; None
    without a limit."""
    found: List[Optional[int]] = []
    for line in content_of(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        base, files = (root, MEMORY_2) if controllers == "" else (root / "memory", MEMORY_1)
        folder = base / path.lstrip("/")
        found += [files.left(one) for one in (folder, *folder.parents) if one == base or base in one.parents]
    return min((left for left in found if left is not None), default=None)


WIPES_UNKNOWN = Finding(NOTE, "it is unknown whether the site removes node-local files at the end of a job (an epilog, a private /tmp)",
                        "ask your site; keep SCR_FLUSH above 0, and the next job can restart from the prefix directory")


def check_slurm_wipes(ask: Callable = ask_here) -> Iterator[Finding]:
    """Features of Slurm that remove node-local files. Without an epilog, older versions print (null), and newer ones,
    which number epilogs, print nothing."""
    answer = ask(["scontrol", "show", "config"])
    said = dict(re.findall(r"^(\w+)(?:\[\d+\])?\s*=\s*(.*?)\s*$", answer.text, re.MULTILINE)) if answer.code == 0 else {}
    if not said:
        yield WIPES_UNKNOWN
    if "tmpfs" in said.get("JobContainerType", ""):
        yield Finding(NOTE, "Slurm gives each job its own /tmp and /dev/shm, and removes them at its end",
                      "keep SCR_FLUSH above 0, and the next job restarts from the prefix directory")
    if said.get("Epilog", "(null)") not in ("(null)", ""):
        yield Finding(NOTE, "an epilog runs at the end of each job, and may remove the caches",
                      "ask your site what it removes; keep SCR_FLUSH above 0, and the next job can restart from the prefix directory")


def check_nodes(here: Here) -> Iterator[Finding]:
    """The tests of cairn run."""
    nodes = here.nodes()
    notes: List[str] = []
    found = unfit(tests_for(here.native, here.manager, None, notes.append), nodes)
    for text in notes:
        yield Finding(NOTE, text)
    for why, names in folded(found).items():
        yield Finding(BAD, f"{who_text(names)} {why}", "exclude it (SCR_EXCLUDE_NODES), or repair it")
    yield Finding(GOOD if len(found) < len(nodes) else BAD, f"{len(nodes) - len(found)} of {len(nodes)} nodes are fit",
                  "" if len(found) < len(nodes) else
                  f"cairn run needs {here.manager.remote().name} on the nodes, or SCR_NODE_TESTS=none")


def check_program(options: argparse.Namespace) -> Iterator[Finding]:
    """Checks the program on the command line, if there is one."""
    if not options.command:
        return
    alone = program_alone(options.command)
    if alone:
        yield from check_alone(alone)
        return
    commands = commands_of(options)
    found = commands.mismatch() or cannot_start(commands.program[0])
    if found:
        yield Finding(BAD, *found)
        return
    program, mpi = commands.program[0], commands.launcher.mpi
    linked = linked_mpis(libraries_of(program))
    if linked and mpi:
        yield Finding(GOOD, f"{program} is built for {linked[0].mpi}, and {commands.name} starts its programs")
    else:
        yield Finding(NOTE, f"it is unknown for which MPI {program} is built: its libraries do not show it",
                      "nothing to do: SCR_Init checks it when the program starts")
    hindered = obstacle(program)
    if hindered:
        yield Finding(NOTE, *hindered)


def program_alone(words: Sequence[str]) -> str:
    """The program of "-- PROGRAM", without a launcher; empty if there is one."""
    if len(words) < 2 or words[0] != "--":
        return ""
    with suppress(WrongUsage):
        launcher_of(words[1])
        return ""
    return words[1]


def check_alone(program: str) -> Iterator[Finding]:
    """Whether the program can start, and cairn wrap can be in it."""
    found = cannot_start(program)
    if found:
        yield Finding(BAD, *found)
        return
    linked = linked_mpis(libraries_of(program))
    if linked:
        yield Finding(GOOD, f"{program} is built for {linked[0].mpi}")
    hindered = obstacle(program)
    if hindered:
        yield Finding(NOTE, *hindered)
    else:
        yield Finding(GOOD, f"cairn wrap can preload its library into {program}")


def findings(here: Here, all_nodes: bool, options: Sequence[str] = ()) -> Iterator[Finding]:
    """All findings. `options`: those of the launcher on the command line."""
    native, manager, settings = here.native, here.manager, here.native.settings
    yield from check_launchers()
    yield from OpenMpiHere(os.environ, options, os.geteuid() == 0, cores_here() if manager.name == "local" else None).check()
    yield from check_clustershell()
    yield from (Finding(NOTE, *remark) for remark in remarks_on_preloaded(os.environ))
    yield from check_manager(manager)
    yield from check_prefix(native.prefix)
    left = memory_left()
    per_rank = native.number("CAIRN_CHECKPOINT_SIZE") or 0
    for base in cache_folders(settings):
        yield from check_cache(base, settings["SCR_NODE_NAME"], per_rank, left, settings.get(f"STORE={base} MKDIR") != "0")
    if manager.name == "slurm":
        yield from check_slurm_wipes()
    elif manager.name in ("flux", "lsf", "pbs"):
        yield WIPES_UNKNOWN
    if all_nodes:
        yield from check_nodes(here)


def main(arguments: Sequence[str], native_path: Path) -> int:
    """The exit code."""
    options = parser().parse_args(list(arguments))
    found: List[Finding] = []
    try:
        here = for_scripts.here(options.prefix, native_path)
        has_launcher = bool(options.command) and not program_alone(options.command)
        launcher_options = commands_of(options).options if has_launcher else ()
        for finding in chain(check_program(options), findings(here, options.all_nodes, launcher_options)):
            found.append(finding)
            if not options.json:
                print(text_of(finding))
    except Trouble as trouble:
        report(trouble)
        return 2 if isinstance(trouble, WrongUsage) else 1
    if options.json:
        print(json.dumps({"findings": [one._asdict() for one in found]}, indent=1))
    return 1 if any(one.level == BAD for one in found) else 0


def text_of(finding: Finding) -> str:
    """A finding as text."""
    level = coloured(f"{finding.level:<4}", COLOURS[finding.level], sys.stdout)
    return f"{level}  {finding.what}" + (f"\n      -> {finding.remedy}" if finding.remedy else "")
