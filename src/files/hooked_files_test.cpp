#include "files/hooked_files.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

class HookedFilesTest : public ::testing::Test {
 protected:
  std::unique_ptr<Files> disk_ = make_posix_files();
  TemporaryFolder folder_;
};

/// Calls every operation once, and ignores the results.
void do_everything(Files& files, const TemporaryFolder& folder) {
  const std::string path = folder / "f";
  Blob buffer(4);
  if (const auto file = files.create(path, 0600)) {
    EXPECT_TRUE((*file)->write_at(0, buffer));
    EXPECT_TRUE((*file)->read_at(0, buffer));
    EXPECT_TRUE((*file)->resize(4));
    EXPECT_TRUE((*file)->sync());
    EXPECT_TRUE((*file)->sync_all());
    EXPECT_EQ(*(*file)->size(), 4U);
  }
  EXPECT_TRUE(files.open(path));
  EXPECT_TRUE(files.open_for_update(path));
  EXPECT_TRUE(files.append(path, {}, 0600));
  if (const auto view = files.view(path)) {
    EXPECT_EQ((*view)->size(), 4U);
    EXPECT_TRUE((*view)->at(0, 4, buffer));
  }
  EXPECT_TRUE(files.info(path));
  EXPECT_TRUE(files.find_writer(path));
  EXPECT_TRUE(files.list(folder.path()));
  EXPECT_TRUE(files.make_folder(folder / "d", 0700));
  EXPECT_TRUE(files.make_new_folder(folder / "d", 0700));
  EXPECT_TRUE(files.set_attributes(path, 0600, {}));
  EXPECT_TRUE(files.rename(path, folder / "g"));
  EXPECT_TRUE(files.remove_file(folder / "g"));
  EXPECT_TRUE(files.remove_folder(folder / "d"));
  EXPECT_TRUE(files.sync_folder(folder.path()));
  EXPECT_TRUE(files.open_file_system(folder.path()));
  EXPECT_TRUE(files.space(folder.path()));
  EXPECT_TRUE(files.is_memory(folder.path()));
  EXPECT_TRUE(files.may_change(folder.path()));
  EXPECT_TRUE(files.lock(folder / "lock"));
}

TEST_F(HookedFilesTest, CallsTheHookBeforeEveryOperationInOrder) {
  std::vector<std::string> names;
  std::vector<std::string> paths;
  std::string renamed_to;
  const auto hooked = make_hooked_files(*disk_, [&](const FileOperation& next) -> Status {
    EXPECT_EQ(next.index, names.size());
    names.emplace_back(next.name);
    paths.emplace_back(next.path);
    if (next.name == "rename") renamed_to = next.to;
    return {};
  });
  do_everything(*hooked, folder_);
  EXPECT_EQ(names, (std::vector<std::string>{"create",
                                             "write",
                                             "read",
                                             "resize",
                                             "sync",
                                             "sync_all",
                                             "size",
                                             "open",
                                             "open_for_update",
                                             "append",
                                             "view",
                                             "view_at",
                                             "info",
                                             "find_writer",
                                             "list",
                                             "make_folder",
                                             "make_new_folder",
                                             "set_attributes",
                                             "rename",
                                             "remove_file",
                                             "remove_folder",
                                             "sync_folder",
                                             "open_file_system",
                                             "space",
                                             "is_memory",
                                             "may_change",
                                             "lock"}));
  ASSERT_EQ(paths.size(), 27U);
  for (int i = 0; i < 14; ++i) EXPECT_EQ(paths[i], folder_ / "f") << names[i];
  EXPECT_EQ(paths[14], folder_.path());
  EXPECT_EQ(renamed_to, folder_ / "g");
  EXPECT_EQ(hooked->effective_user(), disk_->effective_user());
}

