// Makes a dataset, from Start to Complete: where its files go, whether they are what the program
// says, and how it is protected or published.
#pragma once

#include <optional>
#include <string>

#include "base/once.hpp"
#include "session/cached_datasets.hpp"
#include "session/flushing.hpp"
#include "session/late_protection.hpp"
#include "session/rank_in_names.hpp"
#include "session/routing.hpp"

namespace cairn {

/// Functions with a communicator are collective.
class DatasetWriter {
 public:
  /// All must outlive this.
  DatasetWriter(ThisRun& run, CachedDatasets& cached, PrefixSide& prefix, Flushing& flushing,
                LateProtection& late, Routing& routing)
      : run_(run),
        cached_(cached),
        prefix_(prefix),
        flushing_(flushing),
        late_(late),
        routing_(routing) {}

  /// Later than all that are there.
  Uuid draw_uuid() const;

  /// `name` may be empty. The program is blocked since `called_us`. Errors are agreed; nothing is
  /// begun then.
  Status begin(Communicator& comm, const Uuid& uuid, const std::string& name, std::uint32_t flags,
               std::int64_t called_us);
  /// Of the rank's files, as they are now; those in place are looked at in end() only, because
  /// other ranks may still be writing to them.
  Result<std::vector<FileEntry>> collect_files(bool valid) const;
  NameEvidence evidence() const { return evidence_of(routing_.asked_for(), run_.rank); }
  /// `some_failed`: collect_files() did, on some rank; `of_all`: the largest evidence. Protects and
  /// commits, or publishes. On an error, which is agreed, the dataset is gone.
  Status end(Communicator& comm, const Result<std::vector<FileEntry>>& files, bool some_failed,
             const NameEvidence& of_all);

  /// The one that is being made, or was last.
  const CachedDataset& current() const { return current_; }
  std::int64_t started_us() const { return started_us_; }
  /// Local, the same on all ranks: begin() refuses one of the same level, as there is no room to
  /// protect an older one.
  bool is_refused_for_older() const { return !late_.refuse_another(level()); }
  /// So much is known of the size of datasets: warns once if they do not fit.
  void warn_if_too_small(Communicator& comm, std::uint64_t data_bytes);

 private:
  bool is_protected_late() const;
  Status make(Communicator& comm, const Uuid& uuid, const std::string& name, std::uint32_t flags);
  Status make_place(Communicator& comm);
  bool has_gone_back() const;
  Status make_rank_folder(Communicator& comm);
  Status agree_on_files(Communicator& comm, const Result<std::vector<FileEntry>>& mine,
                        const NameEvidence& of_all);
  void name_shared_file(Communicator& comm, Error& error, const NameEvidence& of_all);
  Result<std::vector<FileEntry>> look_at_files() const;
  Status check_names(Communicator& comm, const std::vector<FileEntry>& mine,
                     const NameEvidence& of_all);
  Status accept_no_files();
  RankRecord record_of_current(std::vector<FileEntry> files) const;
  Status protect(Communicator& comm, std::vector<FileEntry> files);
  Status commit_as_written(Communicator& comm, std::vector<FileEntry> files);
  Status publish(Communicator& comm);
  void take_in(Communicator& comm, RankRecord record, std::int64_t written_us);
  void report_commit(Communicator& comm, const RankRecord& record, std::int64_t written_us);
  void abandon(Communicator& comm);
  void log_end(const Status& done);
  std::string warning_of_open_elsewhere();
  const Level& level() const { return run_.levels[level_]; }

  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  Flushing& flushing_;
  LateProtection& late_;
  Routing& routing_;

  CachedDataset current_;
  std::size_t level_ = 0;
  std::int64_t started_us_ = 0;
  std::int64_t writes_since_us_ = 0;
  bool is_size_checked_ = false;
  Once first_line_;
  Once no_files_warning_;
  Once open_elsewhere_warning_;
  std::string
      open_elsewhere_;  ///< a file of this rank's last dataset that another process has open
  Once missing_path_;   ///< in a dataset, as the prefix directory is missing
  ChangeFilter refused_starts_;  ///< why no dataset can be begun in the prefix directory
};

}  // namespace cairn
