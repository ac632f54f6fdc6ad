#include "tools/id_command.hpp"

#include "cache/prefix_id_file.hpp"
#include "recovery/dead_caches.hpp"
#include "tools/as_owner.hpp"
#include "tools/exit_codes.hpp"
#include "tools/record_json.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using State = RecordedId::State;

Status print(const IdCommand& command, Files& files, const Settings& settings, std::ostream& out) {
  const RecordedId recorded = read_prefix_id(files, settings.prefix);
  if (recorded.state == State::damaged || recorded.state == State::unreadable)
    return fail(Code::io, "{}", recorded.trouble);
  const std::string id = recorded.state == State::known ? text_of(recorded.id) : "";
  const auto caches = caches_of_job(files, settings);
  if (command.json) {
    out << text_of_json({{"prefix", settings.prefix}, {"id", id}, {"caches", caches}}) << "\n";
    return {};
  }
  out << (id.empty() ? "none: the first SCR_Init in " + settings.prefix + " records one" : id)
      << "\n";
  for (const std::string& cache : caches) out << printable(cache) << "\n";
  return {};
}

Status record(const IdCommand& command, Files& files, Clock& clock, const Settings& settings,
              std::ostream& out, const Log& log) {
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
  out << "the next run in " << settings.prefix << " goes on with the caches of id " << command.id
      << "\n";
  return {};
}

}  // namespace

int run_id_command(const IdCommand& command, Files& files, Clock& clock,
                   const ProcessFacts& process, std::ostream& out, const Log& log) {
  const auto run = [&]() -> Status {
    CAIRN_ASSIGN(const FoundJob job, find_job(command.source, files, process, log));
    const Settings& settings = job.settings;
    return command.id.empty() ? print(command, files, settings, out)
                              : record(command, files, clock, settings, out, log);
  };
  const Status done = run();
  if (!done) log.error("{}", done.error().text);
  out << std::flush;
  return done && out ? exit_ok : exit_failure;
}

}  // namespace cairn
