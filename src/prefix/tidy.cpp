#include "prefix/tidy.hpp"

#include <span>

#include "prefix/dealt_manifests.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/remove_files.hpp"
#include "prefix/unfinished.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

using Remains = Keeper::Remains;

/// Contiguous numbers are sent as ranges: a job has a manifest for every few ranks, and all ranks
/// get all numbers.
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

/// Sends the findings of rank 0 to all ranks.
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

/// The leftovers of an earlier run of a dataset, from its manifests. One rank reads each manifest.
class Leftover final : public Staging {
 public:
  Leftover(const Site& site, const std::vector<CachedPart>& cached, const Remains& remains)
      : site_(site), cached_(cached), manifests_(remains.manifests) {}

  Result<bool> stage(Communicator& comm, const DatasetRecord& plan,
                     const Status& /*planned*/) override {
    return do_cached_parts(comm, site_, plan, cached_);
  }

  Result<bool> visit_staged(Communicator& comm, const std::string& folder,
                            const Treat& treat) override {
    return treat_dealt(comm, site_.files, folder, manifests_, treat);
  }

 private:
  const Site& site_;
  const std::vector<CachedPart>& cached_;
  const std::vector<std::uint64_t>& manifests_;
};

/// Collective. Then the other parts of its plan may be done with what was saved.
Result<bool> was_scavenged(Communicator& comm, const Site& site, const DatasetInfo& dataset) {
  const auto saved = site.keeper != nullptr ? is_saved(site.files, site.folder, dataset) : false;
  CAIRN_TRY(agree(comm, saved.map([](bool) {})));
  return allreduce(comm, *saved ? 1 : 0, Reduce::max) != 0;
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

  /// A failure does not prevent the others from being finished, except if files must get their
  /// names in order: then none may be skipped.
  Status run(std::vector<Remains>& all) {
    // First, as the operations below change files, which then seem to be written since.
    for (Remains& remains : all) judge(remains);
    for (Remains& remains : all) {
      const Status done = end(remains);
      if (!done) note(remains, done.error());
      if (!done && remains.kind == Remains::Kind::unsettled) return left_;
    }
    const Status listed =
        on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
    if (!listed) note({}, listed.error());
    CAIRN_TRY(left_);
    return on_keeper(comm_, site_,
                     [&](Keeper& keeper) { return keeper.remove_closed(tidied_.damaged); });
  }

 private:
  /// True if a plan is too late.
  void judge(Remains& remains) {
    if (remains.kind != Remains::Kind::staged || !remains.plan) return;
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
    if (remains.kind == Remains::Kind::deleted) return end_deletion(remains);
    const bool is_published = remains.kind == Remains::Kind::unsettled;
    Leftover leftover(site_, cached_, remains);
    Publication publication(site_, leftover, remains.plan.value_or(DatasetRecord{}),
                            is_published ? Publication::State::published : Publication::State::left,
                            remains.folder);
    if (is_published) return settle(publication);
    return remains.plan ? carry_on(publication, remains)
                        : give_up(publication, remains, remains.given_up);
  }

  /// A plan that must not be withdrawn is left to the next owner: after an error, for example if
  /// the directory is full or unavailable, and if other runs may have more of its parts.
  Status carry_on(Publication& publication, Remains& remains) {
    CAIRN_TRY(publication.advance(comm_));
    const Status staged = publication.advance(comm_);
    if (publication.state() != Publication::State::staged) {
      const bool is_lost = staged || is_damage(staged.error().code);
      if (!is_lost || unfinished_ == Unfinished::left) return staged;
      CAIRN_ASSIGN(const bool scavenged, was_scavenged(comm_, site_, remains.plan->info));
      return scavenged ? Status{} : give_up(publication, remains, "the rest of its files is lost");
    }
    remains.kind = Remains::Kind::unsettled;  // it may be published
    CAIRN_TRY(publication.advance(comm_));
    tidied_.published.push_back(publication.record());
    return settle(publication);
  }

  Status settle(Publication& publication) {
    CAIRN_TRY(publication.advance(comm_));
    if (publication.replaced()) return {};
    tidied_.unmarked.push_back(publication.folder());
    note({}, publication.replaced().error());
    return {};
  }

  /// `why`: empty if it was not a plan, whose loss a user would notice.
  Status give_up(Publication& publication, const Remains& remains, std::string_view why) {
    const auto removed = publication.withdraw(comm_);
    if (publication.state() == Publication::State::withdrawn && !why.empty())
      tidied_.given_up.push_back(told_of_given_up(remains.label, why));
    CAIRN_TRY(removed);
    if (!*removed) tidied_.damaged.push_back(publication.folder());
    return {};
  }

  /// Also logs the events that the owner who began it has not logged.
  Status end_deletion(const Remains& remains) {
    CAIRN_ASSIGN(const KeptFiles kept,
                 remove_files(comm_, site_, {remains.uuid, remains.folder, remains.manifests}));
    const std::string said = said_of_kept(kept);
    if (!said.empty())
      tidied_.kept.push_back(fmt::format("{} is deleted: {}", remains.label, said));
    return {};
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
