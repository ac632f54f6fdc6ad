#include "prefix/tidy.hpp"

#include <fmt/ranges.h>

#include <span>

#include "prefix/carry_out.hpp"
#include "prefix/check.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/flush.hpp"
#include "prefix/manifest.hpp"
#include "prefix/own_names.hpp"
#include "prefix/unfinished.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

using Remains = Keeper::Remains;

/// By their ends, where they follow each other: a job has a manifest for every few ranks, and all
/// ranks are told of all.
void put(Encoder& out, const std::vector<std::uint64_t>& ascending) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const std::uint64_t number : ascending) {
    if (!runs.empty() && runs.back().second == number)
      ++runs.back().second;
    else
      runs.emplace_back(number, number + 1);
  }
  out.u64(runs.size());
  for (const auto& [begin, end] : runs) {
    out.u64(begin);
    out.u64(end);
  }
}

std::vector<std::uint64_t> get_numbers(Decoder& in) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t runs = in.count(16); runs > 0; --runs) {
    std::uint64_t number = in.u64();
    for (const std::uint64_t end = in.u64(); number < end; ++number) numbers.push_back(number);
  }
  return numbers;
}

Blob encode_all(const std::vector<Remains>& all) {
  Encoder out;
  out.u64(all.size());
  for (const Remains& remains : all) {
    out.u32(static_cast<std::uint32_t>(remains.kind));
    out.text(remains.folder);
    const Blob plan = remains.plan ? encode(*remains.plan) : Blob{};
    out.text({reinterpret_cast<const char*>(plan.data()), plan.size()});
    const Blob newer = encode(remains.newer);
    out.text({reinterpret_cast<const char*>(newer.data()), newer.size()});
    for (const auto* text : {&remains.label, &remains.given_up, &remains.unknown}) out.text(*text);
    put(out, remains.manifests);
  }
  return out.take();
}

std::vector<Remains> decode_all(Bytes blob) {
  constexpr std::size_t smallest_bytes = 32;
  Decoder in(blob);
  std::vector<Remains> all(in.count(smallest_bytes));
  for (Remains& remains : all) {
    remains.kind = static_cast<Remains::Kind>(in.u32());
    remains.folder = in.text();
    const std::string plan = in.text();
    if (!plan.empty()) remains.plan = *decode_dataset_record(std::as_bytes(std::span(plan)));
    const std::string newer = in.text();
    remains.newer = *decode_listing(std::as_bytes(std::span(newer)));
    for (auto* text : {&remains.label, &remains.given_up, &remains.unknown}) *text = in.text();
    remains.manifests = get_numbers(in);
  }
  return all;
}

/// A file that is no longer what the dataset wrote, because the program wrote it again since,
/// stays; so does one of which that cannot be known, as its times were not kept.
Status remove_own_file(Files& files, const std::string& path, const FileEntry& entry,
                       bool times_kept, KeptFiles& kept) {
  const auto info = files.info(path);
  if (!info && info.error().code == Code::not_found) return {};
  CAIRN_TRY(info);
  const bool same = info->kind == Kind::file && info->size == entry.size;
  if (same && times_kept && has_time_of(*info, entry)) return files.remove_file(path);
  const bool known = times_kept || !same;
  ++(known ? kept.changed : kept.unknown);
  return {};
}

/// The folder, if that was the last file in it, and those above that are empty then.
void remove_empty_folders(Files& files, const std::string& prefix, std::string folder) {
  while (folder.size() > prefix.size() && files.remove_folder(folder)) folder = folder_of(folder);
}

