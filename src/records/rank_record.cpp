#include "records/rank_record.hpp"

#include <algorithm>
#include <set>

#include "records/wire.hpp"

namespace cairn {
namespace {

constexpr std::size_t longest_name = 1024;  // SCR_MAX_FILENAME

void put(Encoder& out, const FileEntry& file) {
  out.text(file.name);
  out.u64(file.size);
  out.u32(file.mode);
  out.u32(file.owner);
  out.u32(file.group);
  out.i64(file.times.access_ns);
  out.i64(file.times.modify_ns);
  out.u64(file.begin());
  out.u64(file.length());
}

FileEntry get_file(Decoder& in) {
  FileEntry file;
  file.name = in.text();
  file.size = in.u64();
  file.mode = in.u32();
  file.owner = in.u32();
  file.group = in.u32();
  file.times.access_ns = in.i64();
  file.times.modify_ns = in.i64();
  FilePart part;
  part.begin = in.u64();
  part.length = in.u64();
  if (part.begin != 0 || part.length != file.size) file.part = part;
  return file;
}

void put(Encoder& out, const Encoding& encoding) {
  out.u64(encoding.generation);
  out.u32(static_cast<std::uint32_t>(encoding.scheme));
  out.u32(encoding.failures);
  out.u32(encoding.hop);
  out.u32(encoding.block_bytes);
  out.u64(encoding.members.size());
  for (std::size_t i = 0; i < encoding.members.size(); ++i) {
    out.u32(static_cast<std::uint32_t>(encoding.members[i]));
    out.u64(encoding.member_bytes[i]);
    out.text(encoding.member_nodes[i]);
  }
}

Encoding get_encoding(Decoder& in) {
  constexpr std::size_t smallest_member_bytes = 16;
  Encoding encoding;
  encoding.generation = in.u64();
  encoding.scheme = static_cast<Scheme>(in.u32());
  encoding.failures = in.u32();
  encoding.hop = in.u32();
  encoding.block_bytes = in.u32();
  const std::uint64_t members = in.count(smallest_member_bytes);
  for (std::uint64_t i = 0; i < members; ++i) {
    encoding.members.push_back(static_cast<int>(in.u32()));
    encoding.member_bytes.push_back(in.u64());
    encoding.member_nodes.push_back(in.text());
  }
  return encoding;
}

void put(Encoder& out, const std::vector<std::uint32_t>& crcs) {
  out.u64(crcs.size());
  for (const std::uint32_t crc : crcs) out.u32(crc);
}

std::vector<std::uint32_t> get_crcs(Decoder& in) {
  std::vector<std::uint32_t> crcs(in.count(4));
  for (std::uint32_t& crc : crcs) crc = in.u32();
  return crcs;
}

/// A list of none or one.
void put(Encoder& out, const std::optional<Exposure>& exposure) {
  out.u64(exposure ? 1 : 0);
  if (!exposure) return;
  out.text(exposure->boot);
  out.i64(exposure->since_us);
}

Exposure get_exposure(Decoder& in) {
  Exposure exposure;
  exposure.boot = in.text();
  exposure.since_us = in.i64();
  return exposure;
}

bool sizes_are_sane(const std::vector<FileEntry>& files) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 60;
  std::uint64_t total = 0;
  std::set<std::string> names;
  for (const FileEntry& file : files) {
    if (!is_safe_name(file.name) || is_own_name(file.name) || !names.insert(file.name).second)
      return false;
    if (file.size > largest || file.begin() > file.size ||
        file.length() > file.size - file.begin() || (total += file.length()) > largest)
      return false;
  }
  return true;
}

/// Only files in place are shared with other ranks.
bool parts_are_sane(const RankRecord& record) {
  return record.dataset.in_place() ||
         std::none_of(record.files.begin(), record.files.end(),
                      [](const FileEntry& file) { return file.part.has_value(); });
}

bool set_is_sane(const RankRecord& record) {
  const std::vector<int>& members = record.encoding.members;
  const std::set<int> distinct(members.begin(), members.end());
  const int ranks = static_cast<int>(record.dataset.ranks);
  return is_sound(record.encoding) && distinct.size() == members.size() && *distinct.begin() >= 0 &&
         *distinct.rbegin() < ranks && distinct.count(record.rank) == 1 &&
         record.encoding.member_bytes[static_cast<std::size_t>(record.index_in_set())] ==
             record.data_bytes();
}

bool blocks_are_sane(const RankRecord& record) {
  if (record.exposure)
    return record.encoding.scheme == Scheme::single && !record.dataset.in_place() &&
           record.data_crcs.empty() && record.parity_crcs.empty();
  const SetLayout layout(record.encoding);
  // Asked first: the number of parity blocks of more rows may not fit into its type.
  const bool rows_have_parity = layout.parity() == 0 || layout.rows() <= record.parity_crcs.size();
  return rows_have_parity && record.data_crcs.size() == layout.data_blocks(record.index_in_set()) &&
         record.parity_crcs.size() == layout.parity_blocks();
}

}  // namespace

