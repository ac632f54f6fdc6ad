#include "prefix/async_flush.hpp"

#include <algorithm>
#include <utility>

#include "files/modes.hpp"
#include "prefix/contents.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/manifest.hpp"
#include "prefix/replaced.hpp"

namespace cairn {
namespace {

EpochFolder epoch_folder(const Site& site) { return {site.files, site.folder, site.epoch}; }

Result<bool> is_there(const Site& site, const std::string& path) {
  const auto found = site.files.info(path);
  if (!found && found.error().code == Code::not_found) return false;
  CAIRN_TRY(found);
  return true;
}

/// The path of a mark beside the markers of the parts: some files of this dataset have names of
/// files of older datasets.
std::string replaced_mark(const std::string& folder) {
  return DatasetFolder::markers(folder) + "/replaced";
}

}  // namespace

// --- the part of a process ---

PartFlush::PartFlush(const Site& site, RankRecord record, CachedPart part,
                     std::vector<WrittenManifest> manifests)
    : site_(site),
      record_(std::move(record)),
      part_(std::move(part)),
      manifests_(std::move(manifests)),
      folder_(site.folder.pending(site.epoch, record_.dataset)) {}

Result<bool> PartFlush::advance() {
  switch (state_) {
    case State::none:
      return describe();
    case State::described:
      return read_plan();
    case State::planned:
      return do_part();
    case State::staged:
      return look_for_publication();
    case State::published:
      return settle();
    case State::settled:
      return false;
  }
  return false;
}

Result<bool> PartFlush::reach(State state) {
  state_ = state;
  return true;
}

/// Fails if a later owner has closed the epoch: then the folder for which the caller waits will
/// never exist.
Status PartFlush::refuse_if_gone() const {
  CAIRN_ASSIGN(const bool open, is_there(site_, site_.folder.epoch(site_.epoch)));
  if (open) return {};
  return epoch_folder(site_).under_epoch(fail(Code::not_found, ""));
}

Result<bool> PartFlush::describe() {
  if (manifests_.empty()) return reach(State::described);
  CAIRN_ASSIGN(const bool begun, is_there(site_, DatasetFolder::markers(folder_)));
  if (!begun) {
    CAIRN_TRY(refuse_if_gone());
    return false;
  }
  for (const WrittenManifest& manifest : manifests_)
    CAIRN_TRY(write_manifest(site_.files, folder_, manifest.number, manifest.records));
  return reach(State::described);
}

Result<bool> PartFlush::read_plan() {
  CAIRN_ASSIGN(auto plan, read_dataset_record(site_.files, folder_));
  if (!plan) {
    CAIRN_TRY(refuse_if_gone());
    return false;
  }
  plan_ = *std::move(plan);
  return reach(State::planned);
}

/// Ranks take turns without messages: a rank begins when the rank `width` before it has done its
/// part. When its own part is done, the process that did the last part may have published the
/// dataset.
Result<bool> PartFlush::is_my_turn() const {
  const int before = record_.rank - site_.limits.width;
  if (before < 0 || epoch_folder(site_).is_published(record_.dataset)) return true;
  DoneMarkers markers(site_.files, folder_, record_.dataset.ranks);
  CAIRN_ASSIGN(const bool own, markers.is_done(record_.rank));
  return own ? Result<bool>(true) : markers.is_done(before);
}

Result<bool> PartFlush::do_part() {
  CAIRN_ASSIGN(const bool mine, is_my_turn());
  if (!mine) {
    CAIRN_TRY(refuse_if_gone());
    return false;
  }
  CAIRN_ASSIGN(const Publication::State reached, publish_alone(site_, plan_, {part_}));
  return reach(reached == Publication::State::published ? State::published : State::staged);
}

/// The process that published it may not have synced the rename yet. A power failure must not take
/// it back once files have their names in the place of those of an older dataset.
Result<bool> PartFlush::look_for_publication() {
  if (!epoch_folder(site_).is_published(record_.dataset)) {
    CAIRN_TRY(refuse_if_gone());
    return false;
  }
  CAIRN_TRY(site_.files.sync_folder(site_.folder.datasets()));
  return reach(State::published);
}

/// Before and after it takes the names: in another directory, which may be at this path for now,
/// there is nothing to rename.
Status PartFlush::check_is_here() const {
  const std::string dataset = site_.folder.dataset(record_.dataset);
  CAIRN_ASSIGN(const bool is_here, is_there(site_, dataset));
  if (is_here) return {};
  CAIRN_TRY(refuse_if_gone());
  return fail(Code::io, "{} does not exist: the file system of {} may not be mounted", dataset,
              site_.folder.prefix);
}

/// Makes the mark before it takes the names: after a crash, the next owner then checks for replaced
/// files.
Result<bool> PartFlush::settle() {
  CAIRN_TRY(check_is_here());
  if (!takes_names_) takes_names_ = takes_names(site_.files, site_.folder, record_);
  if (*takes_names_)
    CAIRN_TRY(site_.files.create(replaced_mark(site_.folder.dataset(record_.dataset)), file_for_all)
                  .map([](const auto&) {}));
  CAIRN_TRY(settle_rank(site_.files, site_.folder, record_));
  CAIRN_TRY(check_is_here());
  return reach(State::settled);
}

// --- the work of the owner ---

OwnerFlush::OwnerFlush(const Site& site, DatasetRecord record, FlushTotals totals, Books books)
    : site_(site),
      staging_(site, totals),
      publication_(site, staging_, std::move(record)),
      books_(std::move(books)) {}

Result<bool> OwnerFlush::Watched::stage(Communicator& /*comm*/, const DatasetRecord& plan,
                                        const Status& planned) {
  CAIRN_TRY(planned);
  if (epoch_folder(site_).is_published(plan.info)) return true;
  const std::string folder = site_.folder.pending(site_.epoch, plan.info);
  return DoneMarkers(site_.files, folder, plan.info.ranks).are_all_done();
}

Result<bool> OwnerFlush::advance() {
  if (is_closed_) return false;
  CAIRN_ASSIGN(const bool may, may_advance());
  if (!may) return false;
  const Publication::State before = publication_.state();
  CAIRN_TRY(publication_.advance(alone_));
  if (publication_.state() == Publication::State::settled) {
    DatasetRecord record = publication_.record();
    record.settled = true;
    books_.close(alone_, {std::move(record), {}, publication_.replaced()});
    is_closed_ = true;
  }
  return publication_.state() != before;
}

Status OwnerFlush::take_in_if_published() {
  const auto waits = [this] {
    return is_planned() && publication_.state() < Publication::State::published;
  };
  if (!waits()) return {};
  const DatasetInfo& dataset = publication_.record().info;
  const auto take_in = [&]() -> Status {
    CAIRN_ASSIGN(const bool is_published, epoch_folder(site_).look_for_published(dataset));
    while (is_published && waits()) CAIRN_TRY(publication_.advance(alone_));
    return {};
  };
  Status taken_in = books_.check_rights();
  const bool is_elsewhere = !taken_in && taken_in.error().code != Code::busy;
  if (!is_elsewhere) taken_in = take_in();
  if (!taken_in) site_.keeper->note_unread(dataset, taken_in.error().text);
  return taken_in;
}

/// True if the other processes have done everything that the next step needs.
Result<bool> OwnerFlush::may_advance() {
  switch (publication_.state()) {
    case Publication::State::none:
      CAIRN_TRY(books_.open(alone_));
      return true;
    case Publication::State::begun:
      return has_manifests();
    case Publication::State::published:
      return is_settled_by_all();
    default:
      return true;
  }
}

Result<bool> OwnerFlush::has_manifests() const {
  DatasetRecord described = publication_.record();
  described.ranks_per_manifest = ranks_per_manifest;
  for (std::uint32_t i = 0; i < described.manifests(); ++i) {
    CAIRN_ASSIGN(const bool there,
                 is_there(site_, DatasetFolder::manifest(publication_.folder(), i)));
    if (!there) return false;
  }
  return true;
}

/// The marker of a part is removed when the part is settled.
Result<bool> OwnerFlush::is_settled_by_all() {
  CAIRN_TRY(books_.check_rights());
  CAIRN_ASSIGN(const auto names,
               names_in(site_.files, DatasetFolder::markers(publication_.folder())));
  const bool waits = std::any_of(names.begin(), names.end(),
                                 [](const std::string& name) { return name.starts_with("0."); });
  if (waits) return false;
  CAIRN_TRY(books_.check_rights());
  CAIRN_ASSIGN(const bool replaced, is_there(site_, replaced_mark(publication_.folder())));
  if (replaced) staging_.note_replaced_files();
  return true;
}

}  // namespace cairn
