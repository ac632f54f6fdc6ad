// Functions built on the seam: paths, trees, whole files.
#include "files/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// The hook of a store that fails, or crashes, at operation number `at`.
struct FailAt {
  std::uint64_t at;
  Status operator()(const FileOperation& next) const {
    if (next.index == at) return fail(Code::no_space, "injected at {}", next.name);
    return {};
  }
};

struct Crash {};

struct CrashAt {
  std::uint64_t at;
  Status operator()(const FileOperation& next) const {
    if (next.index == at) throw Crash();
    return {};
  }
};

class Whole : public ::testing::Test {
 protected:
  std::string content_of(const std::string& path) {
    const auto content = read_file(*files_, path, 1 << 20);
    if (!content) return content.error().text;
    return std::string(reinterpret_cast<const char*>(content->data()), content->size());
  }
  void put(const std::string& path, std::string_view content) {
    ASSERT_TRUE(write_file_atomically(*files_, path, bytes(content), false));
  }

  std::unique_ptr<Files> files_ = make_posix_files();
  TemporaryFolder folder_;
};

TEST(Paths, FolderAndName) {
  struct Case {
    const char *path, *folder, *name;
  };
  for (const Case& is : {Case{"/a/b", "/a", "b"}, Case{"/a", "/", "a"}, Case{"/", "/", ""},
                         Case{"/a/b/c.d", "/a/b", "c.d"}, Case{"bare", ".", "bare"}}) {
    EXPECT_EQ(folder_of(is.path), is.folder) << is.path;
    EXPECT_EQ(name_of_path(is.path), is.name) << is.path;
  }
}

TEST(Paths, Normalised) {
  struct Case {
    const char *path, *base, *result;
  };
  for (const Case& is : {
           Case{"/a/b", "/x", "/a/b"},
           Case{"a", "/x/y", "/x/y/a"},
           Case{"", "/x", "/x"},
           Case{".", "/x", "/x"},
           Case{"/", "/x", "/"},
           Case{"a", "/", "/a"},
           Case{"//a///b//", "/x", "/a/b"},
           Case{"/a/./b/.", "/x", "/a/b"},
           Case{"/a/../b", "/x", "/b"},
           Case{"../../..", "/x/y", "/"},
           Case{"/../a", "/x", "/a"},
           Case{"../z", "/x/y/", "/x/z"},
           Case{"/a/..b/...", "/x", "/a/..b/..."},
           Case{"/a/b/../../..//c", "/x", "/c"},
       })
    EXPECT_EQ(normalise(is.path, is.base), is.result) << is.path << " in " << is.base;
}

TEST(Paths, Below) {
  struct Case {
    const char *path, *folder, *relative;  // null: not below
  };
  for (const Case& is :
       {Case{"/a/b", "/a", "b"}, Case{"/a/b/c", "/a", "b/c"}, Case{"/a", "/", "a"},
        Case{"/a", "/a", nullptr}, Case{"/", "/", nullptr}, Case{"/ab", "/a", nullptr},
        Case{"/a", "/a/b", nullptr}, Case{"/b/a", "/a", nullptr}}) {
    std::string relative = "untouched";
    EXPECT_EQ(lies_below(is.path, is.folder, &relative), is.relative != nullptr) << is.path;
    EXPECT_EQ(relative, is.relative != nullptr ? is.relative : "untouched") << is.path;
    EXPECT_EQ(lies_below(is.path, is.folder, nullptr), is.relative != nullptr) << is.path;
  }
}

TEST_F(Whole, MakesMissingFolders) {
  EXPECT_TRUE(make_folders(*files_, folder_ / "a/b/c", 0700));
  EXPECT_TRUE(make_folders(*files_, folder_ / "a/b/c", 0755));
  EXPECT_TRUE(make_folders(*files_, "/", 0700));
  for (const char* made : {"a", "a/b", "a/b/c"})
    EXPECT_EQ(files_->info(folder_ / made)->mode, 0700U) << made;
  put(folder_ / "file", "");
  EXPECT_EQ(make_folders(*files_, folder_ / "file/x/y", 0700).error().code, Code::io);
  ASSERT_EQ(::symlink("nowhere", (folder_ / "link").c_str()), 0);
  EXPECT_EQ(make_folders(*files_, folder_ / "link/x", 0700).error().code, Code::untrusted);
}

