"""mpirun and mpiexec: that of Open MPI and that of MPICH (Hydra), told apart by --version."""

from __future__ import annotations

from typing import List, Optional, Sequence

from cairn.roles import Ask, Launcher, ask_here, per_node

_ONE = ("-np", "-n", "-c", "--np", "--n", "-N", "--npernode", "-npernode", "--map-by", "-map-by", "--bind-to",
        "-bind-to", "--rank-by", "--host", "-host", "-H", "--hostfile", "-hostfile", "--machinefile",
        "-machinefile", "-x", "--wdir", "-wdir", "-wd", "--path", "--prefix", "--output-filename",
        "--timeout", "--report-events", "--tmpdir", "--cpu-set", "--tune", "-am", "--app")


class OpenMpi(Launcher):
    """Open MPI's mpirun."""

    names = ("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "prterun")
    takes = {**{name: 1 for name in _ONE}, "--mca": 2, "-mca": 2, "--gmca": 2, "-gmca": 2, "--prtemca": 2,
             "--pmixmca": 2}
    lost_patience_s = 1.0  # its daemons end the processes when it is killed
    ranks_options = ("-np", "-n", "-c", "--np", "--n")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        count = per_node(ranks, len(nodes))
        return ["--host", ",".join(f"{node}:{count}" if count else node for node in nodes)]


_HYDRA_ONE = ("-np", "-n", "-ppn", "-perhost", "-f", "-hosts", "-host", "-hostfile", "-machinefile",
              "-wdir", "-path", "-map-by", "-bind-to", "-membind", "-topolib", "-launcher", "-bootstrap",
              "-launcher-exec", "-bootstrap-exec", "-rmk", "-iface", "-demux", "-outfile-pattern",
              "-errfile-pattern", "-prepend-pattern", "-localhost", "-envlist", "-genvlist", "-configfile")


class Hydra(Launcher):
    """MPICH's mpiexec, and those made of it. Its options may have one dash or two."""

    names = ("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich", "mpiexec", "mpirun")
    takes = {**{name: 1 for name in _HYDRA_ONE}, **{"-" + name: 1 for name in _HYDRA_ONE},
             "-env": 2, "-genv": 2, "--env": 2, "--genv": 2}
    lost_patience_s = 1.0  # its proxies end the processes when it is killed
    ranks_options = ("-np", "-n", "--np", "--n")

    def on_nodes(self, nodes: Sequence[str], left_out: Sequence[str],
                 ranks: Optional[int]) -> List[str]:
        count = per_node(ranks, len(nodes))
        return ["-hosts", ",".join(f"{node}:{count}" if count else node for node in nodes)]


def mpi_launcher(command: str, ask: Ask = ask_here) -> Launcher:
    """Whose launcher `mpirun` or `mpiexec` is."""
    said = ask([command, "--version"]).text
    return Hydra() if "HYDRA" in said or "hydra" in said else OpenMpi()
