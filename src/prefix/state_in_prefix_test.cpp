// The state of a dataset by all lists that may name it.
#include <gtest/gtest.h>

#include "prefix/contents.hpp"

namespace cairn {
namespace {

using enum PrefixState;

constexpr Uuid it{5, 1};

DatasetRecord record_in(PrefixState state) {
  DatasetRecord record;
  record.info.uuid = it;
  record.info.ranks = 1;
  record.settled = state != published;
  record.failed_us = state == failed ? 1 : 0;
  record.quarantined = state == quarantined;
  if (state == replaced) record.replaced_by = "dataset 6 (ckpt.6)";
  return record;
}

struct Lists {
  Listing listing;
  std::vector<UnreadDataset> unread;
  Dropped dropped;
  Listing attempts;
  Listing deleted;
  std::vector<BegunFolder> begun;

  PrefixState state() const {
    return state_in_prefix(it, listing, unread, dropped, attempts, deleted, begun);
  }
};

TEST(StateInPrefix, WhatNoListNamesIsAbsent) {
  Lists lists;
  DatasetRecord another = record_in(settled);
  another.info.uuid = {4, 1};
  lists.listing = lists.deleted = lists.attempts = lists.dropped.listing = {another};
  lists.begun = {{"folder", 1, another.info.uuid, planned}};
  EXPECT_EQ(lists.state(), absent);
}

TEST(StateInPrefix, TheIndexComesBeforeAllElse) {
  for (const PrefixState state : {published, settled, failed, replaced, quarantined}) {
    Lists lists;
    lists.listing = {record_in(state)};
    lists.deleted = lists.dropped.listing = {record_in(settled)};
    lists.begun = {{"folder", 1, it, deleting}, {"folder", 1, it, planned}};
    EXPECT_EQ(lists.state(), state) << name_of(state);
  }
}

TEST(StateInPrefix, WhatWasBegunComesBeforeWhatWasDroppedOrDeletedBefore) {
  Lists lists;
  lists.dropped.listing = lists.deleted = {record_in(settled)};
  lists.begun = {{"folder", 1, it, dropped}, {"folder", 2, it, planned}};
  EXPECT_EQ(lists.state(), planned);
  lists.begun.push_back({"folder", 1, it, deleting});
  EXPECT_EQ(lists.state(), deleting);
}

TEST(StateInPrefix, AFlushWithoutAPlanCountsForNothing) {
  Lists lists;
  lists.begun = {{"folder", 1, it, absent}};
  EXPECT_EQ(lists.state(), absent);
}

TEST(StateInPrefix, ARecordThatCannotBeReadNowComesBeforeWhatElseIsKnown) {
  Lists lists;
  lists.unread = {{"folder", it, "it is away", false}};
  lists.dropped.listing = lists.deleted = {record_in(settled)};
  EXPECT_EQ(lists.state(), unreadable);
  lists.attempts = {record_in(quarantined)};
  EXPECT_EQ(lists.state(), held_back) << "no restart takes it from the caches either";
}

TEST(StateInPrefix, WhatIsOnItsWayIsDroppedAlready) {
  Lists lists;
  lists.begun = {{"folder", 1, it, dropped}};
  EXPECT_EQ(lists.state(), dropped);
}

TEST(StateInPrefix, DroppedWithARecordThatCannotBeReadIsDroppedToo) {
  Lists lists;
  lists.dropped.damaged = {it};
  EXPECT_EQ(lists.state(), dropped);
  lists.dropped = {{}, {{"folder", it, "it is away", false}}, {}};
  EXPECT_EQ(lists.state(), dropped);
}

TEST(StateInPrefix, DeletedComesBeforeDropped) {
  Lists lists;
  lists.dropped.listing = lists.deleted = {record_in(settled)};
  EXPECT_EQ(lists.state(), deleted);
}

/// Neither copied again nor restarted from.
TEST(StateInPrefix, WhatRestartsHaveDiedFromIsHeldBackWhereverItIs) {
  Lists lists;
  lists.attempts = {record_in(settled)};
  EXPECT_EQ(lists.state(), absent);
  lists.attempts = {record_in(quarantined)};
  EXPECT_EQ(lists.state(), held_back);
  lists.dropped.listing = {record_in(settled)};
  EXPECT_EQ(lists.state(), quarantined);
  lists.listing = {record_in(settled)};
  EXPECT_EQ(lists.state(), quarantined);
}

/// Else a whole copy in a cache would never take the place of the damaged one.
TEST(StateInPrefix, WhatFailedAndIsHeldBackIsNotFlushed) {
  Lists lists;
  lists.attempts = {record_in(quarantined)};
  lists.listing = {record_in(failed)};
  EXPECT_EQ(lists.state(), held_back);
  EXPECT_FALSE(is_flushed(lists.state()));
}

TEST(StateInPrefix, QuarantineOutlivesTheIndex) {
  Lists lists;
  lists.dropped.listing = {record_in(quarantined)};
  EXPECT_EQ(lists.state(), quarantined);
}

}  // namespace
}  // namespace cairn
