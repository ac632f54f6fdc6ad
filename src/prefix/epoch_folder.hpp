// The steps that move a dataset's folder from the folder of an epoch to the published datasets:
// each rename and each sync, in the order that survives a crash.
#pragma once

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"

namespace cairn {

/// Local. The steps that a process may do if it knows the number of its epoch; they need no
/// message. Every step works in the epoch's folder, or renames something out of it: after a later
/// owner has closed that folder, steps fail with busy. The result of a step is durable when it
/// returns.
class EpochFolder {
 public:
  EpochFolder(Files& files, PrefixFolder folder, std::uint64_t epoch)
      : files_(files), folder_(std::move(folder)), epoch_(epoch) {}

  std::uint64_t epoch() const { return epoch_; }

  /// Makes the folder for the manifests of a dataset and the markers of its plan.
  Status begin(const DatasetInfo& dataset) const;
  /// Call when all manifests exist. From then on any process can do parts of the dataset.
  Status plan(const DatasetRecord& record) const;
  /// Takes over a plan that an earlier owner left in `folder`, with all parts that are done.
  Status adopt(const std::string& folder, const DatasetInfo& dataset) const;
  /// Ends the plan in `folder`: no process continues it any more, even after a power failure.
  /// Remove staged files and markers only after this: otherwise a later owner might have the plan,
  /// and count a part as done by the markers above it.
  Status withdraw(const std::string& folder) const;
  /// Removes what begin() made, and the manifests.
  Status abandon(const DatasetInfo& dataset) const;

  /// Removes the listing, which would be outdated. Call before publish().
  Status remove_listing() const;
  /// Which processes can see the dataset before it is durable: if only this one, a publication that
  /// cannot be made durable is undone.
  enum class Seen { by_us_only, by_others };
  /// Publishes the dataset, unless another process has done so. All its files and manifests must be
  /// durable. If it `replaces` its older version, that is moved aside. After an error it may be
  /// published and visible all the same (`is_there`), but a power failure may undo that: call this
  /// again.
  Status publish(const DatasetInfo& dataset, bool replaces, Seen seen, bool& is_there) const;
  /// Like publish(), for a process that found all parts done, while other processes may do the
  /// same. Removes the listing, and counts an existing dataset as published. Never replaces one.
  Status publish_once(const DatasetInfo& dataset) const;
  /// True if the dataset is among the published ones, and no longer in the epoch's folder. Fails if
  /// another directory may be at the path of the prefix directory.
  Result<bool> look_for_published(const DatasetInfo& dataset) const;
  /// The same; false where that cannot be seen.
  bool is_published(const DatasetInfo& dataset) const;

  /// Converts not_found: to busy if a later owner has closed the folder of this epoch, else to io,
  /// as another directory may be at this path for now.
  Status under_epoch(Status status) const;

 private:
  bool is_taken_over() const;
  Status move_aside(const DatasetInfo& dataset) const;
  Status take_back(const DatasetInfo& dataset, bool replaces) const;

  Files& files_;
  PrefixFolder folder_;
  std::uint64_t epoch_;
};

}  // namespace cairn
