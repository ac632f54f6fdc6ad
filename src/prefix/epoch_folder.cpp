#include "prefix/epoch_folder.hpp"

#include "base/is_absent.hpp"
#include "files/modes.hpp"
#include "prefix/contents.hpp"

namespace cairn {

Status EpochFolder::under_epoch(Status status) const {
  if (status || !is_absent(status.error())) return status;
  if (is_taken_over())
    return fail(
        Code::busy,
        "another run has taken over the prefix directory {}, so this run can no longer change it",
        folder_.prefix);
  const std::string epoch = folder_.epoch(epoch_);
  if (files_.info(epoch))
    return fail(Code::io,
                "something that this run has made in {} is missing: it was removed, or the file "
                "system of {} may not be mounted",
                epoch, folder_.prefix);
  return fail(Code::io,
              "{} of this run does not exist: the file system of {} may not be mounted, or another "
              "directory has its place",
              epoch, folder_.prefix);
}

/// A later owner closes the epoch before it records itself. An earlier epoch is recorded only in
/// another directory at this path.
bool EpochFolder::is_taken_over() const {
  const auto owner = read_owner(files_, folder_);
  if (owner && *owner && (*owner)->epoch > epoch_) return true;
  return files_.info(folder_.closed(epoch_)).has_value();
}

Status EpochFolder::begin(const DatasetInfo& dataset) const {
  const std::string pending = folder_.pending(epoch_, dataset);
  const std::string markers = DatasetFolder::markers(pending);
  CAIRN_TRY(under_epoch(files_.make_folder(pending, directory_for_all)));
  CAIRN_TRY(remove_all(files_, markers));  // of an earlier attempt, whose files are made again
  CAIRN_TRY(files_.make_folder(markers, directory_for_all));
  CAIRN_TRY(files_.sync_folder(pending));
  return files_.sync_folder(folder_.epoch(epoch_));
}

Status EpochFolder::plan(const DatasetRecord& record) const {
  const std::string pending = folder_.pending(epoch_, record.info);
  return under_epoch(
      write_file_atomically(files_, DatasetFolder::record(pending), encode(record), true));
}

/// Makes the move durable before any further step: after a power failure, one half must not be in
/// each place.
Status EpochFolder::adopt(const std::string& folder, const DatasetInfo& dataset) const {
  const std::string mine = folder_.pending(epoch_, dataset);
  CAIRN_TRY(under_epoch(files_.rename(folder, mine)));
  Status durable = files_.sync_folder(folder_.epoch(epoch_));
  if (durable) durable = files_.sync_folder(folder_of(folder));
  // The process that made the plan may have died between its rename and this sync.
  if (durable) durable = files_.sync_folder(mine);
  if (!durable) (void)files_.rename(mine, folder);
  return durable;
}

Status EpochFolder::withdraw(const std::string& folder) const {
  Status renamed = files_.rename(DatasetFolder::record(folder), DatasetFolder::withdrawn(folder));
  if (!renamed && !is_absent(renamed.error())) return renamed;  // absent: it was not a plan yet
  return under_epoch(files_.sync_folder(folder));
}

Status EpochFolder::abandon(const DatasetInfo& dataset) const {
  return remove_all(files_, folder_.pending(epoch_, dataset));
}

Status EpochFolder::remove_listing() const {
  CAIRN_TRY(files_.remove_file(folder_.listing()));
  return files_.sync_folder(folder_.root());
}

/// The older version of a dataset that is published again is moved aside meanwhile, like a dropped
/// one, so its files stay in any case.
Status EpochFolder::publish(const DatasetInfo& dataset, bool replaces, Seen seen,
                            bool& is_there) const {
  const std::string published = folder_.dataset(dataset);
  is_there = is_published(dataset);
  if (is_there) return files_.sync_folder(folder_.datasets());
  if (replaces) CAIRN_TRY(move_aside(dataset));
  const Status moved = files_.rename(folder_.pending(epoch_, dataset), published);
  // Another process may have published it since the check above.
  is_there = !moved && is_published(dataset);
  if (is_there) return files_.sync_folder(folder_.datasets());
  if (!moved) {
    (void)take_back(dataset, replaces);  // if that fails, the next owner finds it in transit
    return under_epoch(moved);
  }
  // Undone, so that the caller's cleanup after an error cannot harm a visible dataset. If that
  // fails, the dataset is visible.
  Status durable = files_.sync_folder(folder_.datasets());
  is_there = durable || seen == Seen::by_others ||
             !files_.rename(published, folder_.pending(epoch_, dataset));
  if (!is_there) (void)take_back(dataset, replaces);
  return durable;
}

/// Only if there is something to take its place: where a file system in trouble does not say
/// whether the dataset is published already, it must not be taken away. An earlier attempt may have
/// moved it and failed to take it back.
Status EpochFolder::move_aside(const DatasetInfo& dataset) const {
  const auto pending = files_.info(folder_.pending(epoch_, dataset));
  if (!pending) return under_epoch(tl::unexpected(pending.error()));
  const std::string aside = folder_.in_transit(epoch_, dataset);
  const Status moved = files_.rename(folder_.dataset(dataset), aside);
  const bool is_there = !moved && is_absent(moved.error()) && files_.info(aside);
  return is_there ? Status{} : under_epoch(moved);
}

Status EpochFolder::take_back(const DatasetInfo& dataset, bool replaces) const {
  if (!replaces) return {};
  return files_.rename(folder_.in_transit(epoch_, dataset), folder_.dataset(dataset));
}

/// The rename fails if an older version exists. Replacing it takes two renames, and two processes
/// could each mistake the other's dataset for the older version. A dataset that is visible and not
/// durable yet is not withdrawn, as another process may already have found it published.
Status EpochFolder::publish_once(const DatasetInfo& dataset) const {
  const std::string published = folder_.dataset(dataset);
  const std::string pending = folder_.pending(epoch_, dataset);
  // The owner may have died between the rename of the plan and its sync.
  const Status planned = files_.sync_folder(pending);
  if (!planned && !is_absent(planned.error())) return planned;
  CAIRN_TRY(remove_listing());
  const Status moved = files_.rename(pending, published);
  return moved || is_published(dataset) ? files_.sync_folder(folder_.datasets())
                                        : under_epoch(moved);
}

Result<bool> EpochFolder::look_for_published(const DatasetInfo& dataset) const {
  const auto exists = [this](const std::string& path) -> Result<bool> {
    const auto found = files_.info(path);
    if (!found && !is_absent(found.error())) return tl::unexpected(found.error());
    return found.has_value();
  };
  CAIRN_ASSIGN(const bool is_pending, exists(folder_.pending(epoch_, dataset)));
  if (is_pending) return false;
  CAIRN_ASSIGN(const bool is_there, exists(DatasetFolder::record(folder_.dataset(dataset))));
  if (is_there) return true;
  CAIRN_ASSIGN(const bool is_open, exists(folder_.epoch(epoch_)));
  if (is_open || is_taken_over()) return false;
  return tl::unexpected(under_epoch(fail(Code::not_found, "")).error());
}

bool EpochFolder::is_published(const DatasetInfo& dataset) const {
  return look_for_published(dataset).value_or(false);
}

}  // namespace cairn
