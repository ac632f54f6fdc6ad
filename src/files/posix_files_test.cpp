#include "files/posix_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>

#include "files/page_cache.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string text(Bytes data) {
  return std::string(reinterpret_cast<const char*>(data.data()), data.size());
}

void put(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string get(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

bool mentions(const Error& error, std::string_view part) {
  return error.text.find(part) != std::string::npos;
}

/// Everything below runs on a disk, where views read, and in memory, where they map.
class PosixFiles : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Files> files_ = make_posix_files();
  TemporaryFolder folder_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Store, PosixFiles, ::testing::Values("", "/dev/shm"),
                         [](const auto& store) { return *store.param ? "Memory" : "Disk"; });

TEST_P(PosixFiles, WritesAndReadsAnywhereInAFile) {
  const auto file = files_->create(folder_ / "f", 0640);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_TRUE((*file)->write_at(6, bytes("world")));
  EXPECT_TRUE((*file)->write_at(0, bytes("hello ")));
  EXPECT_TRUE((*file)->sync());
  EXPECT_EQ(*(*file)->size(), 11U);
  Blob part(5);
  EXPECT_TRUE((*file)->read_at(4, part));
  EXPECT_EQ(text(part), "o wor");
  EXPECT_TRUE((*file)->resize(3));
  EXPECT_EQ(get(folder_ / "f"), "hel");
  EXPECT_TRUE((*file)->resize(4));
  EXPECT_EQ(get(folder_ / "f"), std::string("hel\0", 4));
}

TEST_P(PosixFiles, OpensForReadingOrForUpdate) {
  put(folder_ / "f", "abc");
  const auto reader = files_->open(folder_ / "f");
  ASSERT_TRUE(reader);
  const Status refused = (*reader)->write_at(0, bytes("x"));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(mentions(refused.error(), "cannot write " + folder_ / "f"));
  EXPECT_FALSE((*reader)->resize(0));
  const auto writer = files_->open_for_update(folder_ / "f");
  ASSERT_TRUE(writer);
  EXPECT_TRUE((*writer)->write_at(1, bytes("X")));
  EXPECT_EQ(get(folder_ / "f"), "aXc");
}

TEST_P(PosixFiles, CreateEmptiesAndKeepsItsMode) {
  put(folder_ / "f", "long old content");
  ASSERT_TRUE(files_->create(folder_ / "f", 0600));
  EXPECT_EQ(get(folder_ / "f"), "");
  ASSERT_TRUE(files_->create(folder_ / "g", 0600));
  EXPECT_EQ(files_->info(folder_ / "g")->mode, 0600U);
}

TEST_P(PosixFiles, CreateLeavesAFileThatHasOtherNamesToThem) {
  put(folder_ / "saved", "saved");
  ASSERT_TRUE(files_->link(folder_ / "saved", folder_ / "staged"));
  const auto file = files_->create(folder_ / "staged", 0600);
  ASSERT_TRUE(file) << file.error().text;
  ASSERT_TRUE((*file)->write_at(0, bytes("new")));
  EXPECT_EQ(get(folder_ / "staged"), "new");
  EXPECT_EQ(get(folder_ / "saved"), "saved");
}

TEST_P(PosixFiles, AppendsToExistingContent) {
  for (const char* line : {"one\n", "two\n"})
    ASSERT_TRUE(files_->append(folder_ / "log", bytes(line), 0640));
  EXPECT_EQ(get(folder_ / "log"), "one\ntwo\n");
  EXPECT_EQ(files_->info(folder_ / "log")->mode, 0640U);
  EXPECT_EQ(files_->append(folder_ / "no/log", {}, 0640).error().code, Code::not_found);
  EXPECT_FALSE(files_->append(folder_.path(), {}, 0640));
}

TEST_P(PosixFiles, AShortReadNamesBothSizes) {
  put(folder_ / "f", "0123456789");
  Blob buffer(8);
  const Status read = (*files_->open(folder_ / "f"))->read_at(5, buffer);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::io);
  EXPECT_TRUE(mentions(read.error(), "it has 10 bytes where 8 were expected from byte 5"))
      << read.error().text;
}

TEST_P(PosixFiles, AWriteThatStopsHalfwayIsAnError) {
  const auto file = files_->create(folder_ / "f", 0600);
  ASSERT_TRUE(file);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limited = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  const Status written = (*file)->write_at(0, Blob(3000));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_TRUE(mentions(written.error(), "cannot write " + folder_ / "f"));
  EXPECT_EQ(*(*file)->size(), 1000U);  // so the first call was short and a second followed
}

