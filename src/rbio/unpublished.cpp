#include "rbio/unpublished.hpp"

#include <optional>

#include "rbio/done_marker.hpp"
#include "rbio/series_names.hpp"

namespace cairn::rbio {
namespace {

std::optional<UnpublishedStep> step_of_name(const std::string& name) {
  UnpublishedStep found;
  if (const auto removed = parse_removed_name(name)) {
    found.state = UnpublishedStep::State::removed;
    found.step = *removed;
    return found;
  }
  const auto written = parse_attempt_name(name);
  if (!written) return std::nullopt;
  found.attempt = written->attempt;
  found.step = written->step;
  return found;
}

/// Counts part files and done markers.
Status look_into(Files& files, UnpublishedStep& found) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(found.path));
  for (const std::string& name : names) {
    const std::string path = found.path + "/" + name;
    if (name.starts_with("part.")) {
      CAIRN_ASSIGN(const FileInfo info, files.info(path));
      found.bytes += info.size;
      ++found.parts;
    }
    if (!parse_marker_name(name)) continue;
    CAIRN_ASSIGN(const Blob content, read_file(files, path, longest_marker));
    const auto marker = decode_done_marker(content);
    ++found.done;
    if (marker) found.writers = marker->writers;
  }
  const bool complete = found.writers > 0 && found.done >= found.writers;
  if (complete && found.state == UnpublishedStep::State::unfinished)
    found.state = UnpublishedStep::State::complete;
  return {};
}

}  // namespace

Result<std::vector<UnpublishedStep>> find_unpublished(Files& files, const std::string& series) {
  const std::string directory = series + "/" + std::string(work_directory);
  const auto names = files.list(directory);
  if (!names && names.error().code == Code::not_found) return std::vector<UnpublishedStep>{};
  if (!names) return tl::unexpected(names.error());
  std::vector<UnpublishedStep> all;
  for (const std::string& name : *names) {
    auto found = step_of_name(name);
    if (!found) continue;
    found->path = directory + "/" + name;
    const Status looked = look_into(files, *found);
    if (!looked && looked.error().code == Code::not_found) continue;  // published or deleted since
    CAIRN_TRY(looked);
    all.push_back(*std::move(found));
  }
  return all;
}

}  // namespace cairn::rbio
