// What all parts of a session work with.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/background.hpp"
#include "prefix/event_log.hpp"
#include "session/levels.hpp"
#include "session/losses.hpp"
#include "session/open_stores.hpp"
#include "transfer/pace.hpp"

namespace cairn {

/// The numbers of the next dataset and checkpoint come after these. A run that goes back counts its
/// checkpoints on from there: that decides which level the next one takes.
struct LastNumbers {
  std::uint64_t number = 0;
  std::uint64_t checkpoint = 0;

  void come_after(std::uint64_t a_number, std::uint64_t a_checkpoint) {
    number = std::max(number, a_number);
    checkpoint = std::max(checkpoint, a_checkpoint);
  }
};

/// This launch of the program, as one rank has it. What is resolved at Init is empty before.
struct ThisRun {
  Files& files;
  Clock& clock;
  Background& background;  ///< removes what is superseded
  const Settings settings;
  const int rank;
  const int ranks;
  const Log own_log;     ///< of what concerns this rank alone
  const Log shared_log;  ///< of what concerns all; silent but on rank 0
  EventLog events;
  Pace pace;  ///< of copies that go on while the program computes

  Placement placement;
  std::vector<Store> stores;
  std::vector<Level> levels;
  PrefixIdentity identity;
  Locks locks;
  LastNumbers last;
  Losses losses;

  ThisRun(Communicator& comm, Files& its_files, Clock& its_clock, Background& its_background,
          const Log& log, const Settings& its_settings)
      : files(its_files),
        clock(its_clock),
        background(its_background),
        settings(its_settings),
        rank(comm.rank()),
        ranks(comm.size()),
        own_log(log),
        shared_log(comm.rank() == 0 ? log : Log()),
        events(files, clock, settings, own_log,
               comm.rank() == 0 ? EventLog::Part::writer : EventLog::Part::silent),
        pace(clock, settings.async_percent / 100),
        losses(events) {}

  std::uint32_t unsigned_ranks() const { return static_cast<std::uint32_t>(ranks); }
  bool is_written_by_as_many(const DatasetInfo& dataset) const {
    return dataset.ranks == unsigned_ranks();
  }
  double seconds_since(std::int64_t steady_us) const {
    return static_cast<double>(clock.steady_us() - steady_us) * 1e-6;
  }
  /// Trouble that concerns this rank, and nothing follows from.
  void warn_if(const Status& trouble) const {
    if (!trouble) own_log.warning("rank {}: {}", rank, trouble.error().text);
  }
};

}  // namespace cairn
