#include "loss_books.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "program_files.hpp"

namespace cairn::sim {
namespace {

/// Empty if it is none of a dataset.
std::string folder_of_dataset(const std::string& path) {
  const auto from = path.find("/dataset.");
  return from == std::string::npos ? "" : path.substr(0, path.find('/', from + 1));
}

/// Of what only the library writes, a record is missed, and nothing else.
bool is_whole(const std::string& path, const Blob& before, const Inode& now) {
  return key_of_file(path) == 0 || now.content == before;
}

}  // namespace

std::set<int> keys_of_lost(const std::string& text) {
  constexpr std::string_view before = "(d";
  constexpr std::string_view after = ") is lost";
  std::set<int> keys;
  for (auto at = text.find(after); at != std::string::npos; at = text.find(after, at + 1)) {
    const auto from = text.rfind(before, at);
    if (from != std::string::npos) keys.insert(std::stoi(text.substr(from + before.size())));
  }
  return keys;
}

bool reports_only_other_losses(int key, const Error& error) {
  const std::set<int> lost = keys_of_lost(error.text);
  return error.code == Code::lost && !lost.empty() && !lost.contains(key);
}

void LossBooks::begin_run(const Nodes& nodes) {
  nodes_ = {nodes.begin(), nodes.end()};
  nodes_.insert("");
  returned_.clear();
  for (auto& [key, report] : reports_) report.call.clear();
}

/// With what was seen before, the key of each folder is known: rank 0 has a file of each dataset.
std::vector<LossBooks::CachedFile> LossBooks::files_in_caches() {
  std::vector<CachedFile> files;
  for (const Place& place : cluster_.places())
    for (const std::string& path : place.volume->files_below()) {
      const std::string folder = folder_of_dataset(path);
      if (folder.empty()) continue;
      files.push_back({place, path, place.volume->find(path)});
      if (const int key = key_of_file(path); key != 0) key_of_folder_[folder] = key;
    }
  return files;
}

void LossBooks::note_damage(const std::function<void()>& event) {
  std::map<std::pair<Volume*, std::string>, Blob> before;
  for (const CachedFile& one : files_in_caches())
    before[{one.place.volume, one.path}] = one.file->content;
  event();
  for (const CachedFile& one : files_in_caches()) {
    const auto found = before.find({one.place.volume, one.path});
    if (found != before.end() && found->second == one.file->content) before.erase(found);
  }
  for (auto& [where, content] : before) damaged_.emplace(where.second, std::move(content));
}

std::string LossBooks::damage_file(const std::function<bool(int key)>& may_be, Chance& chance) {
  std::vector<InodePtr> files;
  for (const CachedFile& one : files_in_caches())
    if (const int key = key_of_file(one.path); key != 0 && may_be(key)) files.push_back(one.file);
  if (files.empty()) return "";
  std::string what;
  note_damage([&] { what = damage(*chance.pick(files), chance); });
  return what;
}

bool LossBooks::is_damaged(int key) {
  const std::vector<CachedFile> files = files_in_caches();
  return std::any_of(damaged_.begin(), damaged_.end(), [&](const auto& damaged) {
    const auto& [path, content] = damaged;
    const auto folder = key_of_folder_.find(folder_of_dataset(path));
    const bool is_needed = key_of_file(path) != 0 || path.ends_with("/record");
    if (!is_needed || folder == key_of_folder_.end() || folder->second != key) return false;
    return std::none_of(files.begin(), files.end(), [&](const CachedFile& one) {
      return nodes_.contains(one.place.node) && one.path == path &&
             is_whole(path, content, *one.file);
    });
  });
}

/// A run reports what an earlier one has reported too, as long as it finds what is left of the
/// dataset: that is known, and accepted until a newer checkpoint is complete.
std::string LossBooks::wrong_report(int key, const std::string& call, bool is_in_prefix) {
  if (!is_damaged(key))
    return fmt::format("(l) {} reports d{} as lost, and the caches have all of it", call, key);
  if (is_in_prefix)
    return fmt::format("(l) {} reports d{} as lost, and the prefix directory has it", call, key);
  Report& report = reports_[key];
  if (!report.call.empty())
    return fmt::format("(l) {} reports d{} as lost, as {} has done in this run", call, key,
                       report.call);
  if (report.newest > 0)
    return fmt::format(
        "(l) {} reports d{} as lost, as an earlier run has done before d{} was complete", call, key,
        report.newest);
  report.call = call;
  return {};
}

void LossBooks::checkpoint_completed(int key) {
  for (auto& [lost, report] : reports_)
    if (key > lost) report.newest = key;
}

}  // namespace cairn::sim
