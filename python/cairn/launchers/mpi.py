"""mpirun and mpiexec of Open MPI and of MPICH (Hydra), distinguished by --version."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from cairn.program_mpi import family_of_launcher
from cairn.roles import Ask, Launcher, ask_here, per_node


AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
ENV_LIST = "mca_base_env_list"  # variables for other nodes


def _dashed(names: str) -> List[str]:
    """Each name with one dash and with two."""
    return [dashes + name for name in names.split() for dashes in ("-", "--")]


# From mpirun --help all of Open MPI 4.1, and the additions of 5.0.
_ONE = """
    H N am app bind-to c cartofile cf cpu-list cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile display
    host hnp hostfile launch-agent machinefile map-by max-restarts max-vm-size n np npernode npersocket ompi-server output
    output-filename path personality ppr prefix preload-files rank-by rankfile report-events report-pid report-uri rf
    runtime-options stdin timeout tmpdir tune wd wdir with-ft x xml-file xterm
    """
_TWO = "gmca mca omca pmixmca prtemca"
_FLAGS = """
    allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous debug debug-daemons debug-daemons-file
    debug-devel disable-recovery display-allocation display-devel-allocation display-devel-map display-diffable-map
    display-map display-topo do-not-launch do-not-resolve dvm enable-instant-on-support enable-recovery forward-signals
    fwd-mpirun-port get-stack-traces help index-argv-by-rank leave-session-attached merge-stderr-to-stdout nolocal
    nooversubscribe noprefix novm output-proctable oversubscribe pernode preload-binary quiet report-bindings
    report-child-jobs-separately report-state-on-timeout set-cwd-to-session-dir show-progress tag-output timestamp-output tv
    use-hwthread-cpus use-regexp verbose version xml
    """


class OpenMpi(Launcher):
    """Open MPI's mpirun. With ssh it passes only OMPI_* to other nodes."""

    names = ("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "prterun")
    takes = {**{name: 1 for name in _dashed(_ONE)}, **{name: 2 for name in _dashed(_TWO)}}
    flags = frozenset(_dashed(_FLAGS))
    one_dash = True
    lost_patience_s = 1.0  # its daemons end the processes when it is killed
    ranks_options = ("-np", "-n", "-c", "--np", "--n")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        count = per_node(ranks, len(nodes))
        return ["--host", ",".join(f"{node}:{count}" if count else node for node in nodes)]

    def passing(self, variables: Sequence[str], options: Sequence[str], environment: Mapping[str, str]) -> List[str]:
        if ENV_LIST in options or f"OMPI_MCA_{ENV_LIST}" in environment:
            return []  # with that list mpirun does not accept -x
        given = {value.partition("=")[0] for name, value in zip(options, options[1:]) if name in ("-x", "--x")}
        return [word for name in variables if name not in given for word in ("-x", name)]

    def trouble_as_root(self, options: Sequence[str], environment: Mapping[str, str]) -> str:
        allowed = all(environment.get(key) == "1" for key in AS_ROOT) or any(
            word.lstrip("-") == "allow-run-as-root" for word in options)
        return "" if allowed else (
            f"Open MPI's launcher starts no programs for root: set {' and '.join(f'{key}=1' for key in AS_ROOT)}, or "
            "work as another user")


    def oversubscribes(self, options: Sequence[str], environment: Mapping[str, str]) -> bool:
        """True if it may start more ranks than there are cores."""
        asked = any("oversubscribe" in word.lower() and "nooversubscribe" not in word for word in options)
        return (asked or environment.get("OMPI_MCA_rmaps_base_oversubscribe", "0") not in ("0", "false")
                or environment.get("PRTE_MCA_rmaps_default_mapping_policy", "").endswith(":oversubscribe"))


# From mpiexec --help of MPICH 4.0, and further options of Hydra.
_HYDRA_ONE = """
    bind-to bootstrap bootstrap-exec configfile demux envlist errfile errfile-pattern f genvlist gpus-per-proc host hostfile
    hostlist hosts iface launcher launcher-exec localhost machine machinefile machinelist machines map-by membind n
    nameserver np order-nodes outfile outfile-pattern path perhost ppn prepend-pattern rmk topolib usize wdir
    """
_HYDRA_TWO = "env genv"
_HYDRA_FLAGS = """
    debug disable-auto-cleanup disable-hostname-propagation disable-x enable-x envall envnone genvall genvnone help info
    pmi-port prepend-rank print-all-exitcodes profile skip-launch-node verbose version
    """


class Hydra(Launcher):
    """MPICH's mpiexec, and its derivatives. It passes the whole environment, unless its options select variables."""

    names = ("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "mpiexec", "mpirun")
    takes = {**{name: 1 for name in _dashed(_HYDRA_ONE)}, **{name: 2 for name in _dashed(_HYDRA_TWO)}}
    flags = frozenset(_dashed(_HYDRA_FLAGS))
    one_dash = True
    lost_patience_s = 1.0  # its proxies end the processes when it is killed
    ranks_options = ("-np", "-n", "--np", "--n")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        count = per_node(ranks, len(nodes))
        return ["-hosts", ",".join(f"{node}:{count}" if count else node for node in nodes)]


def mpi_launcher(command: str, ask: Ask = ask_here) -> Launcher:
    """The launcher behind `mpirun` or `mpiexec`."""
    said = ask([command, "--version"]).text
    launcher: Launcher = Hydra() if "HYDRA" in said or "hydra" in said else OpenMpi()
    launcher.mpi = family_of_launcher(said)
    return launcher
