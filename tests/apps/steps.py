"""Writes one .npy and one HDF5 file per rank and step, and goes on from the newest: steps.py LAST [LONG]. After step LONG it computes
for a minute."""

import glob
import re
import sys
import time

import h5py
import numpy
from mpi4py import MPI

rank, last, long = MPI.COMM_WORLD.rank, int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
found = [int(re.findall(r"\d+", name)[0]) for name in glob.glob(f"field.*.{rank}.npy")]
start = MPI.COMM_WORLD.allreduce(max(found, default=0), MPI.MIN)
if start > 0:
    field = numpy.load(f"field.{start}.{rank}.npy")
    with h5py.File(f"mesh.{start}.{rank}.h5", "r") as mesh:
        assert (field == start + rank * numpy.arange(5000)).all() and (mesh["x"][:] == field).all(), "WRONG VALUES"
if rank == 0:
    print(f"started from {start}", flush=True)
for step in range(start + 1, last + 1):
    time.sleep(0.25)
    MPI.COMM_WORLD.barrier()
    field = step + rank * numpy.arange(5000)
    numpy.save(f"field.{step}.{rank}.npy", field)
    with h5py.File(f"mesh.{step}.{rank}.h5", "w") as mesh:
        mesh["x"] = field
    if rank == 0:
        print(f"wrote {step}", flush=True)
    if step == long:
        time.sleep(60)
