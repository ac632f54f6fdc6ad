// The native command `cairn`: one subcommand per thing to do, each in a file of its own.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "files/posix_files.hpp"
#include "tools/config_command.hpp"
#include "tools/exit_codes.hpp"

namespace {

void add_config(CLI::App& app, int& exit_code) {
  auto* sub =
      app.add_subcommand("config", "Show every setting, where it comes from, and its meaning");
  auto command = std::make_shared<cairn::ConfigCommand>();
  sub->add_flag("--json", command->json, "Print JSON");
  sub->add_option("-p,--prefix", command->prefix, "The prefix directory, in place of SCR_PREFIX");
  sub->callback([command, &exit_code] {
    const auto files = cairn::make_posix_files();
    exit_code = cairn::run_config_command(*command, *files, cairn::current_process(), std::cout,
                                          cairn::Log(cairn::log_to_stderr));
  });
}

int run(int argc, char** argv) {
  CLI::App app("Scalable checkpoint/restart for parallel applications", "cairn");
  app.set_version_flag("--version", "cairn " CAIRN_VERSION);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage.");
  app.require_subcommand(1);
  int exit_code = cairn::exit_ok;
  add_config(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cairn::exit_ok : cairn::exit_usage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // of the standard library: out of memory and the like
    cairn::log_to_stderr(cairn::Level::error, error.what());
    return cairn::exit_failure;
  }
}
