#include "redundancy/closed_files.hpp"

namespace cairn {
namespace {

constexpr std::string_view remedy =
    "close every file (fclose, CLOSE, H5Fclose, munmap) before the call that completes the dataset";

}  // namespace

Status check_closed(Files& files, const RankRecord& record, const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CAIRN_ASSIGN(const bool is_open, files.is_open_for_writing(paths[i]));
    if (is_open)
      return fail(Code::invalid,
                  "{} of rank {} is still open for writing, so its end may be missing; {}",
                  record.files[i].name, record.rank, remedy);
  }
  return {};
}

Status check_unchanged(Files& files, const RankRecord& record,
                       const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const FileEntry& was = record.files[i];
    CAIRN_ASSIGN(const FileInfo now, files.info(paths[i]));
    if (now.kind != Kind::file || now.size != was.size ||
        now.times.modify_ns != was.times.modify_ns)
      return fail(Code::invalid, "{} of rank {} has changed while its checksums were taken; {}",
                  was.name, record.rank, remedy);
  }
  return {};
}

}  // namespace cairn
