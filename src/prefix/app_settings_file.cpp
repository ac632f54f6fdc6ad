#include "prefix/app_settings_file.hpp"

#include "files/modes.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t most_settings_bytes = 1 << 20;

/// The commands ask about other runs, and have found the directory.
bool is_of_one_run(const Entry& entry) {
  return entry.key == "SCR_PREFIX" || entry.key == "SCR_END_TIME" || entry.key == "SCR_NODELIST";
}

bool is_absent(const Result<Blob>& content) {
  return !content && content.error().code == Code::not_found;
}

}  // namespace

Status keep_app_settings(Files& files, const PrefixFolder& folder, std::vector<Entry> entries) {
  std::erase_if(entries, is_of_one_run);
  const std::string path = folder.job().app_settings();
  const auto kept = read_file(files, path, most_settings_bytes);
  if (entries.empty()) return is_absent(kept) ? Status{} : files.remove_file(path);
  const Blob content = encode_app_settings(entries);
  if (kept && *kept == content) return {};
  CAIRN_TRY(files.make_folder(folder.root(), directory_for_all));
  return write_file_atomically(files, path, content, true);
}

Result<std::vector<Entry>> read_app_settings(Files& files, const PrefixFolder& folder) {
  const auto content = read_file(files, folder.job().app_settings(), most_settings_bytes);
  if (is_absent(content)) return std::vector<Entry>{};
  CAIRN_TRY(content);
  auto entries = decode_app_settings(*content);
  if (entries) return entries;
  return fail(entries.error().code, "{}: {}; the program's next SCR_Init writes it again",
              folder.job().app_settings(), entries.error().text);
}

}  // namespace cairn
