// What a Session asks of the files of a dataset before it makes one of them.

#include "session/session.hpp"

namespace cairn {

Result<std::vector<FileEntry>> Session::collect_files(bool valid) {
  if (!valid)
    return fail(Code::invalid, "{}: rank {} passed valid=0", current_.label(), comm_.rank());
  if (const auto refused = routing_.refused())
    return fail(
        Code::invalid,
        "{}: SCR_Route_file failed on rank {} for the file {}, so the dataset is not complete: {}",
        current_.label(), comm_.rank(), refused->path, refused->why.text);
  // Other ranks may still be writing to files in place.
  return current_.in_prefix() ? std::vector<FileEntry>{} : look_at_files();
}

/// Some rank has no good files. That a file outside a prefix directory that does not exist has no
/// path is said once: SCR_Init has named the cause, and this names what follows from it.
Status Session::agree_on_files(const Result<std::vector<FileEntry>>& mine,
                               const NameEvidence& of_all) {
  Status agreed = agree(comm_, mine ? Status{} : Status(tl::unexpected(mine.error())));
  if (!agreed) name_shared_file(agreed.error(), of_all);
  if (!agreed && routing_.refused() && prefix_.is_missing())
    agreed.error().is_reported = std::exchange(is_missing_path_reported_, true);
  return agreed;
}

/// A file that all ranks write together lies in the cache of one of them: what the others miss
/// there has that cause.
void Session::name_shared_file(Error& error, const NameEvidence& of_all) {
  if (current_.in_prefix() || says_no_files(of_all) || says_distinct(of_all)) return;
  std::vector<FileEntry> asked_for;
  for (const auto& [name, path] : routing_.asked_for()) asked_for.push_back({name, 0, 0, 0, 0, {}});
  const Status distinct =
      agree(comm_, refuse_double_names(comm_, {record_of_current(std::move(asked_for))}));
  if (!distinct) error.text += "; " + distinct.error().text;
}

Result<std::vector<FileEntry>> Session::look_at_files() {
  std::vector<FileEntry> entries;
  for (const auto& [name, path] : routing_.asked_for()) {
    const auto info = files_.info(path);
    if (!info || info->kind != Kind::file)
      return fail(Code::invalid,
                  "{}: rank {} called SCR_Route_file for the file {}, but did not write it ({}); "
                  "write it to the path that SCR_Route_file returns",
                  current_.label(), comm_.rank(), name,
                  info ? "not a regular file" : info.error().text);
    entries.push_back({name, info->size, info->mode, info->owner, info->group, info->times});
  }
  return entries;
}

/// That the files of all ranks can make a dataset, by what their names say. The ranks exchange the
/// names themselves only where that is not enough. In the prefix directory ranks may share a file.
Status Session::check_names(const std::vector<FileEntry>& mine, const NameEvidence& of_all) {
  if (says_no_files(of_all)) return accept_no_files();
  if (current_.in_prefix() || says_distinct(of_all)) return {};
  return agree(comm_, refuse_double_names(comm_, {record_of_current(mine)}));
}

Status Session::accept_no_files() {
  constexpr std::string_view remedy =
      "call SCR_Route_file for each file between Start and Complete, and write to the path that it "
      "returns";
  if (current_.info.is_checkpoint())
    return fail(Code::invalid, "{}: no rank wrote a file, so no run could restart from it; {}",
                current_.label(), remedy);
  if (!std::exchange(no_files_told_, true))
    warn("{}: no rank wrote a file; if it should have files, {}", current_.label(), remedy);
  return {};
}

}  // namespace cairn
