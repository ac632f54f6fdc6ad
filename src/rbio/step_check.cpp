#include "rbio/step_check.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/count.hpp"
#include "comm/team.hpp"
#include "rbio/series_directory.hpp"

namespace cairn::rbio {
namespace {

std::optional<std::uint32_t> part_of_name(const std::string& name) {
  constexpr std::string_view start = "part.", end = ".rbio";
  if (!name.starts_with(start) || !name.ends_with(end) || name.size() < start.size() + end.size())
    return std::nullopt;
  const auto number = parse_number(
      std::string_view(name).substr(start.size(), name.size() - start.size() - end.size()));
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// A damaged file that is not there is damage, not a wrong name given by the user.
Result<std::unique_ptr<File>> open_part(Files& files, const std::string& path) {
  auto file = files.open(path);
  if (!file && file.error().code == Code::not_found)
    return fail(Code::corrupt, "{} is missing", path);
  return file;
}

class PartChecker {
 public:
  PartChecker(File& file, const std::string& path, std::vector<Trouble>& troubles)
      : file_(file), path_(path), troubles_(troubles) {}

  /// Nothing where header or table cannot be read.
  std::optional<PartHeader> check() {
    const auto bytes = read_index_bytes(file_, path_);
    if (!bytes) return add(std::nullopt, bytes.error()), std::nullopt;
    const auto header = decode_header(*bytes);  // read_index_bytes() has decoded it
    const auto index = decode_index(*bytes, path_);
    if (!index) {
      add(ByteRange{header->table_offset, header->table_offset + header->table_bytes},
          index.error());
      return std::nullopt;
    }
    check_content(*index);
    return index->header;
  }

 private:
  void check_content(const PartIndex& index) {
    for (const ByteRange& gap : gaps_of(index.header)) {
      const Status zero = check_gap(file_, path_, gap);
      if (!zero) add(gap, zero.error());
    }
    for (std::size_t field = 0; field < index.header.fields.size(); ++field)
      for (const RankEntry& entry : index.entries) check_piece(entry.pieces[field]);
  }

  /// Damaged blocks that follow each other are one trouble.
  void check_piece(const Piece& piece) {
    std::optional<ByteRange> damaged;
    for (std::uint64_t begin = 0; begin < piece.bytes; begin += block_bytes) {
      const std::uint64_t end = std::min(begin + block_bytes, piece.bytes);
      const Status read =
          read_piece(file_, path_, piece, begin, MutableBytes(block_).first(end - begin));
      const ByteRange block{piece.offset + begin, piece.offset + end};
      if (!read && read.error().code == Code::corrupt) {
        damaged = damaged ? ByteRange{damaged->begin, block.end} : block;
        continue;
      }
      add_damaged(damaged);
      if (!read) add(block, read.error());
    }
    add_damaged(damaged);
  }

  void add_damaged(std::optional<ByteRange>& blocks) {
    if (!blocks) return;
    add(blocks,
        {Code::corrupt, fmt::format("{} is damaged: the checksum of bytes {} to {} does not match",
                                    path_, blocks->begin, blocks->end - 1)});
    blocks.reset();
  }

  void add(std::optional<ByteRange> bytes, Error error) {
    troubles_.push_back({path_, bytes, std::move(error)});
  }

  File& file_;
  const std::string& path_;
  std::vector<Trouble>& troubles_;
  Blob block_ = Blob(block_bytes);
};

class StepChecker {
 public:
  StepChecker(Files& files, const std::string& step_path) : files_(files), path_(step_path) {}

  StepCheck run() {
    const auto there = parts_in(files_, path_);
    if (!there) {
      check_.troubles.push_back({path_, std::nullopt, there.error()});
      return std::move(check_);
    }
    for (const std::uint32_t part : *there) check_part(part);
    check_missing(*there);
    if (all_indexes_read_) check_together();
    return std::move(check_);
  }

 private:
  std::string path_of(std::uint32_t part) const { return path_ + "/" + part_name(part); }

  void check_part(std::uint32_t part) {
    const std::string path = path_of(part);
    const auto file = open_part(files_, path);
    if (!file) return add(path, file.error());
    const auto size = (*file)->size();
    if (!size) return add(path, size.error());
    ++check_.parts;
    check_.bytes += *size;
    const auto header = PartChecker(**file, path, check_.troubles).check();
    if (header)
      parts_ = std::max(parts_, header->parts);
    else
      all_indexes_read_ = false;
  }

  void check_missing(const std::vector<std::uint32_t>& there) {
    const auto expected = std::count_if(there.begin(), there.end(),
                                        [&](std::uint32_t part) { return part < parts_; });
    const auto missing = static_cast<std::int64_t>(parts_) - expected;
    if (missing > 0) {
      std::uint32_t first = 0;
      for (const std::uint32_t part : there) first += part == first ? 1 : 0;
      const std::string path = path_of(first);
      add(path,
          {Code::corrupt, missing == 1 ? path + " is missing"
                                       : fmt::format("{} is missing, and {} of {} more", path,
                                                     missing - 1, count_text(parts_, "part"))});
    }
    for (const std::uint32_t part : there)
      if (all_indexes_read_ && part >= parts_)
        add(path_of(part),
            {Code::corrupt, fmt::format("{} does not belong to the step, which has {}",
                                        path_of(part), count_text(parts_, "part"))});
  }

  void check_together() {
    const auto index = read_step_index(files_, path_);
    if (index) return;
    const auto is_known = [&](const Trouble& one) { return one.error.text == index.error().text; };
    if (std::none_of(check_.troubles.begin(), check_.troubles.end(), is_known))
      check_.troubles.push_back({path_, std::nullopt, index.error()});
  }

  void add(const std::string& file, Error error) {
    all_indexes_read_ = false;
    check_.troubles.push_back({file, std::nullopt, std::move(error)});
  }

  Files& files_;
  const std::string& path_;
  StepCheck check_;
  std::uint32_t parts_ = 1;
  bool all_indexes_read_ = true;
};

}  // namespace

Result<std::vector<std::uint32_t>> parts_in(Files& files, const std::string& step_path) {
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(step_path));
  std::vector<std::uint32_t> parts;
  for (const std::string& name : names)
    if (const auto part = part_of_name(name)) parts.push_back(*part);
  std::sort(parts.begin(), parts.end());
  return parts;
}

StepCheck check_step(Files& files, const std::string& step_path) {
  return StepChecker(files, step_path).run();
}

Result<StepIndex> read_step_index(Files& files, const std::string& step_path) {
  Result<StepIndex> index = fail(Code::wrong_state, "");
  Team(1).run([&](Communicator& comm) { index = StepIndex::load(comm, files, step_path); });
  return index;
}

Result<PartIndex> read_part_index(Files& files, const std::string& path) {
  CAIRN_ASSIGN(const auto file, open_part(files, path));
  CAIRN_ASSIGN(const Blob bytes, read_index_bytes(*file, path));
  return decode_index(bytes, path);
}

}  // namespace cairn::rbio
