#include "prefix/in_place.hpp"

#include <algorithm>
#include <map>

#include "prefix/messages.hpp"
#include "prefix/own_names.hpp"
#include "redundancy/closed_files.hpp"
#include "redundancy/protect.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// A rank that has a file.
struct Sharer {
  int rank = 0;
  std::uint64_t file = 0;  ///< its index among the files of the rank
  std::uint64_t size = 0;  ///< as the rank sees it
};

/// By name; in the order of ranks.
using SharersOfFile = std::map<std::string, std::vector<Sharer>>;

/// Each rank gets the names whose hash belongs to it.
SharersOfFile gather_sharers(Communicator& comm, const RankRecord& mine) {
  std::map<int, Encoder> messages;
  for (std::size_t i = 0; i < mine.files.size(); ++i) {
    const std::uint64_t hash = hash_of_name(mine.files[i].name);
    Encoder& out = messages[static_cast<int>(hash % static_cast<std::uint64_t>(comm.size()))];
    out.text(mine.files[i].name);
    out.u64(i);
    out.u64(mine.files[i].size);
  }
  SharersOfFile sharers_of;
  exchange_messages(comm, std::move(messages), [&](int rank, Decoder& in) {
    std::vector<Sharer>& of_file = sharers_of[in.text()];
    const std::uint64_t file = in.u64();
    of_file.push_back({rank, file, in.u64()});
  });
  return sharers_of;
}

Status check_sizes(const std::string& name, const std::vector<Sharer>& sharers) {
  for (const Sharer& sharer : sharers)
    if (sharer.size != sharers[0].size)
      return fail(
          Code::invalid,
          "{} has {} bytes for rank {} and {} for rank {}: all ranks that share a file must "
          "close it before the call that completes the dataset",
          name, sharers[0].size, sharers[0].rank, sharer.size, sharer.rank);
  return {};
}

/// Collective. Gives each rank its part of the files that it shares. The error is local.
Status divide_shared(Communicator& comm, RankRecord& mine) {
  Status status;
  std::map<int, Encoder> answers;
  for (const auto& [name, sharers] : gather_sharers(comm, mine)) {
    if (sharers.size() == 1) continue;
    if (status) status = check_sizes(name, sharers);
    for (std::size_t i = 0; i < sharers.size(); ++i) {
      Encoder& out = answers[sharers[i].rank];
      out.u64(sharers[i].file);
      out.u64(i);
      out.u64(sharers.size());
    }
  }
  exchange_messages(comm, std::move(answers), [&](int, Decoder& in) {
    FileEntry& file = mine.files[in.u64()];
    const std::uint64_t index = in.u64();
    file.part = part_of(file.size, mine.encoding.block_bytes, index, in.u64());
  });
  return status;
}

Status seal_files(Files& files, const PrefixFolder& folder, RankRecord& record,
                  std::string* open_elsewhere) {
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files) paths.push_back(folder.file(file));
  CAIRN_TRY(check_closed(files, record, paths, open_elsewhere));
  record.encoding.member_bytes = {record.data_bytes()};
  RankBlocks blocks(files, paths, record);
  CAIRN_TRY(take_checksums(blocks, record));
  // Also for a shared file, each node may have data of its ranks in its cache. The times must be
  // durable too, as they later show whether the program has written a file again.
  for (const std::string& path : paths) {
    CAIRN_ASSIGN(const auto file, files.open(path));
    CAIRN_TRY(file->sync_all());
  }
  CAIRN_TRY(sync_folders(files, folder, record));
  return check_unchanged(files, record, paths);
}

/// Staging for files that have their own names already: stages nothing. describe() takes their
/// checksums, and makes them durable.
class FilesInPlace final : public Staging {
 public:
  FilesInPlace(const Site& site, std::span<RankRecord> records, const Deal& deal, int width,
               bool took, std::string* open_elsewhere)
      : site_(site),
        records_(records),
        deal_(deal),
        width_(width),
        took_(took),
        open_elsewhere_(open_elsewhere) {}

  Status describe(Communicator& comm, const std::string& folder, Status seen) override {
    in_turns(comm, width_, [&] {
      for (RankRecord& record : records_)
        if (seen) seen = seal_files(site_.files, site_.folder, record, open_elsewhere_);
    });
    CAIRN_TRY(agree(comm, std::move(seen)));
    return agree(comm, write_manifests(comm, site_.files, folder, deal_, records()));
  }

  std::span<const RankRecord> records() const override { return records_; }

  /// The ranks agree on `planned` when they publish.
  Result<bool> stage(Communicator& /*comm*/, const DatasetRecord& /*plan*/,
                     const Status& /*planned*/) override {
    return true;
  }

  Result<bool> visit_staged(Communicator& /*comm*/, const std::string& /*folder*/,
                            const Treat& /*treat*/) override {
    return true;
  }

  bool has_replaced_files() const override { return took_; }

 private:
  const Site& site_;
  const std::span<RankRecord> records_;
  const Deal& deal_;
  const int width_;
  const bool took_;
  std::string* const open_elsewhere_;
};

}  // namespace

Result<FlushAccount> publish_sealed(Communicator& comm, const Site& site,
                                    std::span<RankRecord> records, const Deal& deal, int width,
                                    const DatasetRecord& dataset, bool took,
                                    std::string* open_elsewhere) {
  FilesInPlace in_place(site, records, deal, width, took, open_elsewhere);
  return Publication(site, in_place, dataset).run(comm);
}

Result<FlushAccount> publish_in_place(Communicator& comm, const Site& site, RankRecord& mine,
                                      const std::string& job_id, bool took) {
  CAIRN_TRY(agree(comm, divide_shared(comm, mine)));
  std::string open_elsewhere;
  const Deal deal(mine.dataset.ranks, comm.size());
  CAIRN_ASSIGN(FlushAccount account,
               publish_sealed(comm, site, {&mine, 1}, deal, site.limits.width,
                              record_of(mine.dataset, job_id), took, &open_elsewhere));
  account.open_elsewhere = std::move(open_elsewhere);
  return account;
}

FilePart part_of(std::uint64_t size, std::uint64_t block_bytes, std::uint64_t index,
                 std::uint64_t sharers) {
  const std::uint64_t blocks = (size + block_bytes - 1) / block_bytes;
  const auto start = [&](std::uint64_t of) {
    return std::min(size, (blocks * of + sharers - 1) / sharers * block_bytes);
  };
  return {start(index), start(index + 1) - start(index)};
}

}  // namespace cairn