Status remove_rank_files(const Site& site, const RankRecord& record, KeptFiles& kept) {
  CAIRN_TRY(unstage_rank(site.files, site.folder, record));
  CAIRN_ASSIGN(const auto led_out, folders_led_out(site.files, site.folder, record));
  for (const FileEntry& entry : record.files) {
    const std::string path = site.folder.file(entry);
    // What was written in place has the times that the program gave it.
    const bool times_kept = site.copy_metadata || record.dataset.in_place();
    if (led_out.contains(folder_of(path)))
      kept.led_out += site.files.info(path) ? 1 : 0;
    else
      CAIRN_TRY(remove_own_file(site.files, path, entry, times_kept, kept));
  }
  // They must not come back once the manifest that tells of them is gone.
  for (const std::string& folder : folders_of(site.folder, record)) {
    if (led_out.contains(folder)) continue;
    const Status synced = sync_folder_in(site.files, site.folder, folder);
    if (!synced && synced.error().code != Code::not_found) return synced;
    if (!record.dataset.in_place())
      remove_empty_folders(site.files, site.folder.prefix, folder);
    else if (folder != site.folder.prefix)  // those above the program has made, and may need
      (void)site.files.remove_folder(folder);
  }
  return {};
}

Status treat(const Site& site, Remains::Kind kind, const std::string& folder,
             const RankRecord& record, KeptFiles& kept) {
  switch (kind) {
    case Remains::Kind::staged:
      return remove_part(site.files, site.folder, folder, record);
    case Remains::Kind::deleted:
      return remove_rank_files(site, record, kept);
    case Remains::Kind::unsettled:
      return settle_rank(site.files, site.folder, record);
  }
  return {};
}

/// Whether the manifest told of all.
Result<bool> treat_manifest(const Site& site, Remains::Kind kind, const std::string& path,
                            KeptFiles& kept) {
  CAIRN_ASSIGN(const Manifest manifest, read_manifest(site.files, path));
  for (const RankRecord& record : manifest.records)
    CAIRN_TRY(treat(site, kind, folder_of(path), record, kept));
  return manifest.whole;
}

/// What rank 0 has found, to all.
Result<std::vector<Remains>> share_remains(Communicator& comm, const Site& site) {
  Blob blob;
  Status looked;
  if (site.keeper != nullptr) {
    auto found = site.keeper->remains();
    if (found)
      blob = encode_all(*found);
    else
      looked = tl::unexpected(std::move(found).error());
  }
  CAIRN_TRY(agree(comm, std::move(looked)));
  bcast_blob(comm, blob, 0);
  return decode_all(blob);
}

Status note_settled(Keeper& keeper) {
  Listing unsettled;  // a copy: the listing changes
  for (const DatasetRecord& record : keeper.listing())
    if (!record.settled) unsettled.push_back(record);
  for (const DatasetRecord& record : unsettled) CAIRN_TRY(keeper.mark_settled(record));
  return keeper.save_listing();
}

/// Collective. Of all ranks.
KeptFiles sum(Communicator& comm, const KeptFiles& kept) {
  return {allreduce(comm, kept.changed, Reduce::sum), allreduce(comm, kept.unknown, Reduce::sum),
          allreduce(comm, kept.led_out, Reduce::sum)};
}

/// Collective. Whether all manifests told of all. Here `kept` is this rank's.
Result<bool> treat_all(Communicator& comm, const Site& site, const Remains& remains,
                       KeptFiles& kept) {
  Result<bool> whole = true;
  visit_dealt(comm, remains.manifests.size(), [&](std::size_t i) {
    if (!whole) return;
    const std::string path = PrefixFolder::manifest(remains.folder, remains.manifests[i]);
    auto treated = treat_manifest(site, remains.kind, path, kept);
    if (!treated || !*treated) whole = std::move(treated);
  });
  CAIRN_TRY(agree(comm, whole ? Status{} : Status(tl::unexpected(whole.error()))));
  return allreduce(comm, *whole ? 1 : 0, Reduce::min) != 0;
}

enum class Ending { published, left, withdrawn };

