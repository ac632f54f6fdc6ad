#include "tools/cache_state.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "prefix/copy_files.hpp"
#include "redundancy/block_places.hpp"

namespace cairn {
namespace {

/// The damage of one rank's part.
class PartReport {
 public:
  PartReport(Files& files, const FoundPart& part)
      : files_(files), part_(part), folder_{part.folder} {}

  std::vector<std::string> lines() {
    if (part_.examined.presence != RankBlocks::Presence::complete) find_wrong_files();
    std::vector<std::string> paths;
    for (const FileEntry& file : part_.record.files) paths.push_back(folder_.file(file.name));
    add(bad_data(part_.record, part_.examined.bad.data, paths));
    add(bad_parity(part_.record, part_.examined.bad.parity, parity_path()));
    if (!part_.record_is_whole)
      lines_.push_back(fmt::format("{} is missing, damaged or not complete", folder_.record()));
    return std::move(lines_);
  }

 private:
  std::string parity_path() const { return folder_.parity(part_.record.encoding.generation); }

  void find_wrong_files() {
    for (const FileEntry& entry : part_.record.files) check(entry, folder_.file(entry.name));
    FileEntry parity;
    parity.size = SetLayout(part_.record.encoding).parity_bytes(part_.record.index_in_set());
    if (parity.size > 0) check(parity, parity_path());
  }

  void check(const FileEntry& entry, const std::string& path) {
    const Status same = check_size(files_, entry, path);
    if (same) return;
    wrong_.insert(path);
    lines_.push_back(same.error().text);
  }

  /// Without blocks of files that are already reported.
  void add(const std::vector<BadBlocks>& all) {
    for (const BadBlocks& bad : all)
      if (std::none_of(bad.paths.begin(), bad.paths.end(),
                       [this](const std::string& path) { return wrong_.contains(path); }))
        lines_.push_back(bad.text);
  }

  Files& files_;
  const FoundPart& part_;
  const RankFolder folder_;
  std::set<std::string> wrong_;
  std::vector<std::string> lines_;
};

void add_unless_there(std::vector<std::string>& all, const std::string& one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

/// Collects facts about the parts, which come set by set.
class StateOfRanks {
 public:
  StateOfRanks(Files& files, CacheReport& state) : files_(files), state_(state) {}

  void add(int rank, const FoundPart& part) {
    state_.bytes += part.record.data_bytes();
    state_.files += part.record.files.size();
    state_.is_only_written = state_.is_only_written || part.record.exposure.has_value();
    if (rank < first_rank_ && part.record.encoding.scheme != Scheme::single) {
      first_rank_ = rank;
      state_.scheme = name_of(part.record.encoding.scheme);
    }
    if (part.folder.empty()) {
      absent_[rank] = part.record.node();
      return;
    }
    auto lines = PartReport(files_, part).lines();
    if (!lines.empty()) bad_[rank] = std::move(lines);
  }

  void end() {
    state_.damaged = !bad_.empty();
    for (const auto& [rank, node] : absent_) {
      state_.absent.push_back(rank);
      add_unless_there(state_.absent_nodes, node);
      bad_[rank] = {fmt::format("the files of rank {} (written on {}) are not here", rank, node)};
    }
    for (const auto& [rank, lines] : bad_)
      state_.bad.insert(state_.bad.end(), lines.begin(), lines.end());
  }

 private:
  Files& files_;
  CacheReport& state_;
  int first_rank_ = std::numeric_limits<int>::max();
  std::map<int, std::string> absent_;  ///< their nodes
  std::map<int, std::vector<std::string>> bad_;
};

}  // namespace

CacheReport look_at_cache(Files& files, const Remains& remains, std::uint32_t ranks,
                          const Settings& settings, bool read_everything, const Log& log) {
  CacheReport state;
  StateOfRanks parts(files, state);
  const Inspected found =
      inspect_for_run(files, remains, ranks, settings, read_everything, log,
                      [&](int rank, const FoundPart& part) { parts.add(rank, part); });
  state.summary = found.summary;
  state.state = found.state;
  state.committed = found.summary.generation != 0 && !found.summary.newer;
  parts.end();
  for (const Error& error : found.errors) add_unless_there(state.reasons, error.text);
  return state;
}

}  // namespace cairn
