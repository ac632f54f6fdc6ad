#!/bin/sh
# Runs one rank of an MPI program as if on a simulated node: on_node.sh PROGRAM ARGS...
#
# The launcher starts this once per rank. It takes the node of the rank from CLUSTER_PLACEMENT (a node name for each rank,
# separated by commas), sets the name for Cairn, records the process and its start in the directory CLUSTER_PIDS, and
# becomes the program, so that the recorded process is the program itself. It calls no other program, as it runs in every
# rank of every test.
set -eu

rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
nodes=$CLUSTER_PLACEMENT
before=0
while [ "$before" -lt "$rank" ]; do
  nodes=${nodes#*,}
  before=$((before + 1))
done
export SCR_NODE_NAME="${nodes%%,*}"

# Field 22, in the kernel's ticks. The name of the program, which may have blanks, ends with the last parenthesis.
start_of() { start=${20}; }
read -r stat < "/proc/$$/stat"
# shellcheck disable=SC2086  # the fields are words
start_of ${stat##*) }
printf '%s %s' "$$" "$start" > "$CLUSTER_PIDS/$rank"

exec "$@"
