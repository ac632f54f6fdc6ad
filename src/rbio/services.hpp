// What a series needs of the process it runs in.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "files/files.hpp"
#include "rbio/collective_files.hpp"
#include "rbio/shared_memory.hpp"
#include "rbio/threads.hpp"

namespace cairn::rbio {

/// Shared, because a thread that a hanging file system holds may outlive the series.
struct Services {
  std::shared_ptr<Files> files;
  std::shared_ptr<SharedMemory> memory;  ///< null: all data go by messages
  Log log;
  /// Null: mode collective goes through `files`.
  std::shared_ptr<CollectiveFiles> collective = nullptr;
  std::shared_ptr<Threads> threads = make_system_threads();
};

/// Those of this machine.
Services system_services(Log log);

}  // namespace cairn::rbio
