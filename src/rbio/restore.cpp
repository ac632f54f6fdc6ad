#include "rbio/restore.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "comm/blobs.hpp"
#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

std::string part_path(const std::string& step_path, std::size_t part) {
  return step_path + "/" + part_name(static_cast<std::uint32_t>(part));
}

Result<Blob> read_part_index(Files& files, const std::string& path) {
  auto file = files.open(path);
  if (!file && file.error().code == Code::not_found)
    return fail(Code::corrupt, "{} is missing", path);
  if (!file) return tl::unexpected(file.error());
  return read_index_bytes(**file, path);
}

/// Header and table of every part, one after the other, each with its length before it.
Result<Blob> read_all(Files& files, const std::string& step_path) {
  Encoder out;
  std::size_t parts = 1;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string path = part_path(step_path, part);
    CAIRN_ASSIGN(const Blob bytes, read_part_index(files, path));
    CAIRN_ASSIGN(const PartIndex index, decode_index(bytes, path));
    parts = index.header.parts;
    out.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return out.take();
}

bool belong_together(const PartHeader& first, const PartHeader& other, std::size_t part) {
  if (other.part != part || other.parts != first.parts || other.ranks != first.ranks ||
      other.step != first.step || other.attempt != first.attempt)
    return false;
  return std::equal(first.fields.begin(), first.fields.end(), other.fields.begin(),
                    other.fields.end(),
                    [](const FieldRegion& a, const FieldRegion& b) { return a.shape == b.shape; });
}

/// Each rank that wrote is in exactly one part.
bool is_complete(const std::vector<PartIndex>& parts) {
  std::vector<bool> seen(parts[0].header.ranks, false);
  for (const PartIndex& part : parts) {
    for (const RankEntry& entry : part.entries) {
      if (entry.rank >= seen.size() || seen[entry.rank]) return false;
      seen[entry.rank] = true;
    }
  }
  return std::all_of(seen.begin(), seen.end(), [](bool one) { return one; });
}

Result<std::vector<PartIndex>> decode_all(Bytes bytes, const std::string& step_path) {
  std::vector<PartIndex> parts;
  Decoder in(bytes);
  while (!in.at_end() && !in.failed()) {
    const std::string text = in.text();
    const std::string path = part_path(step_path, parts.size());
    CAIRN_ASSIGN(PartIndex index, decode_index(std::as_bytes(std::span(text)), path));
    if (!parts.empty() && !belong_together(parts[0].header, index.header, parts.size()))
      return fail(Code::corrupt, "{} does not belong to {}", path, part_path(step_path, 0));
    CAIRN_TRY(check_step_of(index.header, step_path, path));
    parts.push_back(std::move(index));
  }
  if (in.failed() || parts.empty() || !is_complete(parts))
    return fail(Code::corrupt, "{}: the tables of its parts do not fit together", step_path);
  return parts;
}

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The bytes `wanted` of a field, over all that was written.
class FieldReader {
 public:
  FieldReader(Files& files, const std::string& step_path, int rank)
      : files_(files), step_path_(step_path), rank_(rank) {}

  Status read(const StepIndex& index, std::size_t field, Range wanted, std::byte* out) {
    std::uint64_t piece_begin = 0;
    for (const PlacedPiece& placed : index.pieces(field)) {
      const std::uint64_t piece_end = piece_begin + placed.piece->bytes;
      const Range common = {std::max(wanted.begin, piece_begin), std::min(wanted.end, piece_end)};
      if (common.begin < common.end) {
        CAIRN_ASSIGN(File * file, open(placed.part));
        CAIRN_TRY(read_piece(*file, part_path(step_path_, placed.part), *placed.piece,
                             common.begin - piece_begin,
                             {out + (common.begin - wanted.begin), common.end - common.begin}));
      }
      piece_begin = piece_end;
    }
    return {};
  }

 private:
  /// The last one used stays open: pieces of one part follow each other.
  Result<File*> open(std::size_t part) {
    if (file_ == nullptr || part_ != part) {
      const std::string path = part_path(step_path_, part);
      auto opened = files_.open(path);
      if (!opened && opened.error().code == Code::not_found)
        return tl::unexpected(missing_here(path));
      CAIRN_ASSIGN(file_, std::move(opened));
      part_ = part;
    }
    return file_.get();
  }
  /// Rank 0 has read its table. A program that took this for a first run would replace the step.
  Error missing_here(const std::string& path) const {
    if (rank_ == 0) return {Code::corrupt, path + " is missing", -1};
    return {Code::io,
            path +
                " is not visible on this node, and rank 0 sees it; the directory of a series "
                "must be shared by all nodes",
            -1};
  }

