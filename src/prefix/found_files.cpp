#include "prefix/found_files.hpp"

#include <array>

#include "base/checksum.hpp"
#include "comm/blobs.hpp"
#include "prefix/check.hpp"
#include "prefix/in_place.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"

namespace cairn {
namespace {

constexpr int share_tag = 321;
constexpr std::uint64_t piece_bytes = 4 << 20;

/// A file that a rank claims, as rank 0 sends it.
struct ClaimedFile {
  std::string name;
  std::uint64_t index = 0;  ///< among those of the ranks that share the file
  std::uint64_t sharers = 1;
  RecordedFile recorded;
};

template <class Number>
void put_recorded(Encoder& out, const std::optional<Number>& value) {
  out.u64(value ? 1 : 0);
  out.u64(value.value_or(0));
}
template <class Number>
std::optional<Number> get_recorded(Decoder& in) {
  const bool is_recorded = in.u64() != 0;
  const auto value = static_cast<Number>(in.u64());
  return is_recorded ? std::optional(value) : std::nullopt;
}

void put(Encoder& out, const ClaimedFile& claim) {
  out.text(claim.name);
  out.u64(claim.index);
  out.u64(claim.sharers);
  put_recorded(out, claim.recorded.size);
  put_recorded(out, claim.recorded.crc32);
}

ClaimedFile get_claim(Decoder& in) {
  ClaimedFile claim;
  claim.name = in.text();
  claim.index = in.u64();
  claim.sharers = in.u64();
  claim.recorded.size = get_recorded<std::uint64_t>(in);
  claim.recorded.crc32 = get_recorded<std::uint32_t>(in);
  return claim;
}

Result<std::uint32_t> crc32_of_file(Files& files, const std::string& path, std::uint64_t size) {
  CAIRN_ASSIGN(const auto file, files.open(path));
  Blob piece(std::min(size, piece_bytes));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    const auto part = MutableBytes(piece).first(std::min(size - at, piece_bytes));
    CAIRN_TRY(file->read_at(at, part));
    crc = crc32(part, crc);
  }
  return crc;
}

class Found {
 public:
  Found(Communicator& comm, const Site& site, FoundDataset&& found)
      : comm_(comm), site_(site), found_(std::move(found)), deal_(0, comm.size()) {}

  Result<FlushAccount> run() {
    CAIRN_TRY(hand_out());
    CAIRN_TRY(agree(comm_, look()));
    CAIRN_TRY(compare_totals());
    Status matching;
    in_turns(comm_, site_.limits.read_width, [&] { matching = compare_checksums(); });
    CAIRN_TRY(agree(comm_, std::move(matching)));
    return publish_sealed(comm_, site_, records_, deal_, site_.limits.read_width, found_.record,
                          false, nullptr);
  }

 private:
  // --- which rank reads what ---

  /// Sends each rank the dataset, and the records that it must make.
  Status hand_out() {
    const bool gives = comm_.rank() == 0;
    CAIRN_TRY(agree(comm_, gives ? divide() : Status{}));
    Blob head = gives ? encode_head() : Blob{};
    bcast_blob(comm_, head, 0);
    CAIRN_TRY(agree(comm_, decode_head(head)));
    Blob mine;
    if (gives) {
      for (int rank = 1; rank < comm_.size(); ++rank)
        send_blob(comm_, encode_share(rank), rank, share_tag);
      mine = encode_share(0);
    } else {
      mine = recv_blob(comm_, 0, share_tag);
    }
    take_share(mine);
    return {};
  }

  /// On rank 0.
  Status divide() {
    if (found_.files.empty()) return fail(Code::bad_argument, "no rank has a file");
    std::map<std::string, std::pair<std::uint64_t, std::size_t>> named;  // ranks, the last one
    for (std::size_t rank = 0; rank < found_.files.size(); ++rank) {
      std::vector<ClaimedFile>& claims = claims_.emplace_back();
      for (const std::string& name : found_.files[rank]) {
        auto& [count, last] = named[name];
        if (count > 0 && last == rank)
          return fail(Code::bad_argument, "rank {} is given {} twice", rank, path_of(name));
        last = rank;
        const auto recorded = found_.recorded.find(name);
        claims.push_back({name, count++, 1,
                          recorded == found_.recorded.end() ? RecordedFile{} : recorded->second});
      }
    }
    for (std::vector<ClaimedFile>& claims : claims_)
      for (ClaimedFile& claim : claims) claim.sharers = named.at(claim.name).first;
    return {};
  }

  Blob encode_head() {
    found_.record.info.flags |= flag_in_place | flag_found;
    const Blob record = encode(found_.record);
    Encoder out;
    out.text({reinterpret_cast<const char*>(record.data()), record.size()});
    out.text(found_.node);
    out.u64(found_.files.size());
    out.u64(found_.block_bytes);
    out.u64(found_.totals ? 1 : 0);
    out.u64(found_.totals ? found_.totals->files : 0);
    out.u64(found_.totals ? found_.totals->bytes : 0);
    return out.take();
  }

  Status decode_head(Bytes head) {
    Decoder in(head);
    const std::string record = in.text();
    CAIRN_ASSIGN(found_.record, decode_dataset_record(std::as_bytes(std::span(record))));
    found_.node = in.text();
    deal_ = Deal(in.u64(), comm_.size());
    found_.block_bytes = static_cast<std::uint32_t>(in.u64());
    const bool has_totals = in.u64() != 0;
    RecordedTotals totals;
    totals.files = in.u64();
    totals.bytes = in.u64();
    if (has_totals) found_.totals = totals;
    return {};
  }

