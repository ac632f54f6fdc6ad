// From files written to a dataset that exists: protect, prepare, agree, commit.
#pragma once

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// Collective. `record` has dataset, rank, files and the encoding's set; checksums, geometry and
/// parity are made here, and the record is committed as its generation.
///
/// The protocol: data and parity are written and synced; the record is written beside its place and
/// synced; all ranks agree that they have come so far; only then does each rename its record into
/// place. So one committed record anywhere proves that every rank's part was complete, and a
/// prepared record next to it may be taken for committed.
///
/// Where the files were protected before, `intact_by` is the record they must still match after the
/// new checksums were taken: so new checksums are never taken of damaged bytes unseen.
///
/// Else the program wrote them: invalid if this process still has one open for writing, or if a
/// file's size or time of change is no longer what the record says. `open_elsewhere` is as for
/// check_closed().
///
/// Errors are agreed. The rank's folder is then as it was, but for parity and prepared record of
/// this generation, which mean nothing if no rank `has_committed`: its record has its name.
Status protect_and_commit(Communicator& comm, Files& files, Store& store, const RankFolder& folder,
                          RankRecord& record, const Settings& settings, const RankRecord* intact_by,
                          std::string* open_elsewhere = nullptr, bool* has_committed = nullptr);

/// Collective. `record` has dataset, rank, files, the exposure and the encoding of a rank alone.
/// Commits it by the same protocol without reading the files and without a sync: so it survives the
/// death of processes, and the loss of no node. Invalid as above. Errors are agreed.
Status commit_written(Communicator& comm, Files& files, const RankFolder& folder,
                      const RankRecord& record, std::string* open_elsewhere = nullptr);

/// What has become of one rank's part, over all tries to protect it.
struct LateCommit {
  bool has_committed = false;  ///< its record has its name, whatever became of the others
  /// Whether all syncs of the program's files have succeeded. After one that failed the kernel may
  /// drop what it could not write, and reports that only once.
  Status synced;
};

/// Collective. As protect_and_commit(), of what commit_written() has committed, as a later
/// generation. Invalid, naming dataset and file, if a file is no longer what the record says. The
/// program may be at work meanwhile, so no file is tried for being open. Fails where an earlier try
/// could not sync the program's files.
Status protect_written(Communicator& comm, Files& files, Store& store, const RankFolder& folder,
                       RankRecord& record, std::uint64_t encode_bytes, LateCommit& mine);

/// Local: the step of the protocol after all ranks have agreed. After an error it may be called
/// again; `has_committed`: the record has its name, durable or not.
Status commit_prepared(Files& files, const Store& store, const RankFolder& folder,
                       bool& has_committed);

/// Collective. A generation later than the old one, and one that no other run can have given, not
/// even a run that died with this step half done on nodes that are not here now.
std::uint64_t later_generation(Communicator& comm, Clock& clock, std::uint64_t old);

/// Local: writes what a committed record file must hold, in one step.
Status rewrite_record(Files& files, const Store& store, const RankFolder& folder, Bytes content);

}  // namespace cairn
