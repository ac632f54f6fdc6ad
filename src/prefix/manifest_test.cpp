#include "prefix/manifest.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"

namespace cairn {
namespace {

/// No process could read it.
TEST(Manifest, ThatIsTooLargeIsNotWritten) {
  const auto posix = make_posix_files();
  const auto files = make_hooked_files(*posix, [](const FileOperation& operation) {
    return fail(Code::io, "{} of {}", operation.name, operation.path);
  });
  constexpr std::size_t too_large = largest_manifest + 1;
  void* untouched =
      ::mmap(nullptr, too_large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(untouched, MAP_FAILED);
  const Bytes records(static_cast<const std::byte*>(untouched), too_large);
  const Status refused = write_manifest(*files, "/nowhere", 0, records);
  const Status tried = write_manifest(*files, "/nowhere", 0, records.first(too_large - 1));
  ::munmap(untouched, too_large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_argument) << refused.error().text;
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, Code::io) << tried.error().text;
}

}  // namespace
}  // namespace cairn
