// What the settings of all jobs of tests have in common, on real files and in the simulation.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace cairn {

/// No store, no level, no flush. Small blocks, so that small files have several.
inline Settings settings_of_job(const std::string& prefix, const std::string& control_base) {
  Settings settings;
  settings.prefix = prefix;
  settings.user = "tester";
  settings.job_id = "job";
  settings.control_base = control_base;
  settings.block_bytes = 512;
  return settings;
}

/// A store, and the level that uses it.
inline CheckpointSettings& add_level(Settings& settings, const std::string& store) {
  settings.stores.emplace_back().path = store;
  CheckpointSettings& level = settings.checkpoints.emplace_back();
  level.store = store;
  return level;
}

}  // namespace cairn
