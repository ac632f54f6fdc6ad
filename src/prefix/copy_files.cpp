#include "prefix/copy_files.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/checksum.hpp"
#include "redundancy/rank_blocks.hpp"

namespace cairn {
namespace {

/// Writes a stream of bytes over the files it is made of, one after the other.
class StreamWriter {
 public:
  StreamWriter(Files& files, const RankRecord& record, const std::vector<std::string>& paths,
               std::uint32_t mode, bool durable)
      : files_(files), record_(record), paths_(paths), mode_(mode), durable_(durable) {}

  Status write(Bytes data) {
    while (!data.empty()) {
      CAIRN_TRY(open_next());
      const auto length = static_cast<std::size_t>(
          std::min<std::uint64_t>(data.size(), record_.files[at_].size - offset_));
      CAIRN_TRY(file_->write_at(offset_, data.first(length)));
      data = data.subspan(length);
      offset_ += length;
    }
    return {};
  }

  /// Empty files at the end are made too.
  Status finish() {
    while (at_ < paths_.size()) {
      CAIRN_TRY(open_next());
      if (at_ < paths_.size() && offset_ < record_.files[at_].size)
        return fail(Code::corrupt, "{} would end at byte {} of {}", paths_[at_], offset_,
                    record_.files[at_].size);
    }
    return {};
  }

 private:
  /// Closes the open file if it is full, and opens the next that is not.
  Status open_next() {
    while (at_ < paths_.size()) {
      if (!file_) {
        CAIRN_ASSIGN(file_, files_.create(paths_[at_], mode_));
        offset_ = 0;
      }
      if (offset_ < record_.files[at_].size) return {};
      if (durable_) CAIRN_TRY(file_->sync());
      file_.reset();
      ++at_;
    }
    return {};
  }

  Files& files_;
  const RankRecord& record_;
  const std::vector<std::string>& paths_;
  const std::uint32_t mode_;
  const bool durable_;
  std::size_t at_ = 0;
  std::unique_ptr<File> file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::string names_at(const RankRecord& record, std::uint64_t offset, std::uint64_t length,
                     const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::uint64_t end = start + record.files[i].length();
    if (start < offset + length && offset < end) names.push_back(paths[i]);
    start = end;
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

Status check_size(Files& files, const FileEntry& entry, const std::string& path) {
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::file) return fail(Code::corrupt, "{} is not a regular file", path);
  if (info.size != entry.size)
    return fail(Code::corrupt, "{} has {} bytes, and {} were written to it", path, info.size,
                entry.size);
  return {};
}

Status copy_files(Files& files, const RankRecord& record, const std::vector<std::string>& from,
                  const std::vector<std::string>& to, std::uint32_t mode, bool durable,
                  Throttle& throttle) {
  for (std::size_t i = 0; i < from.size(); ++i)
    CAIRN_TRY(check_size(files, record.files[i], from[i]));
  RankBlocks source(files, from, record);
  const SetLayout layout(record.encoding);
  Blob scratch(layout.geometry().widest());
  StreamWriter out(files, record, to, mode, durable);
  for (std::uint64_t index = 0; index < record.data_crcs.size(); ++index) {
    CAIRN_ASSIGN(const Bytes block, source.data(index, scratch));
    if (crc32c(block) != record.data_crcs[index])
      return fail(Code::corrupt, "{} does not match its checksum",
                  names_at(record, layout.geometry().data_offset(index), block.size(), from));
    throttle.take(block.size());
    CAIRN_TRY(out.write(block));
  }
  return out.finish();
}

}  // namespace cairn