  Blob encode_share(int reader) const {
    Encoder out;
    for (std::uint64_t rank = deal_.first(reader); rank < deal_.end(reader); ++rank) {
      out.u64(claims_[rank].size());
      for (const ClaimedFile& claim : claims_[rank]) put(out, claim);
    }
    return out.take();
  }

  void take_share(Bytes share) {
    Decoder in(share);
    mine_.resize(deal_.end(comm_.rank()) - deal_.first(comm_.rank()));
    for (std::vector<ClaimedFile>& claims : mine_) {
      claims.resize(in.u64());
      for (ClaimedFile& claim : claims) claim = get_claim(in);
    }
  }

  // --- what is there ---

  std::string path_of(const std::string& name) const { return site_.folder.prefix + "/" + name; }

  Status look() {
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      RankRecord& record = records_.emplace_back();
      record.dataset = found_.record.info;
      record.rank = static_cast<int>(deal_.first(comm_.rank()) + i);
      record.encoding.block_bytes = found_.block_bytes;
      record.encoding.members = {record.rank};
      record.encoding.member_nodes = {found_.node};
      for (const ClaimedFile& claim : mine_[i]) CAIRN_TRY(look_at(claim, record));
      CAIRN_TRY(refuse_folders_led_out(record));
    }
    return {};
  }

  Status refuse_folders_led_out(const RankRecord& record) {
    CAIRN_ASSIGN(const auto led_out, folders_led_out(site_.files, site_.folder, record));
    if (led_out.empty()) return {};
    return fail(Code::bad_argument,
                "{} is a link, or not a directory, and Cairn follows no links here: name the files "
                "by their real path, which must be below {}",
                *led_out.begin(), site_.folder.prefix);
  }

  Status look_at(const ClaimedFile& claim, RankRecord& record) {
    if (!is_safe_name(claim.name))
      return fail(Code::bad_argument, "\"{}\" is not the name of a file below {}", claim.name,
                  site_.folder.prefix);
    if (is_own_name(claim.name))
      return fail(
          Code::bad_argument,
          "{} in {} is one of Cairn's own files, which cannot be part of a dataset: leave it out",
          claim.name, site_.folder.prefix);
    const std::string path = path_of(claim.name);
    CAIRN_ASSIGN(const FileInfo info, site_.files.info(path));
    if (info.kind != Kind::file)
      return fail(Code::invalid, "{} is not a regular file, so Cairn cannot check its contents",
                  path);
    if (claim.recorded.size && info.size != *claim.recorded.size)
      return fail(Code::corrupt, "{} has {} bytes, and {} are recorded", path, info.size,
                  *claim.recorded.size);
    record.files.push_back({claim.name, info.size, info.mode, info.owner, info.group, info.times});
    if (claim.sharers > 1)
      record.files.back().part = part_of(info.size, found_.block_bytes, claim.index, claim.sharers);
    return {};
  }

  /// A file that several ranks share may have been counted once, or once for each.
  Status compare_totals() {
    std::array<std::int64_t, 4> sums{};  // recorded, and existing
    for (std::size_t i = 0; i < mine_.size(); ++i)
      for (std::size_t file = 0; file < mine_[i].size(); ++file) {
        const auto size = static_cast<std::int64_t>(records_[i].files[file].size);
        const bool is_first = mine_[i][file].index == 0;
        sums[0] += 1;
        sums[1] += size;
        sums[2] += is_first ? 1 : 0;
        sums[3] += is_first ? size : 0;
      }
    comm_.allreduce(sums, Reduce::sum);
    if (!found_.totals) return {};
    const auto are = [&](std::int64_t files, std::int64_t bytes) {
      return static_cast<std::uint64_t>(files) == found_.totals->files &&
             static_cast<std::uint64_t>(bytes) == found_.totals->bytes;
    };
    if (are(sums[0], sums[1]) || are(sums[2], sums[3])) return {};
    return fail(Code::corrupt, "its {} files have {} bytes, and {} files of {} bytes are recorded",
                sums[2], sums[3], found_.totals->files, found_.totals->bytes);
  }

  Status compare_checksums() {
    for (std::size_t i = 0; i < mine_.size(); ++i)
      for (std::size_t file = 0; file < mine_[i].size(); ++file) {
        const ClaimedFile& claim = mine_[i][file];
        if (!claim.recorded.crc32 || claim.index != 0) continue;
        const std::string path = path_of(claim.name);
        CAIRN_ASSIGN(const std::uint32_t crc,
                     crc32_of_file(site_.files, path, records_[i].files[file].size));
        if (crc != *claim.recorded.crc32)
          return fail(Code::corrupt, "{} does not match the CRC32 that is recorded", path);
      }
    return {};
  }

  Communicator& comm_;
  const Site& site_;
  FoundDataset found_;
  Deal deal_;
  std::vector<std::vector<ClaimedFile>> claims_;  ///< of all ranks; on rank 0
  std::vector<std::vector<ClaimedFile>> mine_;    ///< of the ranks whose records this one makes
  std::vector<RankRecord> records_;               ///< the same
};

}  // namespace

Result<FlushAccount> publish_found(Communicator& comm, const Site& site, FoundDataset found) {
  return Found(comm, site, std::move(found)).run();
}

Result<FileOwners> owners_of_files(Files& files, const PrefixFolder& folder, const Listing& listing,
                                   std::vector<std::string>* troubles) {
  FileOwners owners;
  std::vector<std::string> unread;
  for (const DatasetRecord& dataset : listing)
    CAIRN_TRY(visit_ranks(files, folder.dataset(dataset.info), dataset, unread,
                          [&](const RankRecord& record) {
                            for (const FileEntry& file : record.files)
                              owners.emplace(file.name, dataset.info);
                          }));
  if (troubles != nullptr) *troubles = std::move(unread);
  return owners;
}

}  // namespace cairn
