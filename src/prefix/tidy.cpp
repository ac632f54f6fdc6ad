#include "prefix/tidy.hpp"

#include <span>

#include "prefix/contents.hpp"
#include "prefix/dealt_manifests.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/remove_files.hpp"
#include "prefix/unfinished.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

using UnfinishedWork = Keeper::UnfinishedWork;

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

Blob encode_all(const std::vector<UnfinishedWork>& all) {
  Encoder out;
  out.u64(all.size());
  for (const UnfinishedWork& work : all) {
    out.u32(static_cast<std::uint32_t>(work.kind));
    out.text(work.folder);
    const Blob plan = work.plan ? encode(*work.plan) : Blob{};
    out.text({reinterpret_cast<const char*>(plan.data()), plan.size()});
    const Blob newer = encode(work.newer);
    out.text({reinterpret_cast<const char*>(newer.data()), newer.size()});
    for (const auto* text : {&work.label, &work.given_up, &work.unknown}) out.text(*text);
    put(out, work.uuid);
    put(out, work.manifests);
  }
  return out.take();
}

std::vector<UnfinishedWork> decode_all(Bytes blob) {
  constexpr std::size_t smallest_bytes = 32;
  Decoder in(blob);
  std::vector<UnfinishedWork> all(in.count(smallest_bytes));
  for (UnfinishedWork& work : all) {
    work.kind = static_cast<UnfinishedWork::Kind>(in.u32());
    work.folder = in.text();
    const std::string plan = in.text();
    if (!plan.empty()) work.plan = *decode_dataset_record(std::as_bytes(std::span(plan)));
    const std::string newer = in.text();
    work.newer = *decode_listing(std::as_bytes(std::span(newer)));
    for (auto* text : {&work.label, &work.given_up, &work.unknown}) *text = in.text();
    work.uuid = get_uuid(in);
    work.manifests = get_numbers(in);
  }
  return all;
}

/// What rank 0 has found, to all.
Result<std::vector<UnfinishedWork>> share_unfinished(Communicator& comm, const Site& site) {
  Blob blob;
  Status looked;
  if (site.keeper != nullptr) {
    auto found = site.keeper->unfinished_work();
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
  Leftover(const Site& site, const std::vector<CachedPart>& cached, const UnfinishedWork& work)
      : site_(site), cached_(cached), manifests_(work.manifests) {}

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

std::string text_of_given_up(const std::string& label, std::string_view why) {
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
  Status run(std::vector<UnfinishedWork>& all) {
    // Before the loop below, which changes the times of files.
    for (UnfinishedWork& work : all) judge(work);
    for (UnfinishedWork& work : all) {
      const Status done = end(work);
      if (!done) note(work, done.error());
      if (!done && work.kind == UnfinishedWork::Kind::unsettled) return left_;
    }
    const Status listed =
        on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
    if (!listed) note({}, listed.error());
    CAIRN_TRY(left_);
    return on_keeper(comm_, site_,
                     [&](Keeper& keeper) { return keeper.remove_closed(tidied_.damaged); });
  }

 private:
  /// Whether a plan comes too late.
  void judge(UnfinishedWork& work) {
    if (work.kind != UnfinishedWork::Kind::staged || !work.plan) return;
    const auto late =
        would_replace(comm_, site_.files, site_.folder, work.folder, *work.plan, work.newer);
    if (late && !*late) return;
    work.plan.reset();
    if (late)
      work.given_up = "its files have the same names as newer ones";
    else
      work.unknown = late.error().text;
  }

  Status end(UnfinishedWork& work) {
    if (!work.unknown.empty()) return fail(Code::io, "{}", work.unknown);
    if (work.kind == UnfinishedWork::Kind::deleted) return end_deletion(work);
    const bool is_published = work.kind == UnfinishedWork::Kind::unsettled;
    Leftover leftover(site_, cached_, work);
    Publication publication(site_, leftover, work.plan.value_or(DatasetRecord{}),
                            is_published ? Publication::State::published : Publication::State::left,
                            work.folder);
    if (is_published) {
      CAIRN_TRY(settle(publication));
      tidied_.settled.push_back(publication.record());
      return {};
    }
    return work.plan ? carry_on(publication, work) : give_up(publication, work, work.given_up);
  }

  /// A plan that must not be withdrawn is left to the next owner: after an error (if the directory
  /// is full or unavailable, for instance), and if other processes may have more of its parts.
  Status carry_on(Publication& publication, UnfinishedWork& work) {
    CAIRN_TRY(publication.advance(comm_));
    const Status staged = publication.advance(comm_);
    if (publication.state() != Publication::State::staged) {
      const bool is_lost = staged || is_damage(staged.error().code);
      if (!is_lost || unfinished_ == Unfinished::left) return staged;
      CAIRN_ASSIGN(const bool scavenged, was_scavenged(comm_, site_, work.plan->info));
      return scavenged ? Status{} : give_up(publication, work, "the rest of its files is lost");
    }
    work.kind = UnfinishedWork::Kind::unsettled;  // it is there, for all that is known
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

  /// `why`: empty if it was no plan, so no user waits for it.
  Status give_up(Publication& publication, const UnfinishedWork& work, std::string_view why) {
    const auto removed = publication.withdraw(comm_);
    if (publication.state() == Publication::State::withdrawn && !why.empty())
      tidied_.given_up.push_back(text_of_given_up(work.label, why));
    CAIRN_TRY(removed);
    if (!*removed) tidied_.damaged.push_back(publication.folder());
    return {};
  }

  /// Also reports the files that stay, which the process that began it did not do any more.
  Status end_deletion(const UnfinishedWork& work) {
    CAIRN_ASSIGN(const KeptFiles kept,
                 remove_files(comm_, site_, {work.uuid, work.folder, work.manifests}));
    const std::string said = said_of_kept(kept);
    if (!said.empty()) tidied_.kept.push_back(fmt::format("{} is deleted: {}", work.label, said));
    return {};
  }

  void note(const UnfinishedWork& work, const Error& error) {
    const std::string text =
        work.label.empty() ? error.text : fmt::format("{}: {}", work.label, error.text);
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
  CAIRN_ASSIGN(auto all, share_unfinished(comm, site));
  Tidied found;
  Tidied& tidied = account != nullptr ? *account : found;
  return Tidying(comm, site, cached, unfinished, tidied).run(all);
}

}  // namespace cairn
