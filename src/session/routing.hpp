// Where the files that the application names really are.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

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

  /// Which of these files it is: by its name, else by the last part of it, if that is one file's
  /// only.
  std::optional<std::string> find_in(const RankRecord& record, const std::string& path) const;
  /// Relative to the prefix directory; nothing if it is not below, or is Cairn's own.
  std::optional<std::string> relative_name(const std::string& path) const;

 private:
  Status make_place(const std::string& target);

  Files& files_;
  const std::string& prefix_;
  std::optional<RankFolder> into_;
  mutable std::mutex mutex_;  ///< guards asked_for_
  std::map<std::string, std::string> asked_for_;
};

/// SCR_MAX_FILENAME without the final zero.
inline constexpr std::size_t longest_path = 1023;

}  // namespace cairn
