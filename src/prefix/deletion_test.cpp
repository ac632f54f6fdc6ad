// The rules of a deletion come before everything that it removes.
#include "prefix/deletion.hpp"

#include "prefix/scr_index.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

class BeginDeletion : public PrefixFixture {
 protected:
  /// Datasets 1 and 2; the record of the second has a newer format, so it may have the same files.
  void make_unread() {
    flush_well(1);
    flush_well(2);
    std::filesystem::remove(folder().listing());
    const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
    std::ofstream(DatasetFolder::record(folder().dataset(info_of(2))), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
  }

  Status begin(PrefixRank& rank, BesideUnread unread, Status before_ends) {
    const auto listed = share(
        rank.comm, rank.keeper ? find_in(rank.keeper->known().listing, info_of(1).uuid) : nullptr);
    if (!listed) return fail(Code::not_found, "not listed");
    return begin_deletion(rank.comm, rank.site, *listed, unread, [&](Keeper&) {
      ++removed_;
      return before_ends;
    });
  }

  int removed_ = 0;  ///< copies elsewhere
};

TEST_F(BeginDeletion, RemovesNoCopyIfARuleForbidsIt) {
  make_unread();
  run([&](PrefixRank& rank) {
    EXPECT_EQ(begin(rank, BesideUnread::refused, {}).error().code, Code::io);
    EXPECT_TRUE(!rank.keeper || removed_ == 0);
    EXPECT_TRUE(begin(rank, BesideUnread::begun, {}));
  });
  EXPECT_EQ(removed_, 1) << "on rank 0 only";
}

TEST_F(BeginDeletion, KeepsADatasetWhoseCopiesCannotBeRemoved) {
  flush_well(1);
  run([&](PrefixRank& rank) {
    const Status begun = begin(rank, BesideUnread::refused, fail(Code::busy, "in use"));
    EXPECT_EQ(begun.error().code, Code::busy);
  });
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(BeginDeletion, NotesADeletedDatasetOnceAndKeepsWhatTheListSaysOfIt) {
  flush_well(1);
  run([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    DatasetRecord record = rank.keeper->known().listing.front();
    EXPECT_TRUE(note_deleted(*rank.keeper, {record}));
    record.job_id = "another";
    EXPECT_TRUE(note_deleted(*rank.keeper, {record}));
    ASSERT_EQ(rank.keeper->known().deleted.size(), 1U);
    EXPECT_EQ(rank.keeper->known().deleted.front().job_id,
              rank.keeper->known().listing.front().job_id);
  });
}

/// A crash between the two leaves the dataset, or a note by which no run imports it again.
TEST_F(BeginDeletion, NotesADatasetThatScrMayStillHaveBeforeItIsTakenOut) {
  flush_well(1);
  std::filesystem::create_directories(prefix() + "/.scr");
  std::ofstream(scr_index_path(prefix())) << "an index";
  int taken_out = 0;
  run(
      [](PrefixRank& rank) {
        if (!rank.keeper) return;
        DatasetRecord record = rank.keeper->known().listing.front();
        record.info.flags |= flag_found;
        EXPECT_TRUE(rank.keeper->take_out_for_good(record));
      },
      [&](int, const FileOperation& operation) -> Status {
        if (operation.name != "rename" || operation.to.find("/deleted.") == std::string_view::npos)
          return {};
        ++taken_out;
        EXPECT_TRUE(std::filesystem::exists(folder().dropped(info_of(1)))) << operation.to;
        return {};
      });
  EXPECT_EQ(taken_out, 1);
}

/// A power failure must not bring it back.
TEST_F(BeginDeletion, SyncsTheDirectoryFromWhichADroppedDatasetIsTaken) {
  flush_well(1);
  bool is_taken = false;
  bool is_synced = false;
  run(
      [](PrefixRank& rank) {
        if (!rank.keeper) return;
        EXPECT_TRUE(rank.keeper->drop(info_of(1)));
        EXPECT_TRUE(rank.keeper->take_out(info_of(1)));
      },
      [&](int, const FileOperation& operation) -> Status {
        if (operation.name == "rename" && operation.path == folder().dropped(info_of(1)))
          is_taken = true;
        if (operation.name == "sync_folder" && operation.path == folder().dropped())
          is_synced = is_taken;
        return {};
      });
  EXPECT_TRUE(is_taken && is_synced);
}

}  // namespace
}  // namespace cairn
