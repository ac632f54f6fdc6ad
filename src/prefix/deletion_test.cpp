// The rules of a deletion come before everything that it removes.
#include "prefix/deletion.hpp"

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
    std::ofstream(PrefixFolder::record(folder().dataset(info_of(2))), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
  }

  Status begin(PrefixRank& rank, BesideUnread unread, Status before_ends) {
    const auto listed =
        share(rank.comm, rank.keeper ? find_in(rank.keeper->listing(), info_of(1).uuid) : nullptr);
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
    DatasetRecord record = rank.keeper->listing().front();
    EXPECT_TRUE(note_deleted(*rank.keeper, {record}));
    record.job_id = "another";
    EXPECT_TRUE(note_deleted(*rank.keeper, {record}));
    ASSERT_EQ(rank.keeper->deleted().size(), 1U);
    EXPECT_EQ(rank.keeper->deleted().front().job_id, rank.keeper->listing().front().job_id);
  });
}

}  // namespace
}  // namespace cairn
