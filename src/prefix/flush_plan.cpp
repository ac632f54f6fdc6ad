#include "prefix/flush_plan.hpp"

#include "files/modes.hpp"
#include "files/sync_at_once.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/epoch_folder.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"

namespace cairn {

// --- markers ---

DoneMarkers::DoneMarkers(Files& files, const std::string& folder, std::uint32_t ranks)
    : files_(files), folder_(DatasetFolder::markers(folder)), ranks_(ranks) {}

std::string DoneMarkers::path_of(const Node& node) const {
  return fmt::format("{}/{}.{}", folder_, node.first, node.second);
}

Status DoneMarkers::make(const Node& node) {
  if (known_.contains(node)) return {};
  CAIRN_TRY(files_.create(path_of(node), file_for_all));
  known_.insert(node);
  return {};
}

Result<bool> DoneMarkers::is_there(const Node& node) {
  if (known_.contains(node)) return true;
  const auto found = files_.info(path_of(node));
  if (!found && found.error().code == Code::not_found) return false;
  CAIRN_TRY(found);
  known_.insert(node);
  return true;
}

Status DoneMarkers::mark(int rank) { return make({0, static_cast<std::uint32_t>(rank)}); }

Result<bool> DoneMarkers::is_done(int rank) {
  return is_there({0, static_cast<std::uint32_t>(rank)});
}

Result<bool> DoneMarkers::climb(int rank) {
  Node at = {0, static_cast<std::uint32_t>(rank)};
  for (std::uint32_t at_level = ranks_; at_level > 1; at_level = (at_level + 1) / 2) {
    const Node sibling = {at.first, at.second ^ 1U};
    if (sibling.second < at_level) {
      CAIRN_ASSIGN(const bool both, is_there(sibling));
      if (!both) return false;
    }
    at = {at.first + 1, at.second / 2};
    CAIRN_TRY(make(at));
  }
  return true;
}

Result<bool> DoneMarkers::are_all_done() {
  int levels = 0;
  for (std::uint32_t at_level = ranks_; at_level > 1; at_level = (at_level + 1) / 2) ++levels;
  return is_there({levels, 0});
}

Status DoneMarkers::remove(int rank) {
  Node at = {0, static_cast<std::uint32_t>(rank)};
  CAIRN_TRY(files_.remove_file(path_of(at)));
  for (std::uint32_t at_level = ranks_; at_level > 1 && at.second % 2 == 0;
       at_level = (at_level + 1) / 2) {
    at = {at.first + 1, at.second / 2};
    CAIRN_TRY(files_.remove_file(path_of(at)));
  }
  return {};
}

// --- parts ---

namespace {

std::vector<std::string> staged_paths(const PrefixFolder& folder, const RankRecord& record) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < record.files.size(); ++i) paths.push_back(folder.staged(record, i));
  return paths;
}

/// A rename of one name of a file over another does nothing: those that have their own names
/// already would keep the staged ones as well.
bool is_same_file(Files& files, const std::string& a, const std::string& b) {
  const auto first = files.info(a);
  const auto second = files.info(b);
  return first && second && first->id == second->id;
}

Status link_each(const Site& site, const RankRecord& record, const std::vector<std::string>& from) {
  CAIRN_ASSIGN(const SyncAtOnce at_once,
               SyncAtOnce::of(site.files, staged_paths(site.folder, record)));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const FileEntry& entry = record.files[i];
    const std::string staged = site.folder.staged(record, i);
    CAIRN_TRY(check_size(site.files, entry, from[i]));
    if (is_same_file(site.files, from[i], site.folder.file(entry)))
      return fail(Code::invalid, "{} has its final name already", from[i]);
    CAIRN_TRY(site.files.link(from[i], staged));
    CAIRN_ASSIGN(const auto file, site.files.open(staged));
    CAIRN_TRY(file->set_attributes(entry.mode, entry.times));
    if (!at_once.is_possible()) CAIRN_TRY(file->sync_all());
  }
  return at_once.sync();
}

}  // namespace

Status unstage_rank(Files& files, const PrefixFolder& folder, const RankRecord& record) {
  Status status;
  const auto note = [&status](Status done) {
    if (!done && done.error().code != Code::not_found && status) status = std::move(done);
  };
  CAIRN_ASSIGN(const auto led_out, folders_led_out(files, folder, record));
  for (const std::string& path : staged_paths(folder, record))
    if (!led_out.contains(folder_of(path))) note(files.remove_file(path));
  // They must not come back once the manifest that names them is gone.
  for (const std::string& path : folders_of(folder, record))
    if (!led_out.contains(path)) note(sync_folder_in(files, folder, path));
  return status;
}

Status remove_part(Files& files, const PrefixFolder& folder, const std::string& plan,
                   const RankRecord& record) {
  CAIRN_TRY(unstage_rank(files, folder, record));
  return DoneMarkers(files, plan, record.dataset.ranks).remove(record.rank);
}

