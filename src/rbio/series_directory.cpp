#include "rbio/series_directory.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "rbio/done_marker.hpp"
#include "rbio/generation.hpp"
#include "rbio/part_file.hpp"
#include "rbio/series_names.hpp"

namespace cairn::rbio {
namespace {

constexpr std::string_view claim_name = "publishing";
constexpr std::uint32_t open_mode = 0777;

bool is_absent(const Error& error) { return error.code == Code::not_found; }

/// Makes the name of a directory durable, unless this user may not read the directory above it.
Status sync_name_of(Files& files, const std::string& path) {
  const Status synced = files.sync_folder(folder_of(path));
  return synced || !files.list(folder_of(path)) ? Status{} : synced;
}

/// As make_folders(), and the names are durable. A run that died may have made a directory without
/// syncing its name; then nothing is in it.
Status make_durable_folders(Files& files, const std::string& path) {
  const std::string above = folder_of(path);
  auto is_new = files.make_new_folder(path, open_mode);
  if (!is_new && is_absent(is_new.error()) && above != path) {
    CAIRN_TRY(make_durable_folders(files, above));
    is_new = files.make_new_folder(path, open_mode);
  }
  if (!is_new) return tl::unexpected(is_new.error());
  if (!*is_new) return {};
  CAIRN_TRY(files.sync_folder(above));
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(above));
  return names.size() == 1 ? sync_name_of(files, above) : Status{};
}

}  // namespace

std::string SeriesDirectory::step_path(std::uint64_t step) const {
  return path_ + "/" + step_name(step);
}

std::string SeriesDirectory::attempt_path(const Attempt& attempt, std::uint64_t step) const {
  return work_path() + "/" + attempt_name({attempt, step});
}

Result<std::uint64_t> SeriesDirectory::open_for_writing() {
  Status made = make_durable_folders(files_, work_path());
  // What is missing is not the series: a file, or nothing that may be made, is in its place.
  if (!made && is_absent(made.error())) made.error().code = Code::io;
  CAIRN_TRY(std::move(made));
  auto lock = files_.lock(work_path() + "/lock");
  if (!lock && lock.error().code == Code::busy)
    return fail(
        Code::busy,
        "{}: another run or handle has this series open; give each a directory of its own, or "
        "wait until the other one has closed it",
        path_);
  if (!lock && lock.error().code == Code::io)
    lock.error().text +=
        "; this lock keeps two runs apart, so the file system must have locks (flock; on Lustre, "
        "by "
        "the mount option flock)";
  CAIRN_ASSIGN(lock_, std::move(lock));
  CAIRN_TRY(finish_leftovers());
  return next_generation();
}

std::shared_ptr<void> SeriesDirectory::release() { return std::move(lock_); }

Result<std::uint64_t> SeriesDirectory::visible_generation() {
  CAIRN_ASSIGN(const Blob content, read_file(files_, generation_path(), longest_marker));
  return decode_generation(content);
}

Result<std::vector<PublishedStep>> SeriesDirectory::steps() {
  CAIRN_ASSIGN(const std::vector<std::string> names, files_.list(path_));
  std::vector<PublishedStep> found;
  for (const std::string& name : names) {
    const auto step = parse_step_name(name);
    if (!step) continue;
    auto attempt = attempt_of_step(*step);
    if (attempt && !*attempt) continue;  // removed meanwhile
    if (attempt)
      found.push_back({*step, **attempt, {}});
    else
      found.push_back({*step, Attempt{}, tl::unexpected(std::move(attempt).error())});
  }
  std::sort(found.begin(), found.end(), [](const PublishedStep& a, const PublishedStep& b) {
    return std::pair(a.attempt, a.step) < std::pair(b.attempt, b.step);
  });
  return found;
}

/// Also below what a user removed while it was in use.
Status SeriesDirectory::make_attempt(const Attempt& attempt, std::uint64_t step) {
  return make_folders(files_, attempt_path(attempt, step), open_mode);
}

Status SeriesDirectory::mark_done(const Attempt& attempt, std::uint64_t step, int writer,
                                  int writers) {
  const std::string folder = attempt_path(attempt, step);
  const Status marked =
      write_file_atomically(files_, folder + "/" + marker_name(static_cast<std::uint32_t>(writer)),
                            encode(DoneMarker{static_cast<std::uint32_t>(writers)}), true);
  // Where the directory is gone, another writer has seen this marker, and published the step.
  return !marked && is_absent(marked.error()) ? Status{} : marked;
}

Result<bool> SeriesDirectory::has_all_markers(const std::string& folder, int writers) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files_.list(folder));
  const auto marked = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return parse_marker_name(name).has_value();
  });
  return marked >= writers;
}