/// Memory that begins a page, as that of a buffer that was mapped.
MutableBytes whole_pages() {
  alignas(4096) static std::array<std::byte, 10 * 4096> pages;
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::byte>(i % 251);
  return pages;
}

TEST_P(PosixFiles, DataWrittenPastTheCacheAreReadBackAtAnyAlignment) {
  const MutableBytes data = whole_pages();
  for (const std::size_t from : {0U, 1U, 512U, 4000U})
    for (const std::size_t to : {0U, 1U, 4000U, 4096U, 4608U})
      for (const std::size_t length : {0U, 1U, 96U, 4096U, 4097U, 8192U, 20000U}) {
        const auto file = files_->create(folder_ / "f", 0600);
        ASSERT_TRUE(file) << file.error().text;
        ASSERT_TRUE((*file)->write_at(0, Blob(40000, std::byte{0xee})));
        const auto written = (*file)->write_past_cache(to, data.subspan(from, length));
        ASSERT_TRUE(written) << written.error().text;
        ASSERT_TRUE((*file)->sync());
        Blob expected(40000, std::byte{0xee});
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        const std::string read = get(folder_ / "f");
        ASSERT_TRUE(read == text(expected)) << length << " bytes from " << from << " to " << to;
      }
}

TEST(PosixFile, WholePagesTakeNoRoomInTheCache) {
  const TemporaryFolder folder;
  if (!takes_direct_writes(folder.path()))
    GTEST_SKIP() << "the file system of the temporary directory has no O_DIRECT";
  for (const char* name : {"one", "two"}) {
    const std::string path = folder / name;
    put(path, "");
    const auto file = make_posix_files()->open_for_update(path);
    ASSERT_TRUE((*file)->write_past_cache(100, whole_pages().subspan(100, 9 * 4096)));
    ASSERT_TRUE((*file)->sync());
    EXPECT_EQ(pages_in_cache(path), 2U) << "the first page, and the last one, have only a part";
  }
}

TEST_P(PosixFiles, AWritePastTheCacheThatStopsHalfwayIsAnError) {
  const auto file = files_->create(folder_ / "f", 0600);
  ASSERT_TRUE(file);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit narrow = before;
  narrow.rlim_cur = 2 * 4096 + 100;
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &narrow), 0);
  const Status written = (*file)->write_past_cache(0, whole_pages().first(4 * 4096));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(written);
  EXPECT_TRUE(mentions(written.error(), folder_ / "f")) << written.error().text;
}

TEST_P(PosixFiles, AMissingPathIsNotFound) {
  const std::string path = folder_ / "none";
  EXPECT_EQ(files_->open(path).error().code, Code::not_found);
  EXPECT_EQ(files_->open_for_update(path).error().code, Code::not_found);
  EXPECT_EQ(files_->view(path).error().code, Code::not_found);
  EXPECT_EQ(files_->info(path).error().code, Code::not_found);
  EXPECT_EQ(files_->list(path).error().code, Code::not_found);
  EXPECT_EQ(files_->create(path + "/f", 0600).error().code, Code::not_found);
  EXPECT_EQ(files_->make_folder(path + "/f", 0700).error().code, Code::not_found);
  EXPECT_EQ(files_->rename(path, folder_ / "to").error().code, Code::not_found);
  EXPECT_EQ(files_->set_attributes(path, 0600, {}).error().code, Code::not_found);
  EXPECT_EQ(files_->sync_folder(path).error().code, Code::not_found);
  EXPECT_EQ(files_->space(path).error().code, Code::not_found);
  EXPECT_EQ(files_->is_memory(path).error().code, Code::not_found);
  EXPECT_EQ(files_->lock(path + "/lock").error().code, Code::not_found);
  EXPECT_TRUE(files_->remove_file(path));
  EXPECT_TRUE(files_->remove_folder(path));
}