std::uint64_t RankRecord::data_bytes() const {
  std::uint64_t bytes = 0;
  for (const FileEntry& file : files) bytes += file.length();
  return bytes;
}

int RankRecord::index_in_set() const {
  const auto found = std::find(encoding.members.begin(), encoding.members.end(), rank);
  return static_cast<int>(found - encoding.members.begin());
}

const std::string& RankRecord::node() const {
  return encoding.member_nodes[static_cast<std::size_t>(index_in_set())];
}

Blob encode(const RankRecord& record) {
  Encoder out;
  put(out, record.dataset);
  out.u32(static_cast<std::uint32_t>(record.rank));
  out.u64(record.files.size());
  for (const FileEntry& file : record.files) put(out, file);
  put(out, record.encoding);
  put(out, record.data_crcs);
  put(out, record.parity_crcs);
  put(out, record.exposure);
  return seal(RecordType::rank, rank_record_version, out.take());
}

Result<RankRecord> decode_rank_record(Bytes payload, std::uint32_t version) {
  if (version > rank_record_version)
    return fail(
        Code::newer_format,
        "written in format {} by a newer Cairn; this one reads up to {}: use the newer one, "
        "or set another SCR_JOB_ID to start apart from it",
        version, rank_record_version);
  constexpr std::size_t smallest_file_bytes = 56;
  constexpr std::size_t smallest_exposure_bytes = 12;
  Decoder in(payload);
  RankRecord record;
  record.dataset = get_dataset(in);
  record.rank = static_cast<int>(in.u32());
  const std::uint64_t files = in.count(smallest_file_bytes);
  for (std::uint64_t i = 0; i < files; ++i) record.files.push_back(get_file(in));
  record.encoding = get_encoding(in);
  record.data_crcs = get_crcs(in);
  record.parity_crcs = get_crcs(in);
  const std::uint64_t exposures = in.count(smallest_exposure_bytes);
  if (exposures > 0) record.exposure = get_exposure(in);
  if (version == 0 || exposures > 1 || in.failed() || !in.at_end() ||
      !sizes_are_sane(record.files) || !parts_are_sane(record) || !set_is_sane(record) ||
      !blocks_are_sane(record))
    return fail_as_senseless();
  return record;
}

bool is_safe_name(const std::string& name) {
  if (name.empty() || name.size() >= longest_name || name.find('\0') != std::string::npos)
    return false;
  std::size_t from = 0;
  while (from <= name.size()) {
    const std::size_t to = std::min(name.find('/', from), name.size());
    const std::string part = name.substr(from, to - from);
    if (part.empty() || part == "." || part == "..") return false;
    from = to + 1;
  }
  return true;
}

bool is_own_name(const std::string& name) {
  const std::string below = "/" + name;
  const std::size_t last = below.rfind('/') + 1;
  return name == ".cairn" || below.find("/.cairn/") != std::string::npos ||
         below.compare(last, 7, ".cairn.") == 0;
}

}  // namespace cairn
