#include "wrapped_books.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "seam.hpp"

namespace cairn::sim {
namespace {

/// After so many rounds the ranks know of a file that was opened again.
constexpr int rounds_to_notice = 6;
constexpr std::size_t most_new_bytes = 1500;

/// The last bytes of a file name the writing that it has.
std::uint64_t id_in(const Blob& bytes) {
  std::uint64_t id = 0;
  if (bytes.size() >= sizeof id)
    std::memcpy(&id, bytes.data() + bytes.size() - sizeof id, sizeof id);
  return id;
}

std::string text_of(StepOfRun step) {
  return fmt::format("step {} of run {}", step.index, step.run);
}

}  // namespace

// --- a run ---

void WrappedBooks::begin_run(int run) {
  run_ = run;
  planned_.clear();
  left_.clear();
  newest_begun_.clear();
  ended_.clear();
  rounds_.clear();
  open_.clear();
  checkpoints_.clear();
  certain_of_rank_.clear();
  certain_.reset();
  newest_certain_ = 0;
  unfinished_.clear();
  have_found_ = 0;
  found_.clear();
}

void WrappedBooks::plan(std::vector<std::map<int, int>> actions, bool has_numbers) {
  planned_ = actions;
  left_ = std::move(actions);
  // The program writes on to the step from which it started.
  if (restored_ && has_numbers && first_index() == restored_->index)
    steps_[{run_, restored_->index}] = found_;
}

bool WrappedBooks::is_complete(int index) const {
  return std::all_of(left_.begin(), left_.end(), [index](const std::map<int, int>& left) {
    const auto found = left.find(index);
    return found == left.end() || found->second == 0;
  });
}

// --- what the program does ---

void WrappedBooks::begins(int rank, int index) {
  newest_begun_[rank] = std::max(newest_begun_[rank], index);
}

void WrappedBooks::ends(int rank) { ended_.insert(rank); }

Blob WrappedBooks::begin_writing(int rank, const std::string& name, int index, Blob kept,
                                 Chance& chance) {
  const std::uint64_t id = writings_.empty() ? 1 : writings_.rbegin()->first + 1;
  for (std::uint64_t more = chance.of_any_size_below(most_new_bytes); more > 0; --more)
    kept.push_back(static_cast<std::byte>(chance.next()));
  const Bytes end = bytes_of(id);
  kept.insert(kept.end(), end.begin(), end.end());
  writings_[id] = {{run_, index}, rank, kept, false};
  unfinished_.insert(name);
  return kept;
}

void WrappedBooks::finish_writing(const std::string& name, const Blob& bytes) {
  const std::uint64_t id = id_in(bytes);
  Writing& writing = writings_.at(id);
  writing.is_finished = true;
  steps_[writing.step][name] = id;
  newest_[name] = id;
  unfinished_.erase(name);
}

void WrappedBooks::renamed(const std::string& from, const std::string& to) {
  const std::uint64_t id = newest_.at(from);
  newest_.erase(from);
  newest_[to] = id;
  auto& names = steps_[writings_.at(id).step];
  names.erase(from);
  names[to] = id;
}

/// A checkpoint may still have it.
void WrappedBooks::removed(const std::string& name) {
  newest_.erase(name);
  for (auto& [step, names] : steps_) names.erase(name);
  for (auto& [step, made] : made_) made.files.erase(name);
  if (promise_) promise_->files.erase(name);
}

// --- what is open ---

void WrappedBooks::opened(int rank, const std::string& name, int index) {
  open_[rank][name] = {index, rounds_[rank]};
}

void WrappedBooks::closed(int rank, const std::string& name) { open_[rank].erase(name); }

// --- what the job has found out ---

void WrappedBooks::note_round(int rank, const std::set<int>& checkpoints,
                              std::optional<int> certain) {
  ++rounds_[rank];
  auto& before = checkpoints_[rank];
  for (const int index : before)
    if (!checkpoints.contains(index)) made_.erase({run_, index});
  for (const int index : checkpoints)
    if (!before.contains(index) && !made_.contains({run_, index}))
      note_new_checkpoint(index, index == certain);
  before = checkpoints;
  note_certain(rank, certain);
  for (const auto& [name, opening] : open_[rank])
    if (checkpoints.contains(opening.index) && rounds_[rank] > opening.round + rounds_to_notice)
      throw Violation(fmt::format("(w) step {} is a checkpoint, while rank {} has {} open",
                                  opening.index, rank, name));
}

void WrappedBooks::note_new_checkpoint(int index, bool is_certain) {
  if (index == first_index() && kind_.pace != Pace::alone) check_passed(index);
  const bool is_whole = is_certain ? kind_.is_certain_whole() : kind_.is_provisional_whole();
  if (is_whole && !is_complete(index))
    throw Violation(
        fmt::format("(w) step {} is a checkpoint, and a rank has not finished it", index));
  made_[{run_, index}] = {{run_, index}, is_whole, steps_[{run_, index}]};
  have_been_.insert({run_, index});
}

int WrappedBooks::first_index() const {
  int first = std::numeric_limits<int>::max();
  for (const std::map<int, int>& of_rank : planned_)
    for (const auto& [index, count] : of_rank)
      if (count > 0) first = std::min(first, index);
  return first;
}

/// The first step of a run is provisional only once its writers have passed it.
void WrappedBooks::check_passed(int index) const {
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const int rank = static_cast<int>(i);
    const auto planned = planned_[i].find(index);
    if (planned == planned_[i].end() || planned->second == 0 || ended_.contains(rank)) continue;
    const auto begun = newest_begun_.find(rank);
    if (begun == newest_begun_.end() || begun->second <= index)
      throw Violation(fmt::format(
          "(w) step {}, the first one, is a checkpoint before rank {} has passed it", index, rank));
  }
}