/// Collective. Then the other parts of its plan may be done with what was saved.
Result<bool> was_scavenged(Communicator& comm, const Site& site, const DatasetInfo& dataset) {
  const auto saved = site.keeper != nullptr ? is_saved(site.files, site.folder, dataset) : false;
  CAIRN_TRY(agree(comm, saved.map([](bool) {})));
  return allreduce(comm, *saved ? 1 : 0, Reduce::max) != 0;
}

/// Collective.
Status withdraw(Communicator& comm, const Site& site, const Remains& remains) {
  return on_keeper(comm, site, [&](Keeper& keeper) { return keeper.withdraw(remains.folder); });
}

/// Collective. Published: and settled. Left: whoever takes over from this epoch may carry the plan
/// on; as after an error, that of a directory that is full or away for instance. Withdrawn: nobody
/// can do so any more, and `remains` is what is to be removed of it: only then, as an owner of a
/// later epoch, which this run may not have heard of, would do so else.
Result<Ending> finish(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
                      Unfinished unfinished, Remains& remains) {
  const DatasetRecord& plan = *remains.plan;
  CAIRN_TRY(on_keeper(comm, site,
                      [&](Keeper& keeper) { return keeper.adopt(remains.folder, plan.info); }));
  remains.folder = site.folder.pending(site.epoch, plan.info);
  const auto whole = carry_out(comm, site, plan, cached);
  if (!whole && (!is_damage(whole.error().code) || unfinished == Unfinished::left))
    return tl::unexpected(whole.error());
  if (whole && !*whole && unfinished == Unfinished::left) return Ending::left;
  if (!whole || !*whole) {
    CAIRN_ASSIGN(const bool scavenged, was_scavenged(comm, site, plan.info));
    if (scavenged) return Ending::left;
    CAIRN_TRY(withdraw(comm, site, remains));
    return Ending::withdrawn;
  }
  remains.kind = Remains::Kind::unsettled;  // it is there, for all that is known
  CAIRN_TRY(on_keeper(comm, site, [&](Keeper& keeper) { return keeper.publish(plan); }));
  remains.folder = site.folder.dataset(plan.info);
  return Ending::published;
}

std::string told_of_given_up(const std::string& label, std::string_view why) {
  return fmt::format("the flush of {} that an earlier run had begun is given up: {}", label, why);
}

/// Collective.
class Tidying {
 public:
  Tidying(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
          Unfinished unfinished, Tidied& tidied)
      : comm_(comm), site_(site), cached_(cached), unfinished_(unfinished), tidied_(tidied) {}

  /// One that is left keeps none of the others from being ended, but where files must get their
  /// names one after the other: of these nothing may be passed over.
  Status run(std::vector<Remains>& all) {
    // First: what is ended below is written since, for all that its times tell.
    for (Remains& remains : all) judge(remains);
    for (Remains& remains : all) {
      const Status done = end(remains);
      if (!done) note(remains, done.error());
      if (!done && remains.kind == Remains::Kind::unsettled) return left_;
    }
    if (const Status noted = on_keeper(comm_, site_, note_settled); !noted) note({}, noted.error());
    CAIRN_TRY(left_);
    return on_keeper(comm_, site_,
                     [&](Keeper& keeper) { return keeper.remove_closed(tidied_.damaged); });
  }

 private:
  /// Whether a plan comes too late.
  void judge(Remains& remains) {
    if (!remains.plan) return;
    const auto late = would_replace(comm_, site_.files, site_.folder, remains.folder, *remains.plan,
                                    remains.newer);
    if (late && !*late) return;
    remains.plan.reset();
    if (late)
      remains.given_up = "its files would take the names of newer ones";
    else
      remains.unknown = late.error().text;
  }

