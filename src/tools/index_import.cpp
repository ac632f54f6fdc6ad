#include <algorithm>
#include <set>

#include "base/checksum.hpp"
#include "base/units.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/scr_index.hpp"
#include "tools/index_found.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t piece_bytes = 4 << 20;

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

/// Whether the files are those that SCR has recorded, as far as it has recorded anything.
class FileCheck {
 public:
  FileCheck(Files& files, const PrefixFolder& folder, const ScrDataset& dataset)
      : files_(files), folder_(folder), dataset_(dataset) {}

  Status run() {
    std::uint64_t named = 0;
    std::uint64_t named_bytes = 0;
    for (const auto& of_rank : dataset_.ranks)
      for (const ScrFile& file : of_rank) {
        CAIRN_ASSIGN(const std::uint64_t size, check(file));
        ++named;
        named_bytes += size;
      }
    // Of a file that several ranks share SCR may count each share, or the file.
    const bool as_named = named == dataset_.files && named_bytes == dataset_.bytes;
    const bool as_there = seen_.size() == dataset_.files && seen_bytes_ == dataset_.bytes;
    if (as_named || as_there) return {};
    return fail(Code::corrupt, "its {} files have {} bytes, and SCR has recorded {} of {} bytes",
                seen_.size(), seen_bytes_, dataset_.files, dataset_.bytes);
  }

 private:
  Result<std::uint64_t> check(const ScrFile& file) {
    const std::string path = folder_.prefix + "/" + file.name;
    CAIRN_ASSIGN(const FileInfo info, files_.info(path));
    if (info.kind != Kind::file) return fail(Code::corrupt, "{} is not a regular file", path);
    if (file.size && info.size != *file.size)
      return fail(Code::corrupt, "{} has {} bytes, and SCR has recorded {}", path, info.size,
                  *file.size);
    if (!seen_.insert(file.name).second) return info.size;
    seen_bytes_ += info.size;
    if (!file.crc32) return info.size;
    CAIRN_ASSIGN(const std::uint32_t crc, crc32_of_file(files_, path, info.size));
    if (crc == *file.crc32) return info.size;
    return fail(Code::corrupt, "{} does not match the CRC32 that SCR has recorded", path);
  }

  Files& files_;
  const PrefixFolder& folder_;
  const ScrDataset& dataset_;
  std::set<std::string> seen_;
  std::uint64_t seen_bytes_ = 0;
};

class Import {
 public:
  Import(Communicator& alone, const Site& site, const Settings& settings, const Log& log,
         IndexChange& change)
      : alone_(alone),
        site_(site),
        keeper_(*site.keeper),
        settings_(settings),
        log_(log),
        change_(change) {}

  Status run() {
    CAIRN_ASSIGN(index_, read_scr_index(site_.files, site_.folder.prefix));
    CAIRN_TRY(look_around());
    for (std::size_t i = 0; i < index_.datasets.size(); ++i) CAIRN_TRY(take(i));
    if (index_.datasets.empty())
      change_.lines.push_back(fmt::format("SCR has no datasets in {}", site_.folder.prefix));
    return take_current();
  }

 private:
  Status look_around() {
    CAIRN_ASSIGN(const Dropped dropped, read_dropped(site_.files, site_.folder));
    for (const Listing* all : {&keeper_.listing(), &dropped.listing})
      for (const DatasetRecord& record : *all) known_.insert(record.info.uuid);
    CAIRN_ASSIGN(owners_, owners_of_files(site_.files, site_.folder, keeper_.listing()));
    for (std::size_t i = 0; i < index_.datasets.size(); ++i)
      for (const auto& of_rank : index_.datasets[i].ranks)
        for (const ScrFile& file : of_rank) newest_of_scr_[file.name] = i;
    return {};
  }

  /// An error only where the next one will not go better.
  Status take(std::size_t number) {
    const ScrDataset& dataset = index_.datasets[number];
    if (dataset.trouble.empty() && known_.contains(dataset.uuid())) {
      change_.lines.push_back(dataset.label() + " was imported before");
      return {};
    }
    const Status done = try_to_take(dataset, number);
    if (!done && done.error().code == Code::busy) return done;
    if (!done) change_.refused.push_back(dataset.label() + ": " + done.error().text);
    return {};
  }

