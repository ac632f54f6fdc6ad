// The wrapped calls that change the working directory.
#include <unistd.h>

#include "interpose/located.hpp"
#include "interpose/next_call.hpp"

using namespace cairn::interpose;  // NOLINT: the calls below are C's

namespace {

int after_change(int result) {
  Process* const here = process();
  if (here != nullptr) here->working_directory().forget();
  return result;
}

}  // namespace

CAIRN_WRAPPED int chdir(const char* path) noexcept {
  return after_change(
      on_existing(AT_FDCWD, path, [](int, const char* found) { return CAIRN_NEXT(chdir)(found); }));
}
CAIRN_WRAPPED int fchdir(int descriptor) noexcept {
  return after_change(CAIRN_NEXT(fchdir)(descriptor));
}
