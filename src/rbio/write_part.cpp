#include "rbio/write_part.hpp"

#include <algorithm>

#include "base/checksum.hpp"

namespace cairn::rbio {
namespace {

constexpr std::uint32_t file_mode = 0666;

/// Bytes of the buffer that go to one place in the file.
struct Extent {
  std::uint64_t file_offset = 0;
  std::uint64_t buffer_offset = 0;
  std::uint64_t bytes = 0;
};

/// In the order of the file; neighbours in file and buffer are one.
std::vector<Extent> extents_of(const std::vector<Share>& shares) {
  const BufferLayout layout(shares);
  std::vector<Extent> all;
  for (std::size_t member = 0; member < shares.size(); ++member)
    for (std::size_t field = 0; field < shares[member].bytes.size(); ++field)
      if (shares[member].bytes[field] > 0)
        all.push_back({shares[member].offsets[field], layout.offset(member, field),
                       shares[member].bytes[field]});
  std::sort(all.begin(), all.end(),
            [](const Extent& a, const Extent& b) { return a.file_offset < b.file_offset; });
  std::vector<Extent> joined;
  for (const Extent& extent : all) {
    Extent* last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->file_offset + last->bytes == extent.file_offset &&
        last->buffer_offset + last->bytes == extent.buffer_offset)
      last->bytes += extent.bytes;
    else
      joined.push_back(extent);
  }
  return joined;
}

/// Either way the device gets the bytes soon, so that little is left to the sync.
Status write_piece(File& file, bool is_direct, std::uint64_t offset, Bytes data) {
  if (is_direct) return file.write_past_cache(offset, data);
  CAIRN_TRY(file.write_at(offset, data));
  file.start_writing(offset, data.size());
  return {};
}

Status write_data(File& file, const PartTask& task, const WriteGate& gate) {
  std::uint64_t written = 0;
  for (Extent extent : extents_of(task.shares)) {
    while (extent.bytes > 0) {
      const std::uint64_t length =
          std::min(extent.bytes, write_bytes - extent.file_offset % write_bytes);
      CAIRN_TRY(gate(written));
      CAIRN_TRY(write_piece(file, task.is_direct, extent.file_offset,
                            task.buffer.subspan(extent.buffer_offset, length)));
      written += length;
      extent = {extent.file_offset + length, extent.buffer_offset + length, extent.bytes - length};
    }
  }
  return {};
}

/// Entries of neighbouring ranks lie side by side, and go out in one write.
Status write_table(File& file, const PartTask& task) {
  const BufferLayout layout(task.shares);
  Blob run;
  std::uint64_t run_offset = 0;
  for (std::size_t member = 0; member < task.shares.size(); ++member) {
    const Share& share = task.shares[member];
    RankEntry entry{share.rank, {}};
    for (std::size_t field = 0; field < share.bytes.size(); ++field)
      entry.pieces.push_back(
          {share.offsets[field], share.bytes[field],
           checksums_of(task.buffer.subspan(layout.offset(member, field), share.bytes[field]))});
    const Blob encoded = encode_entry(entry);
    if (!run.empty() && run_offset + run.size() != share.entry_offset) {
      CAIRN_TRY(file.write_at(run_offset, run));
      run.clear();
    }
    if (run.empty()) run_offset = share.entry_offset;
    run.insert(run.end(), encoded.begin(), encoded.end());
  }
  return file.write_at(run_offset, run);
}

}  // namespace

Result<Publication> write_part(Files& files, SeriesDirectory& series, const PartTask& task,
                               const WriteGate& gate) {
  const Attempt& attempt = task.header.attempt;
  const std::uint64_t step = task.header.step;
  const std::string folder = series.attempt_path(attempt, step);
  const std::string path = folder + "/" + part_name(task.header.part);
  CAIRN_TRY(gate(0));
  CAIRN_TRY(series.make_attempt(attempt, step));
  // Writers that share a file may come in any order: each makes it if it is not there.
  CAIRN_TRY(files.append(path, {}, file_mode));
  CAIRN_ASSIGN(const auto file, files.open_for_update(path));
  if (task.writes_header) CAIRN_TRY(file->resize(task.header.file_bytes));
  CAIRN_TRY(write_data(*file, task, gate));
  CAIRN_TRY(write_table(*file, task));
  if (task.writes_header) CAIRN_TRY(file->write_at(0, encode_header(task.header)));
  CAIRN_TRY(file->sync());
  CAIRN_TRY(files.sync_folder(folder));
  CAIRN_TRY(gate(0));  // from here on the step may be published
  CAIRN_TRY(series.mark_done(attempt, step, task.writer, task.writers));
  return series.publish_if_complete(attempt, step, task.writers);
}

}  // namespace cairn::rbio