TEST_F(HookedFilesTest, AnErrorOfTheHookPreventsTheOperation) {
  std::string forbidden;
  const auto hooked = make_hooked_files(*disk_, [&](const FileOperation& next) -> Status {
    if (next.name == forbidden) return fail(Code::lost, "injected");
    return {};
  });
  Blob four(4);
  const std::string path = folder_ / "f";
  const auto file = hooked->create(path, 0600);
  ASSERT_TRUE(file && (*file)->write_at(0, four));
  const auto view = hooked->view(path);
  ASSERT_TRUE(view);
  const std::vector<std::pair<std::string, std::function<Status()>>> operations = {
      {"create", [&] { return hooked->create(path, 0600).map([](auto&&) {}); }},
      {"open", [&] { return hooked->open(path).map([](auto&&) {}); }},
      {"open_for_update", [&] { return hooked->open_for_update(path).map([](auto&&) {}); }},
      {"view", [&] { return hooked->view(path).map([](auto&&) {}); }},
      {"view_at", [&] { return (*view)->at(0, 4, four).map([](auto&&) {}); }},
      {"write", [&] { return (*file)->write_at(0, Blob(9)); }},
      {"read", [&] { return (*file)->read_at(0, four); }},
      {"resize", [&] { return (*file)->resize(1); }},
      {"sync", [&] { return (*file)->sync(); }},
      {"sync_all", [&] { return (*file)->sync_all(); }},
      {"size", [&] { return (*file)->size().map([](auto&&) {}); }},
      {"info", [&] { return hooked->info(path).map([](auto&&) {}); }},
      {"find_writer", [&] { return hooked->find_writer(path).map([](Writer) {}); }},
      {"list", [&] { return hooked->list(folder_.path()).map([](auto&&) {}); }},
      {"make_folder", [&] { return hooked->make_folder(folder_ / "d", 0700); }},
      {"make_new_folder",
       [&] { return hooked->make_new_folder(folder_ / "d", 0700).map([](auto&&) {}); }},
      {"open_file_system",
       [&] { return hooked->open_file_system(folder_.path()).map([](auto&&) {}); }},
      {"set_attributes", [&] { return hooked->set_attributes(path, 0777, {}); }},
      {"rename", [&] { return hooked->rename(path, folder_ / "g"); }},
      {"remove_file", [&] { return hooked->remove_file(path); }},
      {"remove_folder", [&] { return hooked->remove_folder(folder_ / "d"); }},
      {"sync_folder", [&] { return hooked->sync_folder(folder_.path()); }},
      {"space", [&] { return hooked->space(path).map([](auto&&) {}); }},
      {"is_memory", [&] { return hooked->is_memory(path).map([](auto&&) {}); }},
      {"may_change", [&] { return hooked->may_change(folder_.path()); }},
      {"lock", [&] { return hooked->lock(folder_ / "lock").map([](auto&&) {}); }},
  };
  for (const auto& [name, operation] : operations) {
    forbidden = name;
    const Status done = operation();
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code, Code::lost) << name;
  }
  EXPECT_EQ(*disk_->list(folder_.path()), std::vector<std::string>{"f"});
  EXPECT_EQ(disk_->info(path)->size, 4U);
  EXPECT_EQ(disk_->info(path)->mode, 0600U);
}

TEST_F(HookedFilesTest, AnExceptionPassesThrough) {
  const auto hooked = make_hooked_files(*disk_, [](const FileOperation& next) -> Status {
    if (next.name == "write") throw std::runtime_error("crash");
    return {};
  });
  const auto file = hooked->create(folder_ / "f", 0600);
  ASSERT_TRUE(file);
  EXPECT_THROW(static_cast<void>((*file)->write_at(0, Blob(4))), std::runtime_error);
  EXPECT_EQ(disk_->info(folder_ / "f")->size, 0U);
}

TEST_F(HookedFilesTest, NumbersAreNeverGivenTwice) {
  std::mutex guard;
  std::set<std::uint64_t> seen;
  const auto hooked = make_hooked_files(*disk_, [&](const FileOperation& next) -> Status {
    const std::lock_guard hold(guard);
    seen.insert(next.index);
    return {};
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) EXPECT_TRUE(hooked->info(folder_.path()));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), 400U);
  EXPECT_EQ(*seen.rbegin(), 399U);
}

}  // namespace
}  // namespace cairn
