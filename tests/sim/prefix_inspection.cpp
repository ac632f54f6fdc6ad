#include "prefix_inspection.hpp"

#include <algorithm>

#include "memory_files.hpp"
#include "seam.hpp"

namespace cairn::sim {
namespace {

int key_of(const DatasetInfo& dataset) { return std::stoi(dataset.name.substr(1)); }

}  // namespace

bool completes_plan(const FileOperation& operation) {
  return operation.name == "rename" && operation.to.find("/.cairn/epoch.") != std::string::npos &&
         operation.to.ends_with("/dataset");
}

PrefixInspection::PrefixInspection(const JobShape& shape, std::shared_ptr<Volume> prefix,
                                   const PrefixBooks& books, const ProgramFiles& written)
    : shape_(shape),
      prefix_(std::move(prefix)),
      books_(books),
      written_(written),
      folder_{shape.settings.prefix},
      files_(make_memory_files({{shape.settings.prefix, prefix_}}, [] { return 0; })) {}

// --- while runs follow each other ---

std::set<int> PrefixInspection::find_whole() const {
  std::set<int> whole;
  for (const DatasetRecord& record : read_published()) whole.insert(key_of(record.info));
  const auto begun = begun_folders(*files_, folder_);
  if (!begun) throw Violation(fmt::format("(h) {}", begun.error().text));
  for (const BegunFolder& one : *begun) {
    if (one.state != PrefixState::planned) continue;
    const auto plan = read_dataset_record(*files_, one.path);
    if (plan && *plan && !(*plan)->info.in_place() && is_done(one.path))
      whole.insert(key_of((*plan)->info));
  }
  return whole;
}

bool PrefixInspection::has_plan() const {
  const auto begun = begun_folders(*files_, folder_);
  return begun && std::any_of(begun->begin(), begun->end(), [](const BegunFolder& one) {
           return one.state == PrefixState::planned;
         });
}

/// Each rank has marked its own part.
bool PrefixInspection::is_done(const std::string& plan_folder) const {
  const auto markers = names_in(*files_, DatasetFolder::markers(plan_folder));
  const auto done = numbers_after("0.", markers.value_or(std::vector<std::string>{}));
  return done.size() == static_cast<std::size_t>(shape_.ranks());
}

/// Whatever the listing says.
Listing PrefixInspection::read_published() const {
  std::vector<std::string> damaged;
  auto records = read_records(*files_, folder_.datasets(), damaged);
  if (!records || !damaged.empty()) throw Violation("(h) the datasets cannot be read");
  return *std::move(records);
}

void PrefixInspection::check_published_once() const {
  std::set<int> seen;
  for (const DatasetRecord& record : read_published())
    if (!seen.insert(key_of(record.info)).second)
      throw Violation(fmt::format("(d) {} is published twice", record.info.name));
}

void PrefixInspection::check_staged(const std::set<Uuid>& in_flight, std::string_view after) const {
  std::set<Uuid> may_have = dropped_unsettled();
  may_have.insert(in_flight.begin(), in_flight.end());
  const auto left = staged_files(may_have);
  if (!left.empty())
    throw Violation(
        fmt::format("(h) {} is left after {}, and no copy is under way", left[0], after));
}

std::vector<std::string> PrefixInspection::staged_files(const std::set<Uuid>& may_have) const {
  std::vector<std::string> staged = prefix_->files_below();
  std::erase_if(staged, [&](const std::string& path) {
    return path.find("/.cairn.") == std::string::npos ||
           std::any_of(may_have.begin(), may_have.end(), [&](const Uuid& uuid) {
             return path.find(DatasetFolder::staged_start(uuid)) != std::string::npos;
           });
  });
  return staged;
}

/// One that was dropped before it was settled keeps its staged files until it is put back.
std::set<Uuid> PrefixInspection::dropped_unsettled() const {
  std::set<Uuid> keep;
  const auto dropped = read_dropped(*files_, folder_);
  if (!dropped) return keep;
  for (const DatasetRecord& record : dropped->listing)
    if (!record.settled) keep.insert(record.info.uuid);
  return keep;
}

// --- at the end ---

void PrefixInspection::check_leftovers() const {
  const auto staged = staged_files(dropped_unsettled());
  if (!staged.empty()) throw Violation(fmt::format("(h) {} is left", staged[0]));
  for (const std::string& path : prefix_->files_below())
    if (path.starts_with("/.cairn/closed.")) throw Violation(fmt::format("(h) {} is left", path));
  std::vector<std::string> damaged;
  const auto listing = read_listing(*files_, folder_, damaged);
  if (!listing || !damaged.empty()) throw Violation("(h) the listing cannot be read");
  for (int key = 1; key <= books_.count(); ++key) check_key(*listing, key);
}

void PrefixInspection::check_key(const Listing& listing, int key) const {
  const std::string name = fmt::format("d{}", key);
  const bool listed = std::any_of(listing.begin(), listing.end(), [&](const auto& record) {
    return record.info.name == name && record.settled;
  });
  if (books_.must_be_there(key) && !listed && !is_outside_window(listing, key))
    throw Violation(fmt::format("(b) {} was complete, and is not listed", name));
  if (listed && books_.must_not_be_there(key))
    throw Violation(fmt::format("(d) {} was dropped or deleted, and is listed", name));
  if ((books_.is_complete(key) && !listed) || books_.was_deleted(key)) check_deleted(key);
  if (listed && books_.is_as_written(key)) check_own_files(key);
}

bool PrefixInspection::is_outside_window(const Listing& listing, int key) const {
  const int size = shape_.settings.prefix_size;
  const auto newer = std::count_if(listing.begin(), listing.end(), [&](const auto& record) {
    return record.info.is_checkpoint() && key_of(record.info) > key;
  });
  return size > 0 && newer >= size && !books_.is_output(key);
}

void PrefixInspection::check_deleted(int key) const {
  for (int rank = 0; rank < shape_.ranks(); ++rank)
    for (const FileShape& file : written_.of_rank(key, rank))
      if (files_->info(file.name))
        throw Violation(fmt::format("(h) {} of the deleted d{} is left", file.name, key));
}

/// Under the program's own names, so that it could read them without Cairn.
void PrefixInspection::check_own_files(int key) const {
  for (int rank = 0; rank < shape_.ranks(); ++rank)
    for (const FileShape& file : written_.of_rank(key, rank)) {
      const auto content = read_file(*files_, file.name, std::uint64_t{1} << 30);
      if (!content || *content != written_.content(key, rank, file))
        throw Violation(fmt::format("(a) {} is not as rank {} wrote it", file.name, rank));
    }
}

}  // namespace cairn::sim
