#include "tools/publish_command.hpp"

#include <algorithm>

#include "base/count.hpp"
#include "prefix/event_log.hpp"
#include "scavenge/publish.hpp"
#include "tools/as_owner.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Outcome = SalvagedDataset::Outcome;

std::string line_of(const SalvagedDataset& dataset) {
  const std::string account = describe(dataset.account);
  std::string what;
  switch (dataset.outcome) {
    case Outcome::published:
      what = account.empty() ? "published" : fmt::format("published: {}", account);
      break;
    case Outcome::there:
      what = "it was in the prefix directory already";
      break;
    case Outcome::lost:
      what = fmt::format("cannot be rebuilt: {}", dataset.reason);
      break;
    case Outcome::given_up:
    case Outcome::uncommitted:
    case Outcome::outlived:
    case Outcome::newer:
      what = fmt::format("left alone: {}", dataset.reason);
      break;
    case Outcome::refused:
      what = fmt::format("not published: {}; or cairn index delete {} removes the saved copy",
                         dataset.reason, text_of(dataset.remains.uuid));
      break;
    case Outcome::whole:
    case Outcome::failed:
      what = fmt::format("not published this time: {}", dataset.reason);
      break;
  }
  const Remains& remains = dataset.remains;
  return fmt::format("{} of {}: {}", dataset_label(remains.number, remains.name),
                     count_text(remains.ranks, "rank"), what);
}

nlohmann::ordered_json json_of(const SalvagedDataset& dataset) {
  return {{"number", dataset.remains.number},
          {"name", dataset.remains.name},
          {"uuid", text_of(dataset.remains.uuid)},
          {"ranks", dataset.remains.ranks},
          {"outcome", name_of(dataset.outcome)},
          {"reason", dataset.reason},
          {"rebuilt_ranks", dataset.account.rebuilt_ranks},
          {"repaired_blocks", dataset.account.repaired_blocks},
          {"repaired_bytes", dataset.account.repaired_bytes}};
}

bool is_good(const SalvagedDataset& dataset) {
  return dataset.outcome == Outcome::published || dataset.outcome == Outcome::there ||
         dataset.outcome == Outcome::given_up || dataset.outcome == Outcome::outlived ||
         dataset.outcome == Outcome::uncommitted;
}

/// Each that is named was scavenged, or is in the prefix directory already.
Status check_named(const PublishCommand& command, const Listing& listing,
                   const PrefixFolder& folder, const std::vector<SalvagedDataset>& found) {
  for (const std::string& word : command.datasets) {
    const auto scavenged = [&](const SalvagedDataset& dataset) {
      return is_named(word, dataset.remains.uuid, dataset.remains.number, dataset.remains.name);
    };
    const auto listed = [&](const DatasetRecord& record) {
      return record.failed_us == 0 &&
             is_named(word, record.info.uuid, record.info.number, record.info.name);
    };
    if (std::none_of(found.begin(), found.end(), scavenged) &&
        std::none_of(listing.begin(), listing.end(), listed))
      return fail(Code::not_found,
                  "nothing of dataset {} was scavenged to {}: run cairn scavenge first, or name a "
                  "directory that holds caches",
                  word, folder.prefix);
  }
  return {};
}

/// For the log of the job: the result for each dataset that had to be published.
void log_outcomes(const std::vector<SalvagedDataset>& datasets, EventLog& events) {
  for (const SalvagedDataset& dataset : datasets) {
    const bool published = dataset.outcome == Outcome::published;
    if (!published && is_good(dataset)) continue;
    DatasetInfo info;
    info.number = dataset.remains.number;
    info.name = dataset.remains.name;
    events.happened(published ? "PUBLISH_SUCCESS" : "PUBLISH_FAIL", info, {},
                    published ? describe(dataset.account) : dataset.reason);
  }
}

Result<std::vector<SalvagedDataset>> salvage_all(const PublishCommand& command, Files& files,
                                                 Clock& clock, const Settings& settings,
                                                 const Log& log) {
  const PrefixFolder folder{settings.prefix};
  CAIRN_TRY(check_prefix_folder(files, settings.prefix));
  const auto wanted = [&](const Remains& remains) {
    return is_wanted(command.datasets, remains.uuid, remains.number, remains.name);
  };
  CAIRN_ASSIGN(Salvage salvage,
               make_whole(files, clock, folder, {wanted, !command.datasets.empty()}, log));
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged));
  CAIRN_TRY(check_named(command, listing, folder, salvage.datasets));
  // An earlier attempt may have published it, and had no space to complete that.
  if (salvage.datasets.empty() && !has_unsettled(listing)) return std::move(salvage.datasets);
  const Status published =
      as_owner({"cairn rebuild", command.force, false, command.run_ended}, files, clock, settings,
               log, [&](Communicator& comm, const Site& site) {
                 publish(comm, site, salvage, settings.job_id, log);
                 EventLog events(files, clock, settings, log, EventLog::Part::writer);
                 log_outcomes(salvage.datasets, events);
                 return Status{};
               });
  CAIRN_TRY(published);
  return std::move(salvage.datasets);
}

Result<Report> report_of(const PublishCommand& command, Files& files, Clock& clock,
                         const ProcessFacts& process, const Log& log) {
  CAIRN_ASSIGN(const FoundJob job, find_job(command.source, files, process, log));
  CAIRN_ASSIGN(const auto datasets, salvage_all(command, files, clock, job.settings, log));
  Report report;
  report.facts = {{"prefix", job.settings.prefix}, {"datasets", nlohmann::ordered_json::array()}};
  for (const SalvagedDataset& dataset : datasets) {
    report.facts["datasets"].push_back(json_of(dataset));
    report.line("{}", line_of(dataset));
  }
  if (datasets.empty())
    report.line("no scavenged dataset in {} has to be rebuilt", job.settings.prefix);
  if (!std::all_of(datasets.begin(), datasets.end(), is_good)) report.exit_code = exit_failure;
  return report;
}

}  // namespace

int run_publish_command(const PublishCommand& command, Files& files, Clock& clock,
                        const ProcessFacts& process, std::ostream& out, const Log& log) {
  return print_report(report_of(command, files, clock, process, log), command.json, out, log,
                      {Code::busy, exit_try_again});
}

}  // namespace cairn