Result<Publication> SeriesDirectory::publish_if_complete(const Attempt& attempt, std::uint64_t step,
                                                         int writers) {
  const std::string folder = attempt_path(attempt, step);
  const auto complete = has_all_markers(folder, writers);
  if (!complete && is_absent(complete.error())) return Publication::by_others;
  if (!complete) return tl::unexpected(complete.error());
  if (!*complete) return Publication::by_others;
  CAIRN_ASSIGN(const bool is_claimed, claim(folder));
  if (!is_claimed) return Publication::by_others;
  return publish(attempt, step, writers);
}

/// Two that publish would take each other's step for an older one; one that publishes while another
/// removes would publish half of it. False if another process has the claim, or the attempt is
/// gone.
Result<bool> SeriesDirectory::claim(const std::string& folder) {
  auto is_first = files_.make_new_folder(folder + "/" + std::string(claim_name), open_mode);
  if (!is_first && is_absent(is_first.error())) return false;
  return is_first;
}

Status SeriesDirectory::drop_claim(const std::string& folder) {
  return files_.remove_folder(folder + "/" + std::string(claim_name));
}

/// By one process at a time.
Result<Publication> SeriesDirectory::publish(const Attempt& attempt, std::uint64_t step,
                                             int writers) {
  const std::string folder = attempt_path(attempt, step);
  CAIRN_ASSIGN(const std::optional<Attempt> there, attempt_to_beat(step));
  if (there && *there > attempt) {
    CAIRN_TRY(remove_all(files_, folder));
    return Publication::superseded;
  }
  // While this process made its claim, another one, which had made it before and removed it, has
  // published the step: a directory that is renamed takes along what is just being made in it.
  if (there && *there == attempt) {
    static_cast<void>(drop_claim(step_path(step)));  // it means nothing there
    return Publication::by_others;
  }
  // In the same way the claim may be in an attempt that another process removes: then the step that
  // is there must stay.
  const auto found = files_.info(folder);
  if (!found && is_absent(found.error())) return Publication::by_others;
  if (!found) return tl::unexpected(found.error());
  if (there) {
    CAIRN_TRY(files_.sync_folder(work_path()));  // else a power failure could take both
    CAIRN_ASSIGN(const bool is_aside, put_aside(step, *there));
    if (!is_aside) return publish(attempt, step, writers);
  }
  const Status named = files_.rename(folder, step_path(step));
  // The step before stays, as far as the file system allows it.
  if (!named && there) static_cast<void>(files_.rename(aside_path(step), step_path(step)));
  CAIRN_TRY(named);
  CAIRN_TRY(files_.sync_folder(path_));
  CAIRN_TRY(files_.sync_folder(work_path()));
  remove_what_is_over(step, writers, there.has_value());
  return Publication::published;
}

/// The step is durable, so that no failure here is one of the step: what stays means nothing, and
/// the next open, or the next one that is put aside, removes it.
void SeriesDirectory::remove_what_is_over(std::uint64_t step, int writers, bool has_predecessor) {
  static_cast<void>(drop_claim(step_path(step)));
  for (int writer = 0; writer < writers; ++writer)
    static_cast<void>(files_.remove_file(step_path(step) + "/" +
                                         marker_name(static_cast<std::uint32_t>(writer))));
  if (has_predecessor) static_cast<void>(remove_all(files_, aside_path(step)));
}

Status SeriesDirectory::remove_incomplete(const Attempt& attempt, std::uint64_t step, int writers) {
  const std::string folder = attempt_path(attempt, step);
  CAIRN_ASSIGN(const bool is_claimed, claim(folder));
  if (!is_claimed) return {};
  // Looked for only now: with the claim, nobody publishes any more.
  const auto complete = has_all_markers(folder, writers);
  if (!complete && is_absent(complete.error())) {
    // Published while this process made its claim, as in publish().
    CAIRN_ASSIGN(const std::optional<Attempt> there, attempt_to_beat(step));
    return there && *there == attempt ? drop_claim(step_path(step)) : Status{};
  }
  if (!complete) return tl::unexpected(complete.error());
  if (*complete) return drop_claim(folder);
  // Renamed first, so that a late writer does not find what is half removed.
  const std::string aside = work_path() + "/" + removed_name({attempt, step});
  CAIRN_TRY(files_.rename(folder, aside));
  return remove_all(files_, aside);
}

Status SeriesDirectory::remove_all_but(std::size_t keep) {
  CAIRN_ASSIGN(std::vector<PublishedStep> all, steps());
  // A step that cannot be read now may be readable later, so only a user removes it.
  std::erase_if(all, [](const PublishedStep& one) { return !one.readable; });
  for (std::size_t i = 0; i + keep < all.size(); ++i) {
    CAIRN_TRY(put_aside(all[i].step, all[i].attempt));
    CAIRN_TRY(remove_all(files_, aside_path(all[i].step)));
  }
  return {};
}

