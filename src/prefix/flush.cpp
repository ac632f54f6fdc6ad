#include "prefix/flush.hpp"

#include <map>

#include "prefix/copy_files.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/manifest.hpp"
#include "prefix/messages.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

/// The part of each rank, from its cache.
class OwnPart final : public Staging {
 public:
  OwnPart(const Site& site, const RankRecord& mine, const std::vector<std::string>& cached)
      : site_(site), mine_(mine), cached_(cached) {}

  Status describe(Communicator& comm, const std::string& folder, Status seen) override {
    const Status written = write_manifests(comm, site_.files, folder,
                                           Deal(mine_.dataset.ranks, comm.size()), records());
    const Status single = refuse_double_names(comm, records());
    for (const Status* each : {&written, &single})
      if (seen) seen = *each;
    CAIRN_TRY(agree(comm, std::move(seen)));
    // Only an older dataset must not take the names of newer files; a newer one may replace files.
    const bool late =
        site_.keeper != nullptr && site_.keeper->known().has_newer_than(mine_.dataset.uuid);
    if (allreduce(comm, late ? 1 : 0, Reduce::max) == 0) return {};
    return refuse_late_names(comm, site_, records());
  }

  std::span<const RankRecord> records() const override { return {&mine_, 1}; }

  /// The markers are for the processes that continue if this run dies; the ranks of this run agree
  /// by messages.
  Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                     const Status& planned) override {
    Status done = planned;
    const std::string folder = site_.folder.pending(site_.epoch, plan.info);
    in_turns(comm, site_.limits.width, [&] {
      if (done) done = do_part(site_, folder, mine_, cached_, StageBy::copy);
    });
    CAIRN_TRY(agree(comm, std::move(done)));
    return true;
  }

 private:
  const Site& site_;
  const RankRecord& mine_;
  const std::vector<std::string>& cached_;
};

}  // namespace

Status refuse_double_names(Communicator& comm, std::span<const RankRecord> records) {
  std::map<int, Encoder> messages;
  for (const RankRecord& record : records)
    for (const FileEntry& file : record.files) {
      const std::uint64_t hash = hash_of_name(file.name);
      Encoder& out = messages[static_cast<int>(hash % static_cast<std::uint64_t>(comm.size()))];
      out.text(file.name);
      out.u32(static_cast<std::uint32_t>(record.rank));
    }
  std::map<std::string, std::uint32_t> writers;
  Status status;
  exchange_messages(comm, std::move(messages), [&](int, Decoder& in) {
    std::string name = in.text();
    const std::uint32_t rank = in.u32();
    const auto [known, is_first] = writers.emplace(std::move(name), rank);
    if (!is_first && status)
      status = fail(Code::invalid,
                    "ranks {} and {} both have a file named {}, and in the cache each has its own: "
                    "if the ranks write one file together, set SCR_CACHE_BYPASS=1, and they write "
                    "it in the prefix directory; else put the rank into the name",
                    known->second, rank, known->first);
  });
  return status;
}

Status refuse_late_names(Communicator& comm, const Site& site,
                         std::span<const RankRecord> records) {
  Status status;
  for (const RankRecord& record : records)
    for (const FileEntry& file : record.files) {
      const std::string path = site.folder.file(file);
      if (status && is_written_since(site.files, file, path))
        status =
            fail(Code::invalid,
                 "{} was written again after this dataset, and is not overwritten; move it away to "
                 "copy this dataset, and give the files of each dataset different names",
                 path);
    }
  return agree(comm, std::move(status));
}

Result<FlushAccount> flush(Communicator& comm, const Site& site, const RankRecord& mine,
                           const std::vector<std::string>& cached, const std::string& job_id) {
  OwnPart part(site, mine, cached);
  return Publication(site, part, record_of(mine.dataset, job_id)).run(comm);
}

}  // namespace cairn
