"""How long a checkpoint through ADIOS2, engine BP5, stops a program of one process:

    python3 adios2_bp5.py On|Off DIRECTORY FIELDS MIB CHECKPOINTS

As `blocked` does it: each step has FIELDS fields of MIB mebibytes, the first two warm up, and a step is begun when the
one before it is written. Prints JSON.
"""

import json
import sys
import time
from pathlib import Path

import adios2
import numpy

WARM_UP = 2


def measure(way: str, directory: Path, fields: int, count: int, checkpoints: int) -> "list[float]":
    data = numpy.zeros((fields, count))
    blocked = []
    for step in range(WARM_UP + checkpoints):
        data += 1
        io = adios2.Adios().declare_io("checkpoint")
        io.set_engine("BP5")
        io.set_parameters({"AsyncWrite": way})
        variables = [io.define_variable(f"field{i}", data[i], [count], [0], [count]) for i in range(fields)]
        engine = io.open(str(directory / f"step.{step}.bp"), adios2.bindings.Mode.Write)
        begin = time.monotonic()
        engine.begin_step()
        for variable, field in zip(variables, data):
            engine.put(variable, field, adios2.bindings.Mode.Deferred)
        engine.end_step()
        blocked.append(time.monotonic() - begin)
        engine.close()
    return blocked[WARM_UP:]


def main() -> None:
    way, directory, fields, mib, checkpoints = sys.argv[1:]
    count = (int(mib) << 20) // 8
    print(json.dumps({"blocked": measure(way, Path(directory), int(fields), count, int(checkpoints))}))


if __name__ == "__main__":
    main()