  Status end(Remains& remains) {
    if (!remains.unknown.empty()) return fail(Code::io, "{}", remains.unknown);
    if (!remains.given_up.empty()) {
      CAIRN_TRY(withdraw(comm_, site_, remains));
      give_up(remains, remains.given_up);
    }
    if (remains.plan) {
      CAIRN_ASSIGN(const Ending ending, finish(comm_, site_, cached_, unfinished_, remains));
      if (ending == Ending::left) return {};
      if (ending == Ending::published) tidied_.published.push_back(*remains.plan);
      if (ending == Ending::withdrawn) give_up(remains, "nobody has the rest of its files");
    }
    KeptFiles kept;
    CAIRN_ASSIGN(const bool whole, treat_all(comm_, site_, remains, kept));
    if (remains.kind == Remains::Kind::deleted) note_kept(remains, sum(comm_, kept));
    if (remains.kind != Remains::Kind::staged) return {};
    if (!whole) tidied_.damaged.push_back(remains.folder);
    if (!whole || !remains.plan) return {};
    return on_keeper(comm_, site_,
                     [&](Keeper& keeper) { return keeper.abandon(remains.plan->info); });
  }

  /// What whoever began to delete it did not come to tell.
  void note_kept(const Remains& remains, const KeptFiles& kept) {
    const std::string said = said_of_kept(kept);
    if (!said.empty())
      tidied_.kept.push_back(fmt::format("{} is deleted: {}", remains.label, said));
  }

  void give_up(const Remains& remains, std::string_view why) {
    tidied_.given_up.push_back(told_of_given_up(remains.label, why));
  }

  void note(const Remains& remains, const Error& error) {
    const std::string text =
        remains.label.empty() ? error.text : fmt::format("{}: {}", remains.label, error.text);
    if (left_)
      left_ = fail(error.code, "{}", text);
    else
      left_.error().text += "; " + text;
  }

  Communicator& comm_;
  const Site& site_;
  const std::vector<CachedPart>& cached_;
  const Unfinished unfinished_;
  Tidied& tidied_;
  Status left_;
};

}  // namespace

std::string remedy_for_damaged(const std::string& folder) {
  return fmt::format(
      "some records in {} are damaged, and files that were staged for this flush may be left below "
      "the prefix directory, under names that begin with .cairn.: \"cairn index build\" finds and "
      "removes them",
      folder);
}

Status tidy(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
            Unfinished unfinished, Tidied* account) {
  CAIRN_ASSIGN(auto all, share_remains(comm, site));
  Tidied found;
  Tidied& tidied = account != nullptr ? *account : found;
  return Tidying(comm, site, cached, unfinished, tidied).run(all);
}

std::string said_of_kept(const KeptFiles& kept) {
  std::vector<std::string> said;
  if (kept.changed > 0)
    said.push_back(
        fmt::format("{} of its files stay, as they were written again since (by size and "
                    "time of change)",
                    kept.changed));
  if (kept.unknown > 0)
    said.push_back(
        fmt::format("{} of its files stay, as their times were not kept "
                    "(SCR_COPY_METADATA=0), so that nobody knows whether they were "
                    "written again since",
                    kept.unknown));
  if (kept.led_out > 0)
    said.push_back(
        fmt::format("{} of its files stay, as a link leads from the prefix directory to where they "
                    "are",
                    kept.led_out));
  return fmt::format("{}", fmt::join(said, "; "));
}

Result<KeptFiles> remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               std::uint32_t ranks_in_each) {
  const std::string folder = site.folder.deleted(site.epoch, dataset);
  const std::uint32_t manifests = (dataset.ranks + ranks_in_each - 1) / ranks_in_each;
  Status status;
  KeptFiles kept;
  for (auto number = static_cast<std::uint32_t>(comm.rank()); number < manifests;
       number += static_cast<std::uint32_t>(comm.size()))
    if (status)
      status =
          treat_manifest(site, Remains::Kind::deleted, PrefixFolder::manifest(folder, number), kept)
              .map([](bool) {});
  CAIRN_TRY(agree(comm, std::move(status)));
  const KeptFiles of_all = sum(comm, kept);
  CAIRN_TRY(on_keeper(comm, site, [&](Keeper&) { return remove_all(site.files, folder); }));
  return of_all;
}

}  // namespace cairn