namespace {

Status stage_by_copies(const Site& site, const std::string& plan, const RankRecord& record,
                       const std::vector<std::string>& cached) {
  CAIRN_TRY(make_folders(site.files, site.folder, record));
  const std::vector<std::string> staged = staged_paths(site.folder, record);
  Throttle throttle(site.clock, site.bytes_per_s_rank(site.limits.width), site.copied, site.pace,
                    site.end_us);
  const bool keep = site.copy_metadata;
  const EpochFolder epoch(site.files, site.folder, site.epoch);
  const auto is_mine = [&]() -> Status {
    const auto there = site.files.info(plan);
    if (there || there.error().code != Code::not_found) return {};
    return epoch.under_epoch(tl::unexpected(there.error()));
  };
  const bool past_cache = site.pace != nullptr;  // the program computes meanwhile
  CAIRN_TRY(copy_files(
      site.files, site.io, record, cached, staged,
      {keep ? file_for_owner : file_for_all, keep, true, true, past_cache, site.repairs, is_mine},
      throttle));
  return sync_folders(site.files, site.folder, record);
}

Status stage_by_links(const Site& site, const std::string& plan, const RankRecord& record,
                      const std::vector<std::string>& beside) {
  CAIRN_TRY(make_folders(site.files, site.folder, record));
  if (link_each(site, record, beside)) return sync_folders(site.files, site.folder, record);
  // Whatever the reason: if links are possible here, copying fails for the same reason.
  CAIRN_TRY(unstage_rank(site.files, site.folder, record));
  return stage_by_copies(site, plan, record, beside);
}

}  // namespace

/// The marker last, not synced: what it stands for was durable before it.
Status do_part(const Site& site, const std::string& plan, const RankRecord& record,
               const std::vector<std::string>& cached, StageBy how) {
  const auto stage = how == StageBy::link ? stage_by_links : stage_by_copies;
  CAIRN_TRY(stage(site, plan, record, cached));
  return DoneMarkers(site.files, plan, record.dataset.ranks).mark(record.rank);
}

namespace {

Status set_own_attributes(Files& files, const FileEntry& entry, const std::string& staged,
                          bool left_over) {
  const bool is_right = left_over ? !has_other_attributes(files, entry, staged)
                                  : !is_writable_copy(files, entry, staged);
  if (is_right) return {};
  CAIRN_ASSIGN(const auto file, files.open(staged));
  CAIRN_TRY(file->set_attributes(entry.mode, entry.times));
  return file->sync_all();
}

}  // namespace

Status settle_rank(Files& files, const PrefixFolder& folder, const RankRecord& record,
                   bool left_over) {
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    const std::string staged = folder.staged(record, i);
    CAIRN_TRY(set_own_attributes(files, record.files[i], staged, left_over));
    Status named = files.rename(staged, folder.file(record.files[i]));
    if (!named && named.error().code != Code::not_found) return named;  // else it has its name
  }
  for (const std::string& path : folders_of(folder, record))
    CAIRN_TRY(sync_folder_in(files, folder, path));
  return DoneMarkers(files, folder.dataset(record.dataset), record.dataset.ranks)
      .remove(record.rank);
}

Result<bool> carry_on(const Site& site, const DatasetRecord& plan, const CachedPart& part) {
  const std::string folder = site.folder.pending(site.epoch, plan.info);
  DoneMarkers markers(site.files, folder, plan.info.ranks);
  CAIRN_ASSIGN(const bool done, markers.is_done(part.rank));
  if (!done) {
    CAIRN_ASSIGN(const RankRecord record,
                 read_from_manifest(site.files, folder, part.rank, plan.ranks_per_manifest));
    std::vector<std::string> cached;
    for (const FileEntry& file : record.files) cached.push_back(part.folder.file(file.name));
    if (part.beside) CAIRN_TRY(unstage_rank(site.files, site.folder, record));
    CAIRN_TRY(do_part(site, folder, record, cached, part.beside ? StageBy::link : StageBy::copy));
  }
  return markers.climb(part.rank);
}

Result<bool> look_after(const Site& site, const DatasetRecord& plan, std::uint32_t number) {
  const std::string folder = site.folder.pending(site.epoch, plan.info);
  DoneMarkers markers(site.files, folder, plan.info.ranks);
  CAIRN_ASSIGN(const Manifest manifest,
               read_manifest(site.files, DatasetFolder::manifest(folder, number)));
  bool all = false;
  for (const RankRecord& record : manifest.records) {
    CAIRN_ASSIGN(const bool done, markers.is_done(record.rank));
    if (!done) continue;
    for (std::size_t i = 0; i < record.files.size(); ++i)
      CAIRN_TRY(check_size(site.files, record.files[i], site.folder.staged(record, i)));
    CAIRN_ASSIGN(const bool top, markers.climb(record.rank));
    all = all || top;
  }
  return all;
}

}  // namespace cairn
