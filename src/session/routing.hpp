// Where the files that the application names really are.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// The names of one rank's files, each found without a look at the others.
class OwnNames {
 public:
  OwnNames() = default;
  explicit OwnNames(const RankRecord& record);

  const Uuid& dataset() const { return dataset_; }
  bool has(const std::string& name) const { return names_.contains(name); }
  /// The one file whose name ends so; nothing if it is not one.
  std::optional<std::string> only_one_called(const std::string& base) const;

 private:
  Uuid dataset_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, std::string> by_base_;  ///< empty: several
};

class Routing {
 public:
  /// `prefix` is the prefix directory; both must outlive this.
  Routing(Files& files, const std::string& prefix) : files_(files), prefix_(prefix) {}

  /// Files go to this folder from now on, or, without one, are where the application says; none has
  /// been asked for yet.
  void begin(std::optional<RankFolder> into);
  /// Thread-safe. Where to write the file that the application calls `path`, in a folder that is
  /// there. bad_argument if that is not below the prefix directory, or too long. In the prefix
  /// directory itself, links are refused on the way and in the place of the file.
  Result<std::string> write_to(const std::string& path);
  /// What was asked for since begin(): name relative to the prefix directory -> path.
  std::map<std::string, std::string> asked_for() const;

  /// A file that write_to() has refused since begin(), and never given a place.
  struct Refused {
    std::string path;
    Error why;
  };
  std::optional<Refused> refused() const;
  /// A file that was asked for since begin() was there already, in the prefix directory itself.
  bool takes_names() const;

  /// Thread-safe, as the next. Which of these files has this name.
  std::optional<std::string> find_by_name(const RankRecord& record, const std::string& path) const;
  /// Which has a name with this last part, if only one has.
  std::optional<std::string> find_by_base(const RankRecord& record, const std::string& path) const;
  /// Relative to the prefix directory; nothing if it is not below, or is Cairn's own.
  std::optional<std::string> relative_name(const std::string& path) const;

 private:
  Result<std::string> find_place(const std::string& path);
  Status make_place(const std::string& target);
  const OwnNames& names_of(const RankRecord& record) const;

  Files& files_;
  const std::string& prefix_;
  std::optional<RankFolder> into_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<std::string, std::string> asked_for_;
  std::map<std::string, Error> refused_;  ///< by path
  bool takes_names_ = false;
  mutable OwnNames own_;  ///< of the record that was last looked into
};

/// SCR_MAX_FILENAME without the final zero.
inline constexpr std::size_t longest_path = 1023;

}  // namespace cairn
