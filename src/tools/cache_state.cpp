#include "tools/cache_state.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "comm/team.hpp"
#include "prefix/copy_files.hpp"
#include "redundancy/block_places.hpp"

namespace cairn {
namespace {

std::string node_of(const RankRecord& record) {
  return record.encoding.member_nodes[static_cast<std::size_t>(record.index_in_set())];
}

/// What is wrong with one rank's part.
class PartReport {
 public:
  PartReport(Files& files, const FoundPart& part)
      : files_(files), part_(part), folder_{part.folder} {}

  std::vector<std::string> lines() {
    if (part_.examined.presence != RankBlocks::Presence::complete) find_wrong_files();
    std::vector<std::string> paths;
    for (const FileEntry& file : part_.record.files) paths.push_back(folder_.file(file.name));
    tell(bad_data(part_.record, part_.examined.bad.data, paths));
    tell(bad_parity(part_.record, part_.examined.bad.parity, parity_path()));
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

  /// Those of files that are told already are not told again.
  void tell(const std::vector<BadBlocks>& all) {
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

void add_part(CacheState& state, Files& files, int rank, const FoundPart& part) {
  state.bytes += part.record.data_bytes();
  state.files += part.record.files.size();
  if (state.scheme.empty() && part.record.encoding.scheme != Scheme::single)
    state.scheme = name_of(part.record.encoding.scheme);
  if (!part.examined.can_heal) add_unless_there(state.reasons, part.examined.can_heal.error().text);
  if (part.folder.empty()) {
    state.absent.push_back(rank);
    add_unless_there(state.absent_nodes, node_of(part.record));
    state.bad.push_back(fmt::format("the files of rank {} (written on {}) are not here", rank,
                                    node_of(part.record)));
    return;
  }
  const auto lines = PartReport(files, part).lines();
  state.damaged = state.damaged || !lines.empty();
  state.bad.insert(state.bad.end(), lines.begin(), lines.end());
}

}  // namespace

Settings settings_for_team(Settings settings, std::uint32_t ranks) {
  constexpr std::uint64_t memory_bytes = 1 << 30;
  settings.encode_bytes =
      std::min(settings.encode_bytes, memory_bytes / std::max<std::uint32_t>(1, ranks));
  return settings;
}

CacheState look_at_cache(Files& files, const Remains& remains, std::uint32_t ranks,
                         const Settings& settings, bool read_everything, const Log& log) {
  CacheState state;
  Team(1).run([&](Communicator& comm) { state.summary = summarise(comm, remains); });
  state.verdict = judge(state.summary, ranks, settings.distribute);
  state.committed = state.summary.generation != 0 && !state.summary.newer;
  if (!state.committed) return state;
  const Settings of_team = settings_for_team(settings, state.summary.ranks);
  std::vector<Inspection> found(state.summary.ranks);
  Team(static_cast<int>(state.summary.ranks)).run([&](Communicator& comm) {
    found[static_cast<std::size_t>(comm.rank())] =
        inspect_remains(comm, files, remains, of_team, read_everything, log);
  });
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    if (found[rank].part) add_part(state, files, static_cast<int>(rank), *found[rank].part);
  if (state.reasons.empty() && !found[0].reason.empty()) state.reasons.push_back(found[0].reason);
  return state;
}

}  // namespace cairn
