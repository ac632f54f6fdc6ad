// What is in the prefix directory of a simulated job, and whether it may be there.
#pragma once

#include <memory>
#include <set>

#include "files/hooked_files.hpp"
#include "prefix/contents.hpp"
#include "prefix_books.hpp"
#include "program_files.hpp"

namespace cairn::sim {

/// The last file of a plan gets its name.
bool completes_plan(const FileOperation& operation);

class PrefixInspection {
 public:
  /// All must outlive this.
  PrefixInspection(const JobShape& shape, std::shared_ptr<Volume> prefix, const PrefixBooks& books,
                   const ProgramFiles& written);

  /// Keys of the datasets that do not need the caches any more: they are published, or their plan
  /// is there and all their parts are marked as done.
  std::set<int> find_whole() const;
  /// A copy has begun, and its dataset is not published.
  bool has_plan() const;
  /// Throws Violation where a file has a staged name of a dataset that is not one of these: no
  /// process carries its copy on any more.
  void check_staged(const std::set<Uuid>& in_flight, std::string_view after) const;
  /// Throws Violation where one dataset is published twice.
  void check_published_once() const;
  /// After a run that ended well, with nothing in flight.
  void check_leftovers() const;

 private:
  std::vector<std::string> staged_files(const std::set<Uuid>& may_have) const;
  std::set<Uuid> dropped_unsettled() const;
  Listing read_published() const;
  bool is_done(const std::string& plan_folder) const;
  bool is_outside_window(const Listing& listing, int key) const;
  void check_key(const Listing& listing, int key) const;
  void check_deleted(int key) const;
  void check_own_files(int key) const;

  const JobShape& shape_;
  const std::shared_ptr<Volume> prefix_;
  const PrefixBooks& books_;
  const ProgramFiles& written_;
  const PrefixFolder folder_;
  const std::unique_ptr<Files> files_;
};

}  // namespace cairn::sim
