#include "rbio/services.hpp"

#include "files/posix_files.hpp"

namespace cairn::rbio {

Services system_services(Log log) {
  return {make_posix_files(), make_shared_memory(), std::move(log)};
}

}  // namespace cairn::rbio
