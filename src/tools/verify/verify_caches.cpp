#include <algorithm>

#include "recovery/dead_caches.hpp"
#include "tools/cache_state.hpp"
#include "tools/verify/verify_places.hpp"

namespace cairn {
namespace {

class CacheVerifier {
 public:
  CacheVerifier(const VerifyCommand& command, Files& files, Clock& clock, const Log& log)
      : command_(command), files_(files), clock_(clock), log_(log) {}

  Result<std::vector<Verified>> run() {
    std::vector<std::string> caches;
    for (const std::string& folder : command_.caches)
      CAIRN_TRY(find_caches(files_, folder, caches, log_));
    // Kept for a repair; otherwise only checked, so that no job has to wait for it.
    auto locks = lock_caches(files_, clock_, caches);
    if (!locks && (command_.repair || locks.error().code != Code::busy))
      return tl::unexpected(locks.error());
    if (!locks)
      log_.warning("{}; files that it removes meanwhile are reported as bad", locks.error().text);
    if (locks && !command_.repair) locks->clear();
    std::vector<std::string> unreadable;
    CAIRN_ASSIGN(const std::vector<Remains> all,
                 find_remains(files_, caches, RecordDetail::outline, &unreadable));
    for (const std::string& trouble : unreadable) log_.warning("not verified: {}", trouble);
    std::vector<Verified> found;
    for (const Remains& remains : all)
      if (is_wanted(command_.datasets, remains.uuid, remains.number, remains.name))
        found.push_back(verify(remains));
    return found;
  }

 private:
  Verified verify(const Remains& remains) {
    Verified found;
    found.place = "the caches";
    found.number = remains.number;
    found.name = remains.name;
    found.uuid = text_of(remains.uuid);
    found.ranks = remains.ranks;
    const CacheReport state = look_at_cache(files_, remains, remains.ranks, Settings{}, true, log_);
    found.files = state.files;
    found.bytes = state.bytes;
    found.bad = state.bad;
    found.reasons = state.reasons;
    found.is_only_written = state.is_only_written;
    if (state.state == CacheState::newer_format)
      found.state = Verified::State::newer_format;
    else if (state.state == CacheState::incomplete)
      found.state = Verified::State::incomplete;
    else if (!state.can_be_whole())
      found.state = Verified::State::lost;
    else if (!state.is_whole())
      found.state = Verified::State::repairable;
    else if (state.is_only_written)
      found.state = Verified::State::written;
    if (!state.committed && found.state == Verified::State::lost)
      found.reasons.push_back(reason_of(state.state, state.summary));
    if (found.state == Verified::State::repairable && command_.repair) repair(remains, found);
    return found;
  }

  /// As cairn rebuild does it: parts of ranks that have none are made in "rebuilt".
  void repair(const Remains& remains, Verified& found) {
    const std::string spare_root = command_.caches.front() + "/rebuilt";
    Rebuild rebuilt;
    Status made = files_.make_folder(spare_root, 0700);
    if (made) rebuilt = rebuild_remains(files_, remains, spare_root, Settings{}, log_);
    const auto inside = files_.list(spare_root);
    if (inside && inside->empty()) made = files_.remove_folder(spare_root);
    if (made && rebuilt.outcome == Rebuild::Outcome::whole) {
      found.state = Verified::State::repaired;
      found.is_only_written = false;
      found.repaired = describe(rebuilt.account);
      if (found.repaired.empty()) found.repaired = "records were written again";
      return;
    }
    found.state = Verified::State::lost;
    found.reasons.push_back(made ? rebuilt.reason : made.error().text);
  }

  const VerifyCommand& command_;
  Files& files_;
  Clock& clock_;
  const Log& log_;
};

}  // namespace

Result<std::vector<Verified>> verify_caches(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Log& log) {
  return CacheVerifier(command, files, clock, log).run();
}

}  // namespace cairn