TEST_F(Whole, RemovesATreeAndNothingLinkedFromIt) {
  put(folder_ / "kept", "outside");
  ASSERT_TRUE(make_folders(*files_, folder_ / "outside/deep", 0700));
  ASSERT_TRUE(make_folders(*files_, folder_ / "tree/a/b", 0700));
  put(folder_ / "tree/a/f", "x");
  put(folder_ / "tree/g", "y");
  ASSERT_EQ(::symlink((folder_ / "kept").c_str(), (folder_ / "tree/to-file").c_str()), 0);
  ASSERT_EQ(::symlink((folder_ / "outside").c_str(), (folder_ / "tree/a/to-folder").c_str()), 0);
  ASSERT_EQ(::symlink("dangling", (folder_ / "tree/a/to-nothing").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder_ / "tree/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(remove_all(*files_, folder_ / "tree"));
  EXPECT_TRUE(remove_all(*files_, folder_ / "tree"));
  EXPECT_EQ(*files_->list(folder_.path()), (std::vector<std::string>{"kept", "outside"}));
  EXPECT_EQ(*files_->list(folder_ / "outside"), std::vector<std::string>{"deep"});
  EXPECT_EQ(content_of(folder_ / "kept"), "outside");
}

TEST_F(Whole, RemovesAllButOneKind) {
  ASSERT_TRUE(make_folders(*files_, folder_ / "folder/full", 0700));
  put(folder_ / "file", "x");
  ASSERT_EQ(::symlink("folder", (folder_ / "link").c_str()), 0);
  for (const char* name : {"folder", "none"})
    EXPECT_TRUE(remove_unless(*files_, Kind::folder, folder_ / name)) << name;
  EXPECT_TRUE(remove_unless(*files_, Kind::file, folder_ / "file"));
  EXPECT_EQ(files_->list(folder_.path())->size(), 3U) << "nothing is in the way";
  EXPECT_TRUE(remove_unless(*files_, Kind::folder, folder_ / "link"));
  EXPECT_TRUE(remove_unless(*files_, Kind::folder, folder_ / "file"));
  EXPECT_EQ(*files_->list(folder_.path()), std::vector<std::string>{"folder"});
  const auto failing = make_hooked_files(*files_, FailAt{0});
  EXPECT_FALSE(remove_unless(*failing, Kind::file, folder_ / "folder"));
  EXPECT_TRUE(remove_unless(*files_, Kind::file, folder_ / "folder"));
  EXPECT_TRUE(files_->list(folder_.path())->empty());
}

TEST_F(Whole, RemovesALinkToAFolderAsALink) {
  ASSERT_TRUE(make_folders(*files_, folder_ / "outside/deep", 0700));
  ASSERT_EQ(::symlink("outside", (folder_ / "link").c_str()), 0);
  EXPECT_TRUE(remove_all(*files_, folder_ / "link"));
  EXPECT_EQ(*files_->list(folder_.path()), std::vector<std::string>{"outside"});
  EXPECT_EQ(*files_->list(folder_ / "outside"), std::vector<std::string>{"deep"});
}

TEST_F(Whole, RemovalReturnsAnErrorAtAnyStepAndCanBeRepeated) {
  std::uint64_t steps = 0;
  for (;; ++steps) {
    ASSERT_TRUE(make_folders(*files_, folder_ / "tree/a", 0700));
    const auto failing = make_hooked_files(*files_, FailAt{steps});
    const Status removed = remove_all(*failing, folder_ / "tree");
    if (removed) break;
    EXPECT_EQ(removed.error().code, Code::no_space) << steps;
    EXPECT_TRUE(files_->info(folder_ / "tree")) << steps;
    EXPECT_TRUE(remove_all(*files_, folder_ / "tree")) << steps;
  }
  EXPECT_EQ(steps, 6U);  // info, list and remove_folder of two folders
  EXPECT_TRUE(files_->list(folder_.path())->empty());
}

TEST_F(Whole, ReadsUpToTheLimit) {
  put(folder_ / "f", "0123456789");
  EXPECT_EQ(read_file(*files_, folder_ / "f", 10)->size(), 10U);
  const auto large = read_file(*files_, folder_ / "f", 9);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::io);
  EXPECT_NE(large.error().text.find("it has 10 bytes, and at most 9"), std::string::npos);
  EXPECT_EQ(read_file(*files_, folder_ / "none", 9).error().code, Code::not_found);
  put(folder_ / "empty", "");
  EXPECT_TRUE(read_file(*files_, folder_ / "empty", 0)->empty());
}

class AtomicWrite : public Whole, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Durable, AtomicWrite, ::testing::Bool());