  Status try_to_take(const ScrDataset& dataset, std::size_t number) {
    if (!dataset.trouble.empty()) return fail(Code::invalid, "{}", dataset.trouble);
    CAIRN_TRY(refuse_written_again(dataset, number));
    CAIRN_TRY(FileCheck(site_.files, site_.folder, dataset).run());
    CAIRN_ASSIGN(const DatasetRecord record, publish_found(alone_, site_, as_found(dataset)));
    change_.note(record, fmt::format("is imported: {} files of {} ranks, {}{}", record.files,
                                     record.info.ranks, format_bytes(record.bytes),
                                     dataset.failed ? "; a restart from it has failed" : ""));
    return {};
  }

  /// What was written again under the names of an older dataset is not that dataset any more.
  Status refuse_written_again(const ScrDataset& dataset, std::size_t number) const {
    for (const auto& of_rank : dataset.ranks)
      for (const ScrFile& file : of_rank) {
        const std::size_t newest = newest_of_scr_.at(file.name);
        const auto ours = owners_.find(file.name);
        const bool is_ours = ours != owners_.end() && ours->second.uuid > dataset.uuid();
        if (newest == number && !is_ours) continue;
        return fail(Code::invalid, "{} was written again for {}",
                    site_.folder.prefix + "/" + file.name,
                    is_ours ? "dataset " + ours->second.name : index_.datasets[newest].label());
      }
    return {};
  }

  FoundDataset as_found(const ScrDataset& dataset) const {
    FoundDataset found;
    DatasetInfo& info = found.record.info;
    info.uuid = dataset.uuid();
    info.number = dataset.id;
    info.checkpoint = dataset.checkpoint;
    info.flags = (dataset.checkpoint != 0 ? 1U : 0U) | (dataset.output ? 2U : 0U);
    info.ranks = static_cast<std::uint32_t>(dataset.ranks.size());
    info.name = dataset.name;
    found.record.job_id = dataset.job_id;
    if (dataset.failed) {
      found.record.failed_us = site_.clock.now_us();
      found.record.failure = "SCR has recorded that a restart from it failed";
    }
    for (const auto& of_rank : dataset.ranks) {
      std::vector<std::string>& names = found.files.emplace_back();
      for (const ScrFile& file : of_rank) names.push_back(file.name);
    }
    found.node = settings_.node_name;
    found.block_bytes = static_cast<std::uint32_t>(settings_.block_bytes);
    return found;
  }

  /// Unless nothing was taken over, or something newer than all of SCR's is there.
  Status take_current() {
    const Listing& listing = keeper_.listing();
    const auto newest = std::find_if(listing.begin(), listing.end(),
                                     [](const auto& one) { return one.info.is_checkpoint(); });
    if (change_.datasets.empty() || newest == listing.end() || !is_of_scr(*newest)) return {};
    const auto wanted = std::find_if(listing.begin(), listing.end(), [&](const auto& one) {
      return one.info.name == index_.current && is_of_scr(one) && one.info.is_checkpoint();
    });
    if (wanted != listing.end()) {
      CAIRN_TRY(keeper_.set_current(index_.current));
      change_.lines.push_back(fmt::format("{} {}", index_.current, said_of_current(*wanted)));
    } else if (!index_.current.empty()) {
      const DatasetRecord* taken = next_to_fetch(listing, fetching(), keeper_.current(), {});
      log_.warning("{}, which SCR would restart from, could not be imported: a restart uses {}",
                   index_.current, taken == nullptr ? "none" : taken->info.name);
    }
    return {};
  }

  bool is_of_scr(const DatasetRecord& record) const {
    return std::any_of(index_.datasets.begin(), index_.datasets.end(),
                       [&](const auto& dataset) { return dataset.uuid() == record.info.uuid; });
  }

  Communicator& alone_;
  const Site& site_;
  Keeper& keeper_;
  const Settings& settings_;
  const Log& log_;
  IndexChange& change_;
  ScrIndex index_;
  std::set<Uuid> known_;
  FileOwners owners_;
  std::map<std::string, std::size_t> newest_of_scr_;  ///< by the name of a file
};

}  // namespace

Status import_from_scr(Communicator& alone, const Site& site, const Settings& settings,
                       const Log& log, IndexChange& change) {
  return Import(alone, site, settings, log, change).run();
}

}  // namespace cairn
