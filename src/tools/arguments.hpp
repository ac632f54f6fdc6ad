// Shared by the commands for reading their command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>

#include "files/clock.hpp"
#include "files/posix_files.hpp"
#include "tools/as_owner.hpp"
#include "tools/command_table.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// The environment of a command that a user has started.
struct Started {
  std::unique_ptr<Files> files = make_posix_files();
  std::unique_ptr<Clock> clock = make_system_clock();
  ProcessFacts process = current_process();
  Log log{log_to_stderr};
};

/// `run` takes a Started and returns the exit code.
template <class Run>
void when_called(CLI::App& sub, int& exit_code, Run run) {
  sub.callback([run, &exit_code] {
    const Started here;
    exit_code = run(here);
  });
}

/// The same for a command that needs all of it, as most do.
template <class Command, class Run>
void when_called(CLI::App& sub, int& exit_code, const std::shared_ptr<Command>& command, Run run) {
  when_called(sub, exit_code, [command, run](const Started& here) {
    return run(*command, *here.files, *here.clock, here.process, std::cout, here.log);
  });
}

inline CLI::Option* add_prefix(CLI::App& sub, JobSettingsSource& source) {
  return sub
      .add_option("-p,--prefix", source.prefix, "The prefix directory, in place of SCR_PREFIX")
      ->type_name("DIR");
}

inline void add_json(CLI::App& sub, bool& is_json) {
  sub.add_flag("--json", is_json, "Print JSON");
}

inline CLI::Option* add_force(CLI::App& sub, bool& is_forced) {
  return sub.add_flag("--force", is_forced, force_help);
}

}  // namespace cairn
