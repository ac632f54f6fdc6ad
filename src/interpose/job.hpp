#pragma once

#include "interpose/located.hpp"

/// The job of a program with MPI, in a library that is loaded once MPI is there. Without it, files
/// lie in the cache until the program ends.
namespace cairn::interpose {

/// By all ranks, after MPI_Init, and before MPI_Finalize.
void start_job(Process& process);
void finish_job(Process& process);

/// After an open for writing that went to the cache.
void note_opened(Process& process, const Located& file, int flags);
/// After a checkpoint file was opened for writing in its plain place.
void note_plain(Process& process, const Located& file);
/// After a file in the cache got this name, and is perhaps closed.
void note_renamed(Process& process, const Located& from, const Located& to);
void note_removed(Process& process, const Located& file);

}  // namespace cairn::interpose
