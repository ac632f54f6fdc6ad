#include "behind_deaths.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "small_job.hpp"
#include "support/job_settings.hpp"

namespace cairn::sim {
namespace {

using Kind = BehindDeath::Kind;

JobShape shape_of_exposed_job(const BehindDeath& death) {
  JobShape shape = SmallJob::shape_of(death.seed, {"n0", "n1", "n2", "n3", "n4"}, 3);
  CheckpointSettings& level =
      add_level(shape.settings, death.kind == Kind::power ? disk_mount : memory_mount);
  shape.settings.stores[0].count = 1;
  level.scheme = Scheme::xor_;
  level.set_size = 3;
  level.behind = true;
  return shape;
}

class ExposedJob {
 public:
  ExposedJob(const BehindDeath& death, bool print)
      : death_(death), job_(shape_of_exposed_job(death), print) {}

  BehindDeathOutcome carry_out() {
    try {
      run([this](RankProcess& process) {
        job_.write(process, 1);
        SmallJob::finalize(process);
      });
      run([this](RankProcess& process) { be_dying_run(process); });
      if (outcome_.has_died) live_on();
    } catch (const std::exception& broken) {
      outcome_.failure = broken.what();
      job_.trace.say("failed: {}", outcome_.failure);
    }
    return outcome_;
  }

 private:
  static constexpr std::uint64_t others_live_for = 400;  // calls
  static constexpr std::uint64_t noticed_after = 30;     // calls

  bool run(const SmallJob::Program& program, std::uint64_t ends_after = 0) {
    behind_.emplace(job_.shape.ranks(), job_.seam, job_.chance.fork(), Postboxes::Owner::helper);
    return job_.run(program, &*behind_, ends_after);
  }

  void be_dying_run(RankProcess& process) {
    if (job_.restart(process) != 1) throw Violation("(b) d1 is not offered");
    for (const int key : {2, 3}) {
      job_.write(process, key, [this, key] {
        if (key == 3) protected_ = std::max(protected_, 2);  // Start has waited for that
        if (!std::exchange(is_armed_, true)) job_.seam.after(death_.calls, [this] { strike(); });
      });
      completed_ = std::max(completed_, key);
    }
    constexpr int most_looks = 100;
    constexpr std::int64_t between_looks_us = 500;
    for (int i = 0; i < most_looks && process.session->safety().of("d3") != Safety::protected_; ++i)
      process.clock.sleep_us(between_looks_us);
    if (process.session->safety().of("d3") == Safety::protected_) protected_ = 3;
    SmallJob::finalize(process);
    protected_ = 3;
  }

  const std::string& dying_node() const {
    return job_.shape.first_placement[static_cast<std::size_t>(death_.node)];
  }

  void strike() {
    outcome_.has_died = true;
    outcome_.was_exposed = completed_ > protected_;
    job_.trace.say("it dies");
    switch (death_.kind) {
      case Kind::connection:
        behind_->break_off();
        return;
      case Kind::processes:
      case Kind::power:
        job_.scheduler.end_all();
        return;
      case Kind::process:
      case Kind::node:
        break;
    }
    job_.scheduler.end(death_.node);  // one rank on each node
    if (death_.kind == Kind::node) job_.watch.lose_node([this] { job_.lose(dying_node()); });
    job_.seam.after(noticed_after, [this] { behind_->break_off(); });
    job_.seam.after(others_live_for, [this] { job_.scheduler.end_all(); });
  }

  // --- after the death ---

  void live_on() {
    if (death_.kind == Kind::power) job_.fail_power();
    if (death_.kind == Kind::node) job_.replace(dying_node(), "n3");
    if (death_.calls_of_next_run > 0) {
      outcome_.next_has_died =
          run([this](RankProcess& process) { job_.restart(process); }, death_.calls_of_next_run);
      if (!outcome_.next_has_died) return;
    }
    const bool keeps_all = death_.kind != Kind::node && death_.kind != Kind::power;
    const int promised = keeps_all ? completed_ : protected_;
    const int found = restart_and_finalize();
    if (found < promised)
      throw Violation(fmt::format("(b) d{} is offered, and d{} was {}", found, promised,
                                  keeps_all ? "complete" : "protected"));
    lose_another_node();
    if (const int again = restart_and_finalize(true); again != found)
      throw Violation(fmt::format("(c) d{} was offered, and then d{}", found, again));
  }

  int restart_and_finalize(bool writes = false) {
    int found = 0;
    run([&](RankProcess& process) {
      const int key = job_.restart(process);
      if (process.env.rank == 0) found = key;
      if (writes) job_.write(process, 4);
      SmallJob::finalize(process);
    });
    return found;
  }

  void lose_another_node() {
    const std::string node = job_.placement[static_cast<std::size_t>(death_.node + 1) % 3];
    job_.lose(node);
    job_.watch.forget_caches();
    job_.replace(node, "n4");
  }

  const BehindDeath death_;
  SmallJob job_;
  std::optional<Postboxes> behind_;  ///< of the present run
  bool is_armed_ = false;
  int completed_ = 1;  ///< on some rank
  int protected_ = 1;  ///< as some rank knows
  BehindDeathOutcome outcome_;
};

}  // namespace

BehindDeathOutcome simulate_behind_death(const BehindDeath& death, bool print) {
  return ExposedJob(death, print).carry_out();
}

}  // namespace cairn::sim