TEST_P(PosixFiles, BelowAFileThereIsNothing) {
  put(folder_ / "file", "");
  const std::string path = folder_ / "file/absent";
  EXPECT_EQ(files_->open(path).error().code, Code::not_found);
  EXPECT_EQ(files_->info(path).error().code, Code::not_found);
  EXPECT_EQ(files_->list(path).error().code, Code::not_found);
  EXPECT_EQ(files_->make_folder(path, 0700).error().code, Code::not_found);
  EXPECT_TRUE(files_->remove_file(path));
  EXPECT_TRUE(files_->remove_folder(path));
  for (const Error& error :
       {files_->list(folder_ / "file").error(), files_->remove_folder(folder_ / "file").error()}) {
    EXPECT_EQ(error.code, Code::io) << "the file itself is something: " << error.text;
    EXPECT_TRUE(mentions(error, "it is a file, not a directory"));
  }
}

TEST_P(PosixFiles, ALinkIsNotFollowed) {
  put(folder_ / "target", "kept");
  ASSERT_EQ(::mkdir((folder_ / "folder").c_str(), 0700), 0);
  const std::string link = folder_ / "link";
  for (const char* target : {"target", "folder", "dangling"}) {
    SCOPED_TRACE(target);
    ASSERT_EQ(::symlink((folder_ / target).c_str(), link.c_str()), 0);
    const Error opened = files_->open(link).error();
    EXPECT_EQ(opened.code, Code::untrusted);
    EXPECT_TRUE(mentions(opened, "cannot open " + link + ": it is a symbolic link"));
    EXPECT_EQ(files_->open_for_update(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->create(link, 0600).error().code, Code::untrusted);
    EXPECT_EQ(files_->view(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->list(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->make_folder(link, 0700).error().code, Code::untrusted);
    EXPECT_EQ(files_->set_attributes(link, 0600, {}).error().code, Code::untrusted);
    EXPECT_EQ(files_->sync_folder(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->space(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->is_memory(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->lock(link).error().code, Code::untrusted);
    EXPECT_EQ(files_->info(link)->kind, Kind::link);
    EXPECT_TRUE(files_->remove_file(link));
  }
  EXPECT_EQ(get(folder_ / "target"), "kept");
  EXPECT_EQ(*files_->list(folder_.path()), (std::vector<std::string>{"folder", "target"}));
}

TEST_P(PosixFiles, ALinkOnTheWayIsFollowed) {
  ASSERT_EQ(::mkdir((folder_ / "folder").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("folder", (folder_ / "link").c_str()), 0);
  EXPECT_TRUE(files_->create(folder_ / "link/f", 0600));
  EXPECT_TRUE(make_folders(*files_, folder_ / "link/a/b", 0700));
  EXPECT_EQ(*files_->list(folder_ / "folder"), (std::vector<std::string>{"a", "f"}));
}

TEST_P(PosixFiles, OnlyFilesAreOpened) {
  ASSERT_EQ(::mkdir((folder_ / "folder").c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder_ / "folder", folder_ / "pipe", std::string("/dev/null")}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(files_->open(path).error().code, Code::io);
    EXPECT_EQ(files_->open_for_update(path).error().code, Code::io);
    EXPECT_EQ(files_->create(path, 0600).error().code, Code::io);
    EXPECT_EQ(files_->view(path).error().code, Code::io);
    EXPECT_EQ(files_->lock(path).error().code, Code::io);
  }
  EXPECT_TRUE(mentions(files_->open(folder_ / "folder").error(), "not a file"));
  EXPECT_EQ(files_->info(folder_ / "pipe")->kind, Kind::other);
}

TEST_P(PosixFiles, ViewGivesAnyPart) {
  std::string content;
  for (int i = 0; i < 3000; ++i) content += std::to_string(i);
  put(folder_ / "f", content);
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view) << view.error().text;
  ASSERT_EQ((*view)->size(), content.size());
  Blob scratch(content.size());
  for (const std::size_t offset : {std::size_t{0}, std::size_t{4097}, content.size() - 10}) {
    const std::size_t length = std::min<std::size_t>(5000, content.size() - offset);
    const auto part = (*view)->at(offset, length, scratch);
    ASSERT_TRUE(part) << part.error().text;
    EXPECT_EQ(text(*part), content.substr(offset, length));
    EXPECT_EQ(part->data() != scratch.data(), *files_->is_memory(folder_.path()));
  }
  EXPECT_TRUE((*view)->at(content.size(), 0, {}));
}

TEST_P(PosixFiles, ViewFailsOutsideTheFile) {
  put(folder_ / "f", "0123456789");
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view);
  Blob scratch(100);
  const auto beyond = (*view)->at(5, 6, scratch);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::io);
  EXPECT_TRUE(mentions(beyond.error(), "it has 10 bytes where 6 were expected from byte 5"));
  EXPECT_FALSE((*view)->at(11, 0, scratch));
  EXPECT_FALSE((*view)->at(~std::uint64_t{0}, 2, scratch));
}

TEST(PosixView, FailsWithTooSmallAScratch) {
  const TemporaryFolder folder;
  const auto files = make_posix_files();
  if (*files->is_memory(folder.path())) GTEST_SKIP() << "views need no scratch where they map";
  put(folder / "f", "0123456789");
  Blob scratch(3);
  EXPECT_EQ((*files->view(folder / "f"))->at(0, 4, scratch).error().code, Code::bad_argument);
}

TEST_P(PosixFiles, ViewOfAnEmptyFile) {
  put(folder_ / "f", "");
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view) << view.error().text;
  EXPECT_EQ((*view)->size(), 0U);
  EXPECT_TRUE((*view)->at(0, 0, {}));
  Blob scratch(1);
  EXPECT_FALSE((*view)->at(0, 1, scratch));
}

TEST_P(PosixFiles, AFileCutShortUnderAViewIsAnError) {
  put(folder_ / "f", std::string(20000, 'x'));
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view);
  ASSERT_EQ(::truncate((folder_ / "f").c_str(), 100), 0);
  Blob scratch(20000);
  EXPECT_EQ((*view)->at(0, 100, scratch)->size(), 100U);
  const auto gone = (*view)->at(12288, 4096, scratch);
  ASSERT_FALSE(gone);
  EXPECT_TRUE(mentions(gone.error(), "it has 100 bytes where 4096 were expected"));
}

TEST_P(PosixFiles, BeyondFourGibibytesInASparseFile) {
  constexpr std::uint64_t far = (std::uint64_t{4} << 30) + 1;
  const auto file = files_->create(folder_ / "f", 0600);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->resize(std::uint64_t{5} << 30));
  ASSERT_TRUE((*file)->write_at(far, bytes("far out")));
  Blob part(9);
  ASSERT_TRUE((*file)->read_at(far - 1, part));
  EXPECT_EQ(text(part), std::string("\0far out\0", 9));
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view);
  EXPECT_EQ((*view)->size(), std::uint64_t{5} << 30);
  EXPECT_EQ(text(*(*view)->at(far, 7, part)), "far out");
}

