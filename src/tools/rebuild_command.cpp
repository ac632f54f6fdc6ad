#include "tools/rebuild_command.hpp"

#include <array>

#include "base/count.hpp"
#include "base/units.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/rebuild_sets.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

std::string_view name_of(Rebuild::Outcome outcome) {
  constexpr std::array<std::string_view, 5> names = {"whole", "lost", "uncommitted", "newer",
                                                     "failed"};
  return names.at(static_cast<std::size_t>(outcome));
}

std::string what_of(const Rebuild& rebuilt) {
  const std::string account = describe(rebuilt.account);
  switch (rebuilt.outcome) {
    case Rebuild::Outcome::whole:
      return account.empty() ? "whole" : fmt::format("whole now: {}", account);
    case Rebuild::Outcome::lost:
      return fmt::format("cannot be rebuilt: {}", rebuilt.reason);
    case Rebuild::Outcome::failed:
      return fmt::format("could not be rebuilt this time: {}", rebuilt.reason);
    case Rebuild::Outcome::uncommitted:
    case Rebuild::Outcome::newer:
      break;
  }
  return fmt::format("left alone: {}", rebuilt.reason);
}

void add(Report& report, const Remains& remains, const Rebuild& rebuilt, double seconds) {
  const RestoreAccount& account = rebuilt.account;
  std::vector<std::string> folders;
  for (const RankFolder& folder : rebuilt.folders) folders.push_back(folder.path);
  report.facts["datasets"].push_back({{"number", remains.number},
                                      {"name", remains.name},
                                      {"uuid", text_of(remains.uuid)},
                                      {"ranks", remains.ranks},
                                      {"outcome", name_of(rebuilt.outcome)},
                                      {"reason", rebuilt.reason},
                                      {"rebuilt_ranks", account.rebuilt_ranks},
                                      {"repaired_blocks", account.repaired_blocks},
                                      {"repaired_bytes", account.repaired_bytes},
                                      {"folders", folders}});
  report.line("{} of {}: {}; took {}", dataset_label(remains.number, remains.name),
              count_text(remains.ranks, "rank"), what_of(rebuilt), format_seconds(seconds));
  if (rebuilt.outcome != Rebuild::Outcome::whole &&
      rebuilt.outcome != Rebuild::Outcome::uncommitted)
    report.exit_code = exit_failure;
}

Result<std::vector<Remains>> find_wanted(const RebuildCommand& command, Files& files,
                                         const Log& log, const std::vector<std::string>& caches) {
  std::vector<std::string> unreadable;
  CAIRN_ASSIGN(std::vector<Remains> found,
               find_remains(files, caches, RecordDetail::outline, &unreadable));
  for (const std::string& trouble : unreadable) log.warning("it counts as missing: {}", trouble);
  std::erase_if(found, [&](const Remains& remains) {
    return !is_wanted(command.datasets, remains.uuid, remains.number, remains.name);
  });
  if (!found.empty()) return found;
  if (!command.datasets.empty())
    return fail(Code::not_found, "there is no dataset {} in the caches below {}",
                command.datasets.front(), command.folder);
  return fail(Code::not_found,
              "there are no datasets below {}; name a directory that holds the caches of the nodes "
              "(<store>/<user>/cairn.<job>.<id>), or copies of them",
              command.folder);
}

Status rebuild_all(const RebuildCommand& command, Files& files, Clock& clock, const Log& log,
                   Report& report) {
  std::vector<std::string> caches;
  CAIRN_TRY(find_caches(files, command.folder, caches, log));
  CAIRN_ASSIGN(const auto locks, lock_caches(files, clock, caches));
  CAIRN_ASSIGN(const auto wanted, find_wanted(command, files, log, caches));
  const std::string spare_root = command.folder + "/rebuilt";
  CAIRN_TRY(files.make_folder(spare_root, 0700));
  for (const Remains& remains : wanted) {
    const std::int64_t begun_us = clock.steady_us();
    const Rebuild rebuilt = rebuild_remains(files, remains, spare_root, Settings{}, log);
    add(report, remains, rebuilt, static_cast<double>(clock.steady_us() - begun_us) * 1e-6);
  }
  CAIRN_ASSIGN(const auto made, files.list(spare_root));
  return made.empty() ? files.remove_folder(spare_root) : Status{};
}

}  // namespace

int run_rebuild_command(const RebuildCommand& command, Files& files, Clock& clock,
                        std::ostream& out, const Log& log) {
  Report report;
  report.facts["datasets"] = nlohmann::ordered_json::array();
  report.add_failure(rebuild_all(command, files, clock, log, report));
  return print_report(std::move(report), command.json, out, log, {Code::busy, exit_try_again});
}

}  // namespace cairn
