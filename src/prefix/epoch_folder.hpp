// The steps by which a dataset's folder goes from the folder of an epoch to where datasets are:
// each rename and each sync, in the one order that outlives a crash.
#pragma once

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"

namespace cairn {

/// Local. What the rights of one epoch allow any process that knows its number, without a message.
/// Every step is a rename out of the epoch's folder, or works in it: once a later owner has closed
/// the folder, a step fails with busy. What a step did is durable when it returns.
class EpochFolder {
 public:
  EpochFolder(Files& files, PrefixFolder folder, std::uint64_t epoch)
      : files_(files), folder_(std::move(folder)), epoch_(epoch) {}

  /// Makes the folder for the manifests of a dataset and the markers of its plan.
  Status begin(const DatasetInfo& dataset) const;
  /// All manifests are there: from here on any process can do parts of the dataset.
  Status plan(const DatasetRecord& record) const;
  /// Takes over a plan that an earlier owner left in `folder`, with all that was done of it.
  Status adopt(const std::string& folder, const DatasetInfo& dataset) const;
  /// No process carries the plan in `folder` on any more, also after a power failure. Staged files
  /// and markers may be removed only after this: a later owner may have the plan by now, and would
  /// take a part for done by the markers above it.
  Status withdraw(const std::string& folder) const;
  /// Removes what begin() made; manifests included.
  Status abandon(const DatasetInfo& dataset) const;

  /// The listing does not say any more which datasets are there. Comes before publish().
  Status remove_listing() const;
  /// Whether what cannot be made durable at once may be taken back.
  enum class Seen { by_us_only, by_others };
  /// The dataset is there from here on, unless another process has published it already; all its
  /// files and manifests are durable. One that `replaces` its older self moves that aside. After an
  /// error it may be there all the same (`is_there`), for all who look, but a power failure may
  /// take it away again: call it once more.
  Status publish(const DatasetInfo& dataset, bool replaces, Seen seen, bool& is_there) const;
  /// As publish(), by a process that found all parts done, while others may do the same: the
  /// listing is removed, and a dataset that is there already counts as published. It never replaces
  /// one.
  Status publish_once(const DatasetInfo& dataset) const;
  /// It is where datasets are, and its folder is not in that of the epoch any more.
  bool is_published(const DatasetInfo& dataset) const;

  /// What is not found in the folder of this epoch was closed by a later owner: busy then.
  Status under_epoch(Status status) const;

 private:
  Status take_back(const DatasetInfo& dataset, bool replaces) const;

  Files& files_;
  PrefixFolder folder_;
  std::uint64_t epoch_;
};

}  // namespace cairn
