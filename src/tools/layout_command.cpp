#include "tools/layout_command.hpp"

#include <utility>

#include "tools/layout_text.hpp"

namespace cairn {

int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log) {
  const auto report =
      lay_out(command.job, files, std::move(process), log).map([](const Layout& layout) {
        Report made = report_of_job(layout);
        add_sets(made, layout);
        return made;
      });
  return print_report(report, command.json, out, log, {Code::bad_argument, exit_usage});
}

}  // namespace cairn