TEST_P(AtomicWrite, AnErrorAtAnyStepLeavesTheOldContent) {
  const std::string path = folder_ / "record";
  std::uint64_t steps = 0;
  for (;; ++steps) {
    put(path, "old");
    const auto failing = make_hooked_files(*files_, FailAt{steps});
    const Status written = write_file_atomically(*failing, path, bytes("new content"), GetParam());
    EXPECT_EQ(*files_->list(folder_.path()), std::vector<std::string>{"record"}) << steps;
    if (written) break;
    EXPECT_EQ(written.error().code, Code::no_space);
    const bool renamed = written.error().text == "injected at sync_folder";
    EXPECT_EQ(content_of(path), renamed ? "new content" : "old") << written.error().text;
  }
  EXPECT_EQ(content_of(path), "new content");
  EXPECT_EQ(steps, GetParam() ? 5U : 3U);  // create, write, (sync,) rename, (sync_folder)
}

TEST_P(AtomicWrite, ACrashAtAnyStepLeavesOldOrNewAndTheNextWriteSucceeds) {
  const std::string path = folder_ / "record";
  for (std::uint64_t at = 0;; ++at) {
    put(path, "old");
    const auto crashing = make_hooked_files(*files_, CrashAt{at});
    bool crashed = false;
    try {
      EXPECT_TRUE(write_file_atomically(*crashing, path, bytes("new"), GetParam()));
    } catch (const Crash&) {
      crashed = true;
    }
    const std::string found = content_of(path);
    EXPECT_EQ(found, at < (GetParam() ? 4U : 3U) ? "old" : "new") << at;
    EXPECT_TRUE(write_file_atomically(*files_, path, bytes("newest"), GetParam()));
    EXPECT_EQ(*files_->list(folder_.path()), std::vector<std::string>{"record"});
    if (!crashed) break;
  }
}

TEST_F(Whole, AtomicWriteReportsALeftoverTemporaryFile) {
  const auto failing = make_hooked_files(*files_, [](const FileOperation& next) -> Status {
    if (next.name == "write" || next.name == "remove_file")
      return fail(Code::io, "no {}", next.name);
    return {};
  });
  const Status written = write_file_atomically(*failing, folder_ / "f", bytes("x"), true);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().text, "no write; and no remove_file");
}

TEST_F(Whole, AtomicWriteFailsIfItsTemporaryNameIsALink) {
  put(folder_ / "kept", "kept");
  ASSERT_EQ(::symlink("kept", (folder_ / "f.tmp").c_str()), 0);
  EXPECT_EQ(write_file_atomically(*files_, folder_ / "f", bytes("x"), true).error().code,
            Code::untrusted);
  EXPECT_EQ(content_of(folder_ / "kept"), "kept");
}

}  // namespace
}  // namespace cairn