/// A step is removed by a rename first, so that no reader ever sees half of one, also after a power
/// failure. False, and nothing is done, if another attempt is there by now: a file system may have
/// held this thread for long.
Result<bool> SeriesDirectory::put_aside(std::uint64_t step, const Attempt& attempt) {
  CAIRN_TRY(remove_all(files_, aside_path(step)));
  CAIRN_ASSIGN(const std::optional<Attempt> there, attempt_to_beat(step));
  if (there != attempt) return false;
  CAIRN_TRY(files_.rename(step_path(step), aside_path(step)));
  CAIRN_TRY(files_.sync_folder(path_));
  return true;
}

Status SeriesDirectory::finish_leftovers() {
  CAIRN_ASSIGN(const std::vector<std::string> names, files_.list(work_path()));
  for (const std::string& name : names) {
    if (parse_attempt_name(name)) CAIRN_TRY(finish_attempt(name));
    if (parse_removed_name(name)) CAIRN_TRY(remove_all(files_, work_path() + "/" + name));
  }
  return {};
}

/// As the first marker that is not damaged says; 0 if there is none. newer_format if only a newer
/// version knows.
Result<int> SeriesDirectory::count_writers(const std::string& folder) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files_.list(folder));
  for (const std::string& name : names) {
    if (!parse_marker_name(name)) continue;
    const std::string path = folder + "/" + name;
    CAIRN_ASSIGN(const Blob content, read_file(files_, path, longest_marker));
    const auto done = decode_done_marker(content);
    if (!done && done.error().code == Code::corrupt) continue;
    if (!done) return fail(done.error().code, "{} {}", path, done.error().text);
    const int writers = static_cast<int>(done->writers);
    return writers;
  }
  return 0;
}

/// Publishes it if every writer of the dead run had finished, else removes it.
Status SeriesDirectory::finish_attempt(const std::string& name) {
  const std::string folder = work_path() + "/" + name;
  const auto known = parse_attempt_name(name);
  CAIRN_ASSIGN(const int writers, count_writers(folder));
  if (!known || writers == 0) return remove_all(files_, folder);
  CAIRN_ASSIGN(const bool complete, has_all_markers(folder, writers));
  if (!complete) return remove_all(files_, folder);
  CAIRN_TRY(publish(known->attempt, known->step, writers));
  return {};
}

/// After the one that was counted last, and after those of all steps: a user may have copied a step
/// from another series, or restored the count from a backup.
Result<std::uint64_t> SeriesDirectory::next_generation() {
  const std::string path = generation_path();
  CAIRN_ASSIGN(const std::uint64_t counted, last_generation(path));
  CAIRN_ASSIGN(const std::vector<PublishedStep> all, steps());
  const std::uint64_t of_steps = all.empty() ? 0 : all.back().attempt.generation;
  const std::uint64_t next = std::max(counted, of_steps) + 1;
  CAIRN_TRY(write_file_atomically(files_, path, encode_generation(next), true));
  return next;
}

/// 0 if the count is missing or damaged.
Result<std::uint64_t> SeriesDirectory::last_generation(const std::string& path) {
  const auto content = read_file(files_, path, longest_marker);
  if (!content && !is_absent(content.error())) return tl::unexpected(content.error());
  if (!content) {
    CAIRN_TRY(files_.sync_folder(path_));  // a run may have died before it had synced ".rbio"
    return 0;
  }
  const auto counted = decode_generation(*content);
  if (counted) return *counted;
  if (counted.error().code == Code::corrupt) return 0;
  return fail(counted.error().code, "{}: {}", path, counted.error().text);
}

/// As attempt_of_step(); a step that is damaged is older than any other.
Result<std::optional<Attempt>> SeriesDirectory::attempt_to_beat(std::uint64_t step) {
  auto attempt = attempt_of_step(step);
  if (!attempt && attempt.error().code == Code::corrupt) return Attempt{};
  return attempt;
}

/// Nothing if there is no such step.
Result<std::optional<Attempt>> SeriesDirectory::attempt_of_step(std::uint64_t step) {
  const std::string path = step_path(step) + "/" + part_name(0);
  auto file = files_.open(path);
  if (!file && is_absent(file.error())) {
    const auto folder = files_.info(step_path(step));
    if (!folder && is_absent(folder.error())) return std::nullopt;
    return fail(Code::corrupt, "{} is missing", path);
  }
  if (!file) return tl::unexpected(file.error());
  CAIRN_ASSIGN(const PartHeader header, read_header(**file, path));
  CAIRN_TRY(check_step_of(header, step_path(step), path));
  return header.attempt;
}

}  // namespace cairn::rbio
