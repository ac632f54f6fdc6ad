#include "config/remedy.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

Settings settings() {
  Settings settings;
  settings.prefix = "/p/job";
  settings.node_name = "n0";
  settings.control_base = "/dev/shm";
  settings.stores.push_back({.path = "/p/job/cache.d/%n"});
  return settings;
}

bool is_about_caches(int why, const std::string& path) {
  const Error error = errno_error(why, "write", path);
  const std::string text = with_remedy(error, settings());
  EXPECT_TRUE(text.starts_with(error.text + "; ")) << text;
  return text == error.text + "; " + std::string(remedy_for(error, Storage::cache));
}

TEST(Remedy, IsForTheStorageThatHasTheFile) {
  for (const int why : {ENOSPC, EDQUOT, ELOOP, EIO}) {
    for (const char* path : {"/p/job", "/p/job/ckpt 1/rank.0", "/p/job/.cairn/owner"})
      EXPECT_FALSE(is_about_caches(why, path)) << path;
    for (const char* path : {"/dev/shm/me/cairn.1/x", "/p/job.2/x", "/p/job/cache.d/n7/x"})
      EXPECT_TRUE(is_about_caches(why, path)) << path;
  }
}

TEST(Remedy, IsForTheInnermostError) {
  const auto remedied = [](const std::string& text) {
    return with_remedy(Error{Code::no_space, text, -1}, settings());
  };
  const std::string prefix = "cannot sync /p/job/a: Disk quota exceeded";
  EXPECT_NE(remedied("cannot end /dev/shm/x: " + prefix).find("SCR_PREFIX_SIZE"),
            std::string::npos);
  const std::string cache = "a is not in /p/job/b: cannot write /dev/shm/x: No space left";
  EXPECT_NE(remedied(cache).find("SCR_CACHE_BASE"), std::string::npos);
}

TEST(Remedy, WithoutAPathTheCallerDecides) {
  const Error error{Code::io, "dataset 7 is not copied yet", EIO};
  for (const Storage storage : {Storage::cache, Storage::prefix})
    EXPECT_EQ(with_remedy(error, settings(), storage),
              error.text + "; " + std::string(remedy_for(error, storage)));
}

TEST(Remedy, NamesTheSettingThatHasChosenTheCache) {
  Settings chosen = settings();
  chosen.control_origin = "SCR_CNTL_BASE=/dev/shm (default)";
  chosen.stores = {{.path = "/nosuch/%n/x", .origin = "STORE=/nosuch/%n/x (/p/.scrconf:3)"}};
  const auto remedied = [&](int why, const std::string& path) {
    return with_remedy(errno_error(why, "create directory", path), chosen);
  };
  for (const int why : {ENOENT, EACCES, EROFS, ENOSPC, ELOOP})
    for (const std::string path : {"/nosuch", "/nosuch/n0/x", "/nosuch/n0/x/me/cairn.7"})
      EXPECT_NE(remedied(why, path).find("STORE=/nosuch/%n/x (/p/.scrconf:3)"), std::string::npos)
          << remedied(why, path);
  EXPECT_NE(remedied(ENOSPC, "/dev/shm/me/y").find("SCR_CNTL_BASE=/dev/shm"), std::string::npos);
  EXPECT_EQ(remedied(EIO, "/nosuch/n0/x/me/cairn.7/dataset.1/rank.0").find("STORE="),
            std::string::npos)
      << "the setting is good, the node is not";
}

TEST(Remedy, ErrorsWithoutAFileHaveNone) {
  const Error busy{Code::busy, "cannot begin in /p/job: wait", -1};
  EXPECT_EQ(with_remedy(busy, settings()), busy.text);
}

}  // namespace
}  // namespace cairn
