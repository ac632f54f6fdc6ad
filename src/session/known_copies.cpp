#include "session/known_copies.hpp"

#include <algorithm>
#include <iterator>

#include "topology/placement.hpp"

namespace cairn {
namespace {

/// Copies that have left the caches. A program asks for those that it has just made.
constexpr std::size_t most_uncached = 64;

bool is_whole_there(const CachedDataset& dataset) {
  return dataset.in_prefix() || may_restart_from(dataset.there);
}

std::vector<std::uint64_t> hashed(const std::vector<FileEntry>& files) {
  std::vector<std::uint64_t> names;
  for (const FileEntry& file : files) names.push_back(hash_of_name(file.name));
  std::sort(names.begin(), names.end());
  return names;
}

bool have_common(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (*one == *other) return true;
    ++(*one < *other ? one : other);
  }
  return false;
}

}  // namespace

const KnownCopies::Copy* KnownCopies::find(const Uuid& dataset) const {
  const auto found = std::find_if(copies_.begin(), copies_.end(),
                                  [&](const Copy& copy) { return copy.dataset.uuid == dataset; });
  return found == copies_.end() ? nullptr : &*found;
}

KnownCopies::Copy* KnownCopies::find(const Uuid& dataset) {
  return const_cast<Copy*>(std::as_const(*this).find(dataset));
}

KnownCopies::Copy& KnownCopies::add(const DatasetInfo& dataset,
                                    const std::vector<FileEntry>& files) {
  const auto older = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.dataset.uuid < dataset.uuid;
  });
  Copy copy;
  copy.dataset = dataset;
  copy.names = hashed(files);
  copy.are_names_known = run_.is_written_by_as_many(dataset);
  return *copies_.insert(older, std::move(copy));
}

void KnownCopies::take_in() {
  for (const CachedDataset& dataset : cached_.all()) {
    Copy* known = find(dataset.info.uuid);
    const bool is_there = is_whole_there(dataset);
    if (known == nullptr && is_there) known = &add(dataset.info, dataset.record.files);
    if (known != nullptr) known->is_there = is_there;
  }
  forget_oldest();
}

bool KnownCopies::is_cached(const Copy& copy) const {
  const auto& all = cached_.all();
  return std::any_of(all.begin(), all.end(), [&](const CachedDataset& dataset) {
    return dataset.info.uuid == copy.dataset.uuid;
  });
}

/// Those in the caches stay, as what is known against them does.
void KnownCopies::forget_oldest() {
  std::size_t uncached = 0;
  std::erase_if(copies_, [&](const Copy& copy) {
    return !is_cached(copy) && (!copy.is_there || ++uncached > most_uncached);
  });
}

/// Their copies have not arrived and are not under way: they push nothing out.
void KnownCopies::forget_withdrawn() {
  for (const CachedDataset& dataset : cached_.all())
    if (!dataset.is_in_flight && !is_whole_there(dataset))
      std::erase_if(copies_,
                    [&](const Copy& copy) { return copy.dataset.uuid == dataset.info.uuid; });
}

void KnownCopies::expect(Communicator& comm, const DatasetInfo& dataset,
                         const std::vector<FileEntry>& files, bool is_late) {
  take_in();
  forget_withdrawn();
  std::erase_if(copies_, [&](const Copy& copy) { return copy.dataset.uuid == dataset.uuid; });
  Copy& expected = add(dataset, files);
  doubt_replaced(comm, expected);
  if (run_.settings.prefix_size == 0 || !dataset.counts_in_window()) return;
  expected.is_doubtful = is_late;
  doubt_pushed_out();
}

bool KnownCopies::may_share_names(const Copy& copy, const Copy& newer) const {
  return !copy.are_names_known || !newer.are_names_known || have_common(copy.names, newer.names);
}

/// Each rank compares its own names: those of different ranks differ, as scr.h asks for.
void KnownCopies::doubt_replaced(Communicator& comm, const Copy& newer) {
  std::vector<std::int64_t> is_replaced;
  for (const Copy& copy : copies_)
    is_replaced.push_back(&copy != &newer && may_share_names(copy, newer) ? 1 : 0);
  if (is_replaced.size() < 2) return;
  comm.allreduce(is_replaced, Reduce::max);
  for (std::size_t i = 0; i < copies_.size(); ++i)
    if (is_replaced[i] != 0) copies_[i].is_doubtful = true;
}

/// The newest stay, with the one that is to come.
void KnownCopies::doubt_pushed_out() {
  int stay = run_.settings.prefix_size;
  for (Copy& copy : copies_)
    if (copy.dataset.counts_in_window() && --stay < 0) copy.is_doubtful = true;
}

void KnownCopies::doubt(const Uuid& dataset) {
  if (Copy* copy = find(dataset)) copy->is_doubtful = true;
}

void KnownCopies::doubt_all_named(const std::string& name) {
  for (Copy& copy : copies_)
    if (copy.dataset.name == name) copy.is_doubtful = true;
}

void KnownCopies::forget_uncached() {
  std::erase_if(copies_, [this](const Copy& copy) { return !is_cached(copy); });
}

bool KnownCopies::is_doubtful(const Uuid& dataset) const {
  const Copy* copy = find(dataset);
  return copy != nullptr && copy->is_doubtful;
}

const DatasetInfo* KnownCopies::find_uncached(const std::string& name) const {
  const auto found = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.dataset.name == name && copy.is_there && !copy.is_doubtful && !is_cached(copy);
  });
  return found == copies_.end() ? nullptr : &found->dataset;
}

}  // namespace cairn