  Files& files_;
  const std::string& step_path_;
  const int rank_;
  std::unique_ptr<File> file_;
  std::size_t part_ = 0;
};

Status check_field(const StepIndex& index, const std::string& step_path, const Field& field,
                   std::uint64_t wanted) {
  const auto found = index.find(field.shape.name);
  if (!found)
    return fail(Code::bad_argument, "{} has no field {}; \"cairn rbio show\" lists its fields",
                step_path, field.shape.name);
  const FieldShape& there = index.shape(*found);
  if (there != field.shape)
    return fail(
        Code::bad_argument,
        "field {} has type {} and {} components, and in {} it has type {} and {} components",
        there.name, dtype_of(field.shape.type), field.shape.components, step_path,
        dtype_of(there.type), there.components);
  const std::vector<std::uint64_t> counts = index.counts(*found);
  const std::uint64_t written = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (wanted != written)
    return fail(
        Code::bad_argument,
        "field {}: all ranks together ask for {} elements, and {} has {}; rbio_stored_count "
        "says how many each rank wrote",
        there.name, wanted, step_path, written);
  return {};
}

Status check_fields(const StepIndex& index, const std::string& step_path,
                    const std::vector<Field>& fields, const std::vector<std::int64_t>& totals) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    CAIRN_TRY(check_field(index, step_path, fields[i], static_cast<std::uint64_t>(totals[i])));
  return {};
}

}  // namespace

Result<StepIndex> StepIndex::load(Communicator& comm, Files& files, const std::string& step_path) {
  Blob bytes;
  Status read;
  if (comm.rank() == 0) {
    auto all = read_all(files, step_path);
    if (all)
      bytes = *std::move(all);
    else
      read = tl::unexpected(std::move(all).error());
  }
  CAIRN_TRY(agree(comm, std::move(read)));
  bcast_blob(comm, bytes, 0);
  StepIndex index;
  CAIRN_ASSIGN(index.parts_, decode_all(bytes, step_path));  // of the same bytes on all ranks
  return index;
}

std::optional<std::size_t> StepIndex::find(const std::string& field) const {
  const auto& fields = parts_[0].header.fields;
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const FieldRegion& region) {
    return region.shape.name == field;
  });
  if (found == fields.end()) return std::nullopt;
  return static_cast<std::size_t>(found - fields.begin());
}

std::vector<PlacedPiece> StepIndex::pieces(std::size_t field) const {
  std::vector<PlacedPiece> placed(ranks());
  for (const PartIndex& part : parts_)
    for (const RankEntry& entry : part.entries)
      placed[entry.rank] = {part.header.part, &entry.pieces[field]};
  return placed;
}

std::vector<std::uint64_t> StepIndex::counts(std::size_t field) const {
  std::vector<std::uint64_t> counts(ranks());
  for (const PartIndex& part : parts_)
    for (const RankEntry& entry : part.entries)
      counts[entry.rank] = entry.pieces[field].bytes / shape(field).element_bytes();
  return counts;
}

Status restore_step(Communicator& comm, Files& files, const std::string& step_path,
                    const StepIndex& index, const std::vector<Field>& fields) {
  std::vector<std::int64_t> counts;
  for (const Field& field : fields) counts.push_back(static_cast<std::int64_t>(field.count));
  const Scan scan = exclusive_scan(comm, counts);
  CAIRN_TRY(agree(comm, check_fields(index, step_path, fields, scan.total)));
  FieldReader reader(files, step_path, comm.rank());
  const auto read_mine = [&]() -> Status {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::uint64_t begin =
          static_cast<std::uint64_t>(scan.before[i]) * fields[i].shape.element_bytes();
      CAIRN_TRY(reader.read(index, *index.find(fields[i].shape.name),
                            {begin, begin + fields[i].bytes()}, fields[i].data));
    }
    return {};
  };
  return agree(comm, read_mine());
}

}  // namespace cairn::rbio
