#include "prefix/tidy.hpp"

#include <span>

#include "prefix/carry_out.hpp"
#include "prefix/copy_files.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/flush.hpp"
#include "prefix/remove_files.hpp"
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
    put(out, remains.uuid);
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
    remains.uuid = get_uuid(in);
    remains.manifests = get_numbers(in);
  }
  return all;
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
  return fmt::format("the flush of {}, which an earlier run began, is cancelled: {}", label, why);
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
    note_replaced();
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
      remains.given_up = "its files have the same names as newer ones";
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
      if (ending == Ending::withdrawn) give_up(remains, "the rest of its files is lost");
    }
    switch (remains.kind) {
      case Remains::Kind::staged:
        return remove_staged(remains);
      case Remains::Kind::deleted:
        return end_deletion(remains);
      case Remains::Kind::unsettled:
        return settle(remains);
    }
    return {};
  }

  Result<bool> treat(const Remains& remains,
                     const std::function<Status(const RankRecord&)>& action) {
    return treat_dealt(comm_, site_.files, remains.folder, remains.manifests, action);
  }

  Status settle(const Remains& remains) {
    // Of what was published an earlier run may have given some files their names, taken from older
    // ones.
    bool& took = settled_.emplace(remains.folder, !remains.plan).first->second;
    return treat(remains,
                 [&](const RankRecord& record) {
                   took = took || takes_names(site_.files, site_.folder, record);
                   return settle_rank(site_.files, site_.folder, record);
                 })
        .map([](bool) {});
  }

  void note_replaced() {
    for (const auto& [folder, took] : settled_)
      if (const auto marked = mark_replaced(comm_, site_, folder, took); !marked) {
        tidied_.unmarked.push_back(folder);
        note({}, marked.error());
      }
  }

  Status remove_staged(const Remains& remains) {
    CAIRN_ASSIGN(const bool whole, treat(remains, [&](const RankRecord& record) {
                   return remove_part(site_.files, site_.folder, remains.folder, record);
                 }));
    if (!whole) tidied_.damaged.push_back(remains.folder);
    if (!whole || !remains.plan) return {};
    return on_keeper(comm_, site_,
                     [&](Keeper& keeper) { return keeper.abandon(remains.plan->info); });
  }

  /// And tells what whoever began it did not come to tell.
  Status end_deletion(const Remains& remains) {
    CAIRN_ASSIGN(const KeptFiles kept,
                 remove_files(comm_, site_, {remains.uuid, remains.folder, remains.manifests}));
    const std::string said = said_of_kept(kept);
    if (!said.empty())
      tidied_.kept.push_back(fmt::format("{} is deleted: {}", remains.label, said));
    return {};
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
  std::map<std::string, bool> settled_;  ///< folders of datasets, and whether they took names
  Status left_;
};

}  // namespace

std::string remedy_for_damaged(const std::string& folder) {
  return fmt::format(
      "some records in {} are damaged, so copies of an unfinished flush may be left below the "
      "prefix directory, under names that begin with .cairn.: \"cairn index build\" finds and "
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

}  // namespace cairn
