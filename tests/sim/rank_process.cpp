#include "rank_process.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace cairn::sim {

RankProcess::RankProcess(Environment of)
    : env(std::move(of)),
      comm(env.boxes, env.rank),
      clock(env.seam, env.chance),
      memory(make_memory_files(
          env.mounts, [this] { return env.seam.scheduler().now_us() * 1000; }, env.disturbances)),
      files(make_hooked_files(*memory,
                              [this](const FileOperation& operation) -> Status {
                                if (std::uncaught_exceptions() > 0)
                                  return fail(Code::io, "cannot {} {}: the process has ended",
                                              operation.name, operation.path);
                                env.seam.pass(operation.name, operation.path, operation.to);
                                return env.observe(operation);
                              })),
      log([this](Severity, const std::string& text) {
        env.seam.trace().say("rank {} says: {}", env.rank, text);
        if (env.logged) env.logged(text);
      }) {
  if (env.behind == nullptr) return;
  second_comm.emplace(*env.behind, env.rank);
  work.emplace(env.background, *second_comm);
}

Status RankProcess::init() {
  CAIRN_ASSIGN(session,
               Session::init({comm, *files, clock, env.background, log, work ? &*work : nullptr},
                             env.settings));
  return {};
}

Status RankProcess::write(const std::string& path, const FileShape& file, const Blob& content) {
  CAIRN_ASSIGN(const auto out, files->create(path, 0640));
  CAIRN_TRY(out->write_at(0, content));
  return files->set_attributes(path, file.mode, {1'000'000'000, 2'000'000'000});
}

std::optional<Blob> RankProcess::read(const std::string& path) const {
  auto content = read_file(*memory, path, std::uint64_t{1} << 30);
  return content ? std::optional(*std::move(content)) : std::nullopt;
}

void run_ranks(Scheduler& scheduler, std::deque<HelperBackground>& helpers,
               const std::function<void(int rank)>& rank_main) {
  try {
    scheduler.run(static_cast<int>(helpers.size()), rank_main,
                  [&](int rank) { helpers[static_cast<std::size_t>(rank)].work(); });
  } catch (const Deadlock& deadlock) {
    throw Violation(fmt::format("(f) {}", deadlock.what()));
  }
}

}  // namespace cairn::sim
