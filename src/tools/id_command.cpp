#include "tools/id_command.hpp"

#include <set>

#include "cache/prefix_id_file.hpp"
#include "recovery/dead_caches.hpp"
#include "tools/as_owner.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using State = RecordedId::State;

std::string why_none(const RecordedId& recorded, const std::string& prefix) {
  if (recorded.state != State::copied)
    return fmt::format("none: the first SCR_Init in {} records one", prefix);
  return fmt::format(
      "none of its own: the id {} was recorded in {}, and this directory is a copy, or was moved "
      "from there to another file system; the next SCR_Init in {} records a new id",
      text_of(recorded.id), recorded.path, prefix);
}

Result<Report> show(Files& files, const Settings& settings, const Log& log) {
  const JobCaches caches = caches_of_job(files, settings);
  const RecordedId& recorded = caches.recorded;
  if (recorded.state == State::damaged || recorded.state == State::unreadable)
    return fail(Code::io, "{}", recorded.trouble);
  const bool is_known = recorded.state == State::known;
  const std::string id = is_known ? text_of(recorded.id) : "";
  const std::string why = is_known ? "" : why_none(recorded, settings.prefix);
  warn_of_other_caches(caches, log);
  Report report;
  report.facts = {{"prefix", settings.prefix},
                  {"id", id},
                  {"why_none", why},
                  {"caches", caches.used},
                  {"left_caches", caches.left}};
  report.line("{}", is_known ? id : why);
  for (const std::string& cache : caches.used) report.line("{}", cache);
  return report;
}

/// The user has given the id to two directories, or not removed it from the old one.
void warn_of_same_id(PrefixId id, Files& files, const Settings& settings, const Log& log) {
  std::set<std::string> others;
  for (const JobFolder& folder : caches_of_job(files, settings).folders)
    if (folder.owner() == id && is_id_of_another(files, id, settings.prefix, folder.note.path))
      others.insert(folder.note.path);
  for (const std::string& other : others)
    log.warning(
        "{} has the id {} too: runs there use the same caches, and may continue from the "
        "checkpoints of {}. If it is a directory of its own, give it another id: rm {}/.cairn/id",
        other, text_of(id), settings.prefix, other);
}

Result<Report> record(const IdCommand& command, Files& files, Clock& clock,
                      const Settings& settings, const Log& log) {
  const auto id = parse_prefix_id(command.id);
  if (!id)
    return fail(Code::bad_argument,
                "\"{}\" is not an id: give the 16 hexadecimal digits that end the name of a cache, "
                "cairn.JOB.ID",
                printable(command.id));
  CommandOwner owner{"cairn index"};
  owner.force = command.force;
  CAIRN_TRY(as_owner(owner, files, clock, settings, log, [&](Communicator&, const Site&) {
    return replace_prefix_id(files, clock, settings.prefix, *id);
  }));
  warn_of_same_id(*id, files, settings, log);
  Report report;
  report.facts = {{"prefix", settings.prefix}, {"id", text_of(*id)}};
  report.line("the next run in {} uses the caches of id {}", settings.prefix, text_of(*id));
  return report;
}

}  // namespace

int run_id_command(const IdCommand& command, Files& files, Clock& clock,
                   const ProcessFacts& process, std::ostream& out, const Log& log) {
  auto report = find_job(command.source, files, process, log).and_then([&](const FoundJob& job) {
    return command.id.empty() ? show(files, job.settings, log)
                              : record(command, files, clock, job.settings, log);
  });
  return print_report(std::move(report), command.json, out, log);
}

}  // namespace cairn