TEST_P(PosixFiles, ReadingAHoleTakesNoSpace) {
  const auto file = files_->create(folder_ / "f", 0600);
  ASSERT_TRUE(file && (*file)->resize(1 << 20));
  Blob scratch(1 << 20);
  const auto view = files_->view(folder_ / "f");
  ASSERT_TRUE(view);
  const auto zeros = (*view)->at(0, scratch.size(), scratch);
  ASSERT_TRUE(zeros);
  EXPECT_EQ(Blob(zeros->begin(), zeros->end()), Blob(1 << 20));
  struct stat status = {};
  ASSERT_EQ(::stat((folder_ / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_P(PosixFiles, RoomPastTheEndHidesNoHole) {
  constexpr std::size_t half = 1 << 20;
  const std::string path = folder_ / "f";
  const auto file = files_->create(path, 0600);
  ASSERT_TRUE(file && (*file)->write_at(half, Blob(half, std::byte{7})));
  const int raw = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int allocated = ::fallocate(raw, FALLOC_FL_KEEP_SIZE, 2 * half, 4 * half);
  ::close(raw);
  if (allocated != 0) GTEST_SKIP() << "this file system reserves nothing";
  const auto blocks = [&] {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  Blob scratch(2 * half);
  const auto view = files_->view(path);
  ASSERT_TRUE(view);
  const auto read = (*view)->at(0, scratch.size(), scratch);
  ASSERT_TRUE(read);
  Blob expected(2 * half);
  std::fill(expected.begin() + half, expected.end(), std::byte{7});
  EXPECT_EQ(Blob(read->begin(), read->end()), expected);
  EXPECT_EQ(blocks(), before) << "a page that reading takes is SIGBUS where there is none";
}

TEST_P(PosixFiles, ListsSortedNames) {
  for (const char* name : {"b", "a", "C", ".hidden", "10", "9"}) put(folder_ / name, "");
  EXPECT_EQ(*files_->list(folder_.path()),
            (std::vector<std::string>{".hidden", "10", "9", "C", "a", "b"}));
  EXPECT_EQ(files_->list(folder_ / "a").error().code, Code::io);
}

TEST_P(PosixFiles, MakesAndRemovesFolders) {
  EXPECT_TRUE(files_->make_folder(folder_ / "d", 0700));
  EXPECT_TRUE(files_->make_folder(folder_ / "d", 0700));
  EXPECT_EQ(files_->info(folder_ / "d")->kind, Kind::folder);
  EXPECT_EQ(files_->info(folder_ / "d")->mode, 0700U);
  EXPECT_TRUE(files_->sync_folder(folder_ / "d"));
  put(folder_ / "d/f", "");
  EXPECT_EQ(files_->remove_folder(folder_ / "d").error().code, Code::io);
  EXPECT_EQ(files_->make_folder(folder_ / "d/f", 0700).error().code, Code::io);
  EXPECT_EQ(files_->remove_file(folder_ / "d").error().code, Code::io);
  EXPECT_EQ(files_->sync_folder(folder_ / "d/f").error().code, Code::io);
  EXPECT_TRUE(files_->remove_file(folder_ / "d/f"));
  EXPECT_TRUE(files_->remove_folder(folder_ / "d"));
  EXPECT_EQ(files_->info(folder_ / "d").error().code, Code::not_found);
}

TEST_P(PosixFiles, OnlyOneProcessMakesANewFolder) {
  EXPECT_TRUE(*files_->make_new_folder(folder_ / "d", 0700));
  EXPECT_FALSE(*files_->make_new_folder(folder_ / "d", 0700));
  put(folder_ / "f", "");
  EXPECT_FALSE(*files_->make_new_folder(folder_ / "f", 0700));
  EXPECT_EQ(files_->make_new_folder(folder_ / "none/d", 0700).error().code, Code::not_found);
}

/// With a descriptor opened before: a later one does not get errors that other syncs have received.
TEST_P(PosixFiles, AFileSystemIsSyncedThroughADescriptorOpenedBefore) {
  ASSERT_TRUE(files_->make_folder(folder_ / "d", 0700));
  const auto opened = files_->open_file_system(folder_ / "d");
  ASSERT_TRUE(opened) << opened.error().text;
  ASSERT_TRUE(files_->remove_folder(folder_ / "d"));
  if (*opened == nullptr) GTEST_SKIP() << "this file system does not promise it";
  EXPECT_TRUE((*opened)->sync());
}

TEST_P(PosixFiles, RenameReplaces) {
  put(folder_ / "a", "new");
  put(folder_ / "b", "old");
  EXPECT_TRUE(files_->rename(folder_ / "a", folder_ / "b"));
  EXPECT_EQ(get(folder_ / "b"), "new");
  EXPECT_EQ(*files_->list(folder_.path()), std::vector<std::string>{"b"});
  const Status failed = files_->rename(folder_ / "b", folder_ / "none/b");
  ASSERT_FALSE(failed);
  EXPECT_TRUE(mentions(failed.error(), folder_ / "b" + " to " + folder_ / "none/b"));
}

TEST_P(PosixFiles, KeepsAttributesToTheNanosecond) {
  put(folder_ / "f", "content");
  for (const FileTimes times : {FileTimes{1'600'000'000'123'456'789, 1'700'000'000'987'654'321},
                                FileTimes{0, 1}, FileTimes{-1, -1'500'000'000}}) {
    ASSERT_TRUE(files_->set_attributes(folder_ / "f", 0410, times));
    const auto info = files_->info(folder_ / "f");
    ASSERT_TRUE(info);
    EXPECT_EQ(info->kind, Kind::file);
    EXPECT_EQ(info->size, 7U);
    EXPECT_EQ(info->mode, 0410U);
    EXPECT_EQ(info->times.access_ns, times.access_ns);
    EXPECT_EQ(info->times.modify_ns, times.modify_ns);
    EXPECT_EQ(info->owner, ::geteuid());
    EXPECT_EQ(info->owner, files_->effective_user());
  }
  const auto open = files_->open(folder_ / "f");
  ASSERT_TRUE(open) << open.error().text;
  ASSERT_TRUE((*open)->set_attributes(0640, {5, -7}));
  const auto info = files_->info(folder_ / "f");
  EXPECT_EQ(info->mode, 0640U);
  EXPECT_EQ(info->times.access_ns, 5);
  EXPECT_EQ(info->times.modify_ns, -7);
}

TEST_P(PosixFiles, AFolderThatIsOpenReadsWhatIsBelowIt) {
  ASSERT_TRUE(make_folders(*files_, folder_ / "a/b", 0700));
  put(folder_ / "a/b/f", "content");
  ASSERT_EQ(::symlink("f", (folder_ / "a/b/link").c_str()), 0);
  const auto folder = files_->open_folder(folder_ / "a");
  ASSERT_TRUE(folder) << folder.error().text;
  EXPECT_EQ(text((*folder)->read_file("b/f", 7).value()), "content");
  EXPECT_EQ((*folder)->read_file("f", 7).error().code, Code::not_found);
  EXPECT_EQ((*folder)->read_file("b", 7).error().code, Code::io);
  EXPECT_EQ((*folder)->read_file("b/link", 7).error().code, Code::untrusted);
  const auto long_one = (*folder)->read_file("b/f", 6);
  EXPECT_EQ(long_one.error().code, Code::io);
  EXPECT_TRUE(mentions(long_one.error(), folder_ / "a/b/f")) << long_one.error().text;
  EXPECT_EQ(files_->open_folder(folder_ / "none").error().code, Code::not_found);
  EXPECT_EQ(files_->open_folder(folder_ / "a/b/link").error().code, Code::untrusted);
}

TEST_P(PosixFiles, KnowsAFolderUnderAnotherName) {
  ASSERT_TRUE(make_folders(*files_, folder_ / "a/b", 0700));
  ASSERT_EQ(::symlink("a", (folder_ / "link").c_str()), 0);
  const FileId b = files_->info(folder_ / "a/b")->id;
  EXPECT_EQ(b, files_->info(folder_ / "link/b")->id);
  EXPECT_NE(b, files_->info(folder_ / "a")->id);
  EXPECT_NE(b, files_->info("/proc")->id);
}

TEST_P(PosixFiles, ReturnsTheSpaceAndKindOfAStore) {
  const auto space = files_->space(folder_.path());
  ASSERT_TRUE(space);
  EXPECT_GT(space->total_bytes, 0U);
  EXPECT_LE(space->free_bytes, space->total_bytes);
  EXPECT_EQ(space->file_system, files_->space(folder_.path() + "/..")->file_system);
  EXPECT_NE(space->file_system, files_->space("/proc")->file_system);
  const bool asked_for_memory = *GetParam() != '\0';
  EXPECT_TRUE(!asked_for_memory || *files_->is_memory(folder_.path()));
  EXPECT_FALSE(*files_->is_memory("/proc"));
}

/// Acts as another user if this is root, as root has all permissions.
TEST_P(PosixFiles, ReportsWhetherAFolderMayBeChanged) {
  EXPECT_TRUE(files_->may_change(folder_.path()));
  EXPECT_EQ(files_->may_change(folder_ / "none").error().code, Code::not_found);
  put(folder_ / "f", "content");
  EXPECT_FALSE(files_->may_change(folder_ / "f"));
  ASSERT_TRUE(files_->make_folder(folder_ / "d", 0700));
  ASSERT_EQ(::chmod((folder_ / "d").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto ask = [&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) std::_Exit(2);
    const Status allowed = files_->may_change(folder_ / "d");
    std::_Exit(!allowed && mentions(allowed.error(), folder_ / "d") ? 0 : 1);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(0), "");
}

TEST_P(PosixFiles, OneLockAtATime) {
  const std::string path = folder_ / "lock";
  {
    const auto held = files_->lock(path);
    ASSERT_TRUE(held) << held.error().text;
    const auto second = files_->lock(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::busy);
    EXPECT_TRUE(mentions(second.error(), path));
  }
  EXPECT_TRUE(files_->lock(path));
}

TEST_P(PosixFiles, ALockEndsWithItsProcess) {
  const std::string path = folder_ / "lock";
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto held = files_->lock(path);
    const char answer = held ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(files_->lock(path).error().code, Code::busy);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(files_->lock(path));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_P(PosixFiles, FilesDoNotLeakIntoPrograms) {
  put(folder_ / "f", "content");
  const auto file = files_->open(folder_ / "f");
  const auto view = files_->view(folder_ / "f");
  const auto lock = files_->lock(folder_ / "lock");
  ASSERT_TRUE(file && view && lock);
  const std::string look = "! ls -l /proc/self/fd | grep -q " + folder_.path();
  EXPECT_EQ(std::system(look.c_str()), 0);
}

}  // namespace
}  // namespace cairn