void WrappedBooks::note_certain(int rank, std::optional<int> certain) {
  std::optional<int>& before = certain_of_rank_[rank];
  const bool is_gone =
      before && before == certain_ && certain != before && (!certain || *certain < *before);
  before = certain;
  if (is_gone) {
    if (kind_.pace == Pace::in_step)
      throw Violation(fmt::format("(w) step {} was certain, and is given up", *certain_));
    promise_.reset();
    certain_.reset();
  }
  if (!certain || (certain_ && *certain <= *certain_)) return;
  if (kind_.is_certain_whole() && !is_complete(*certain))
    throw Violation(
        fmt::format("(w) step {} is certain, and a rank has not finished it", *certain));
  certain_ = certain;
  newest_certain_ = std::max(newest_certain_, *certain);
  const auto made = made_.find({run_, *certain});
  if (made == made_.end()) return;
  made->second.is_exact = kind_.is_certain_whole();
  // A step of other programs may be given up at any time.
  promise_.reset();
  if (kind_.is_certain_whole()) promise_ = made->second;
}

void WrappedBooks::check_kept(int rank, int from) const {
  for (const std::map<int, int>& of_rank : planned_)
    for (const auto& [index, count] : of_rank)
      if (index >= from && count > 0 && !checkpoints_.at(rank).contains(index))
        throw Violation(
            fmt::format("(w) step {} is no checkpoint, though there was time for it", index));
}

// --- a restart ---

void WrappedBooks::lost(const std::string& node, bool tolerated) {
  lost_.insert(node);
  if (!tolerated || lost_.size() > 1) promise_.reset();
}

void WrappedBooks::found(int rank, int ranks, bool from, const std::map<std::string, Blob>& files,
                         bool disturbed) {
  if (from)
    for (const auto& [name, bytes] : files) found_[name] = writing_in(rank, name, bytes);
  if (++have_found_ == ranks) check_restored(from, disturbed);
}

std::uint64_t WrappedBooks::writing_in(int rank, const std::string& name, const Blob& bytes) const {
  const std::uint64_t id = id_in(bytes);
  const auto writing = writings_.find(id);
  if (writing == writings_.end() || !writing->second.is_finished || writing->second.bytes != bytes)
    throw Violation(fmt::format("(a) {} has bytes that were never written as a whole", name));
  if (writing->second.rank != rank)
    throw Violation(
        fmt::format("(a) rank {} finds {} of rank {}", rank, name, writing->second.rank));
  return id;
}

void WrappedBooks::check_restored(bool from, bool disturbed) {
  restored_.reset();
  for (const auto& [name, id] : found_)
    restored_ = std::max(restored_.value_or(StepOfRun{}), writings_.at(id).step);
  if (from && !restored_) throw Violation("(d) the checkpoint has no files");
  if (promise_ && !disturbed) {
    if (!restored_) throw Violation(fmt::format("(b) {} is not found", text_of(promise_->step)));
    // A step that a later run has only opened again has the files of the earlier one.
    if (*restored_ < promise_->step && found_ != promise_->files)
      throw Violation(fmt::format("(b) {} is restored, and {} was certain", text_of(*restored_),
                                  text_of(promise_->step)));
    if (*restored_ == promise_->step) check_files(*promise_);
  }
  if (restored_ && made_.contains(*restored_)) check_files(made_.at(*restored_));
  newest_ = found_;
  promise_.reset();
  if (!restored_) return;
  lost_.clear();
  promise_ = Promise{*restored_, true, found_};
  have_been_.insert(*restored_);
}

void WrappedBooks::check_files(const Promise& promise) const {
  if (!promise.is_exact) return;
  for (const auto& [name, id] : promise.files) {
    const auto there = found_.find(name);
    if (there == found_.end())
      throw Violation(fmt::format("(d) {} is restored without {}", text_of(promise.step), name));
    if (there->second < id)
      throw Violation(
          fmt::format("(b) {} of {} is older than it was", name, text_of(promise.step)));
  }
}

// --- an orderly end ---

std::set<std::string> WrappedBooks::names_of(int rank) const {
  std::set<std::string> names;
  for (const auto& [name, id] : newest_)
    if (writings_.at(id).rank == rank && !unfinished_.contains(name)) names.insert(name);
  return names;
}

/// Files of a step may go once it was a checkpoint, and a newer one is certain. Those of a step
/// that is no checkpoint are where the program wanted them.
void WrappedBooks::check_end(int rank, const std::string& name, const std::optional<Blob>& bytes,
                             bool is_redirected) const {
  const Writing& writing = writings_.at(newest_.at(name));
  const bool is_checkpoint =
      writing.step.run < run_ || checkpoints_.at(rank).contains(writing.step.index);
  if (bytes && *bytes == writing.bytes && is_redirected && !is_checkpoint)
    throw Violation(fmt::format("(n) {} of {}, which was given up, is in the cache at the end",
                                name, text_of(writing.step)));
  if (bytes && *bytes == writing.bytes) return;
  // Then an older file in the plain place may come to light.
  if (have_been_.contains(writing.step) && writing.step < StepOfRun{run_, newest_certain_}) return;
  throw Violation(fmt::format("(n) {} of {} {} at the end", name, text_of(writing.step),
                              bytes ? "has other bytes" : "is lost"));
}

}  // namespace cairn::sim
