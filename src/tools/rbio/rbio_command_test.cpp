#include "tools/rbio/rbio_command.hpp"

#include "base/checksum.hpp"
#include "files/hooked_files.hpp"
#include "rbio/done_marker.hpp"
#include "tools/rbio/rbio_fixture.hpp"

namespace cairn {
namespace {

TEST_F(RbioCommandTest, StepsAreListedInTheOrderWritten) {
  EXPECT_EQ(list(), 0) << logged();
  const std::size_t third = printed().find("step 3: whole, 4 ranks");
  const std::size_t ninth = printed().find("step 9: whole, 4 ranks");
  const std::size_t fifth = printed().find("step 5: whole, 4 ranks");
  EXPECT_TRUE(third < ninth && ninth < fifth && fifth != std::string::npos) << printed();
  EXPECT_EQ(list(true), 0);
  const Json steps = json()["steps"];
  ASSERT_EQ(steps.size(), 3U);
  const std::vector<int> order = {3, 9, 5};
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(steps[i]["step"], order[i]);
    EXPECT_EQ(steps[i]["state"], "whole");
    EXPECT_EQ(steps[i]["parts"], 2);
    EXPECT_EQ(steps[i]["ranks"], 4);
    EXPECT_EQ(steps[i]["attempt"], fmt::format("1-{}", i + 1));
    EXPECT_EQ(steps[i]["bytes"],
              fs::file_size(part(order[i], 0)) + fs::file_size(part(order[i], 1)));
  }
  EXPECT_TRUE(json()["unpublished"].empty());
}

TEST_F(RbioCommandTest, FieldsAreShownPerPartAndPerRank) {
  RbioCommand command;
  command.action = Action::show;
  command.path = series() + "/step.9";
  command.ranks = true;
  EXPECT_EQ(run(command), 0) << logged();
  EXPECT_TRUE(prints("momentum: <f4, 3 components, ") && prints("phase: <c16, 1 component, "));
  EXPECT_TRUE(prints("rank 1: 0 of density, 0 of momentum")) << printed();
  const std::string text = printed();
  command.json = true;
  EXPECT_EQ(run(command), 0);
  const Json parts = json()["parts"];
  ASSERT_EQ(parts.size(), 2U);
  std::uint64_t elements = 0, of_ranks = 0;
  for (const Json& one : parts) {
    elements += one["fields"][0]["elements"].get<std::uint64_t>();
    for (const Json& rank : one["counts"]) of_ranks += rank["elements"]["density"].get<int>();
    EXPECT_NE(text.find(fmt::format("density: <f8, 1 component, {} elements, {} bytes from byte {}",
                                    one["fields"][0]["elements"].get<int>(),
                                    one["fields"][0]["bytes"].get<int>(),
                                    one["fields"][0]["offset"].get<int>())),
              std::string::npos);
  }
  EXPECT_EQ(elements, rbio::total_of(0));
  EXPECT_EQ(of_ranks, rbio::total_of(0));
}

TEST_F(RbioCommandTest, APartAloneIsShown) {
  EXPECT_EQ(run(Action::show, part(9, 1)), 0) << logged();
  EXPECT_TRUE(prints("part 1 of 2, 2 of 4 ranks")) << printed();
  EXPECT_FALSE(prints("rank 3:"));
  EXPECT_EQ(run(Action::show, part(9, 1), true), 0);
  EXPECT_EQ(json()["parts"].size(), 1U);
  EXPECT_EQ(json()["parts"][0]["ranks_here"], 2);
  EXPECT_FALSE(json()["parts"][0].contains("counts"));
}

TEST_F(RbioCommandTest, AWholeSeriesIsVerified) {
  EXPECT_EQ(verify(), 0) << printed();
  EXPECT_TRUE(prints("step 9: whole: ") && prints("in 2 parts"));
  EXPECT_EQ(verify(true), 0);
  const Json found = json();
  for (const Json& step : found["steps"]) {
    EXPECT_EQ(step["state"], "whole");
    EXPECT_TRUE(step["damage"].empty());
    EXPECT_EQ(step["bytes"],
              fs::file_size(part(step["step"], 0)) + fs::file_size(part(step["step"], 1)));
  }
}

TEST_F(RbioCommandTest, OneStepIsVerified) {
  RbioCommand command;
  command.action = Action::verify;
  command.path = series();
  command.step = 3;
  flip_bit(part(9, 0), index_of(part(9, 0)).header.file_bytes - 1);
  EXPECT_EQ(run(command), 0);
  command.step = 9;
  EXPECT_EQ(run(command), 1);
  command.step = 4;
  EXPECT_EQ(run(command), 1);
  EXPECT_TRUE(logs("has no step 4; it has steps 3, 9, 5")) << logged();
}

TEST_F(RbioCommandTest, ADamagedBlockIsNamed) {
  const rbio::PartIndex index = index_of(part(9, 1));
  const rbio::Piece& piece = index.entries[1].pieces[0];
  ASSERT_GT(piece.bytes, rbio::block_bytes);
  flip_bit(part(9, 1), piece.offset + rbio::block_bytes);
  expect_damage(part(9, 1), piece.offset + rbio::block_bytes, piece.offset + piece.bytes - 1);
}

TEST_F(RbioCommandTest, DamagedBlocksThatFollowEachOtherAreOneRange) {
  const rbio::Piece piece = index_of(part(9, 1)).entries[1].pieces[0];
  flip_bit(part(9, 1), piece.offset);
  flip_bit(part(9, 1), piece.offset + piece.bytes - 1);
  expect_damage(part(9, 1), piece.offset, piece.offset + piece.bytes - 1);
}

TEST_F(RbioCommandTest, ADamagedGapIsNamed) {
  const auto gaps = rbio::gaps_of(index_of(part(9, 0)).header);
  ASSERT_GT(gaps.size(), 1U);
  flip_bit(part(9, 0), gaps.back().end - 1);
  expect_damage(part(9, 0), gaps.back().begin, gaps.back().end - 1);
}

TEST_F(RbioCommandTest, EveryDamagedPlaceIsNamed) {
  const rbio::PartIndex index = index_of(part(9, 0));
  const auto gaps = rbio::gaps_of(index.header);
  flip_bit(part(9, 0), gaps[0].begin);
  flip_bit(part(9, 0), gaps[1].begin);
  flip_bit(part(9, 0), index.header.fields[2].offset);
  flip_bit(part(9, 1), index_of(part(9, 1)).header.fields[3].offset);
  EXPECT_EQ(verify(true), 1);
  EXPECT_EQ(json()["steps"][1]["damage"].size(), 4U) << printed();
}

TEST_F(RbioCommandTest, ADamagedTableIsNamed) {
  const rbio::PartHeader header = index_of(part(9, 1)).header;
  flip_bit(part(9, 1), header.table_offset + 1);
  expect_damage(part(9, 1), header.table_offset, header.table_offset + header.table_bytes - 1);
  expect_not_whole("a checksum of its table does not match");
}

TEST_F(RbioCommandTest, ADamagedHeaderIsFound) {
  flip_bit(part(9, 0), 100);
  expect_not_whole(part(9, 0) + " is damaged: the checksum of its header does not match");
}

TEST_F(RbioCommandTest, ADamagedHeaderOfALaterPartIsFound) {
  flip_bit(part(9, 1), 3);
  expect_not_whole(part(9, 1) + " is damaged: it does not begin as a file of rbIO");
}

TEST_F(RbioCommandTest, ATruncatedPartIsFound) {
  const auto bytes = fs::file_size(part(9, 1));
  for (const std::uint64_t size : {bytes - 1, std::uint64_t{4096}, std::uint64_t{7}}) {
    fs::resize_file(part(9, 1), size);
    expect_not_whole(fmt::format("{} is damaged: it has {} bytes", part(9, 1), size));
  }
}

TEST_F(RbioCommandTest, APartThatIsTooLongIsFound) {
  const auto bytes = fs::file_size(part(9, 0));
  fs::resize_file(part(9, 0), bytes + 1);
  expect_not_whole(fmt::format("it has {} bytes, and {} were written", bytes + 1, bytes));
}

TEST_F(RbioCommandTest, AMissingPartIsFound) {
  fs::remove(part(9, 1));
  expect_not_whole(part(9, 1) + " is missing");
}

TEST_F(RbioCommandTest, AMissingFirstPartIsFound) {
  fs::remove(part(9, 0));
  expect_not_whole(part(9, 0) + " is missing");
}

TEST_F(RbioCommandTest, PartsOfDifferentAttemptsAreFound) {
  fs::copy_file(part(9, 1), folder_ / "older");
  rbio::write_steps(*files_, series(), shape_, {9});
  fs::copy_file(folder_ / "older", part(9, 1), fs::copy_options::overwrite_existing);
  expect_not_whole(part(9, 1) + " does not belong to " + part(9, 0));
}

TEST_F(RbioCommandTest, APartTooManyIsFound) {
  fs::copy_file(part(9, 1), part(9, 2));
  EXPECT_EQ(verify(), 1);
  EXPECT_TRUE(prints(part(9, 2) + " does not belong to the step, which has 2 parts")) << printed();
}

TEST_F(RbioCommandTest, AnEmptyDirectoryOfAStepIsDamaged) {
  fs::remove(part(9, 0));
  fs::remove(part(9, 1));
  EXPECT_EQ(verify(), 1);
  EXPECT_TRUE(prints(part(9, 0) + " is missing")) << printed();
  EXPECT_EQ(run(Action::show, series() + "/step.9"), 1);
  EXPECT_TRUE(logs("holds no part of an rbIO step")) << logged();
}

TEST_F(RbioCommandTest, APartOfANewerFormatIsNotCalledDamaged) {
  rbio::PartHeader header = index_of(part(9, 0)).header;
  Blob preamble = rbio::encode_header(header);
  preamble.resize(rbio::preamble_bytes);
  preamble[8] = std::byte{2};  // the version
  const std::uint32_t checksum = crc32c(Bytes(preamble).first(28));
  std::memcpy(preamble.data() + 28, &checksum, sizeof checksum);
  std::fstream(part(9, 0), std::ios::in | std::ios::out | std::ios::binary)
      .write(reinterpret_cast<const char*>(preamble.data()), rbio::preamble_bytes);
  EXPECT_EQ(verify(true), 1);
  EXPECT_EQ(json()["steps"][0]["state"], "newer") << printed();
  EXPECT_EQ(verify(), 1);
  EXPECT_TRUE(prints("step 9: newer") && prints("has format 2")) << printed();
}

TEST_F(RbioCommandTest, AnErrorOfReadingIsNotCalledDamage) {
  const std::uint64_t data = index_of(part(9, 1)).header.fields[0].offset;
  std::uint64_t reads = 0;
  const auto failing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "read" && operation.path == part(9, 1) && operation.bytes > data &&
        ++reads == 1)
      return fail(Code::io, "cannot read {}: device error", operation.path);
    return {};
  });
  RbioCommand command;
  command.action = Action::verify;
  command.path = series();
  command.json = true;
  EXPECT_EQ(run(command, *failing), 1);
  ASSERT_EQ(json()["steps"][1]["state"], "unread") << printed();
  EXPECT_EQ(json()["steps"][1]["damage"].size(), 1U);
  EXPECT_EQ(json()["steps"][1]["damage"][0]["file"], part(9, 1));
}

TEST_F(RbioCommandTest, AStepThatCannotBeReadIsListedAsThat) {
  const auto failing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "open" && operation.path == part(9, 0))
      return fail(Code::io, "cannot open {}: permission denied", operation.path);
    return {};
  });
  RbioCommand command;
  command.path = series();
  EXPECT_EQ(run(command, *failing), 1);
  EXPECT_TRUE(prints("step 9: NOT WHOLE") && prints("unread: cannot open " + part(9, 0)));
  command = extraction("density");
  EXPECT_EQ(run(command, *failing), 0) << logged();
  EXPECT_TRUE(logs("step 9 is passed over: cannot open")) << logged();
}

TEST_F(RbioCommandTest, AnEmptySeriesHasNoStep) {
  rbio::write_steps(*files_, folder_ / "empty", shape_, {});
  for (const bool json : {false, true}) {
    EXPECT_EQ(run(Action::list, folder_ / "empty", json), 0) << logged();
    EXPECT_EQ(run(Action::verify, folder_ / "empty", json), 0) << logged();
  }
  RbioCommand command = extraction("density");
  command.path = folder_ / "empty";
  EXPECT_EQ(run(command), 1);
  EXPECT_TRUE(logs("has no whole step")) << logged();
}

TEST_F(RbioCommandTest, WhatIsNoSeriesIsNamed) {
  fs::create_directory(folder_ / "other");
  fs::create_directory_symlink(series(), folder_ / "link");
  const std::vector<std::pair<std::string, std::string>> all = {
      {folder_ / "other", "is no rbIO series"},
      {folder_ / "gone", "gone does not exist"},
      {folder_ / "link", "is a symbolic link"},
      {part(9, 0), "is no directory"},
      {series() + "/step.9", "is one step of a series; give the series, " + series()}};
  for (const auto& [path, words] : all) {
    for (const Action action : {Action::list, Action::verify}) {
      EXPECT_EQ(run(action, path), 1);
      EXPECT_TRUE(logs(words)) << logged();
      EXPECT_EQ(printed(), "");
    }
  }
  EXPECT_EQ(run(Action::show, folder_ / "gone"), 1);
  EXPECT_TRUE(logs("gone does not exist"));
}

TEST_F(RbioCommandTest, AStepThatIsBeingWrittenIsListedAsUnpublished) {
  const std::string work = series() + "/.rbio/attempt.2-1.11";
  fs::create_directories(work);
  std::ofstream(work + "/part.0.rbio") << "0123456789";
  EXPECT_EQ(list(), 0) << logged();
  EXPECT_TRUE(prints("not published: step 11: unfinished, 10 B in 1 part, attempt 2-1: "))
      << printed();
  EXPECT_EQ(list(true), 0);
  EXPECT_EQ(json()["unpublished"][0]["writers"], nullptr);
  const auto mark = [&](int writer) {
    return write_file_atomically(*files_, fmt::format("{}/done.{}", work, writer),
                                 encode(rbio::DoneMarker{2}), false);
  };
  ASSERT_TRUE(mark(1));
  EXPECT_EQ(list(), 0);
  EXPECT_TRUE(prints("step 11: unfinished") && prints("1 of 2 writers done")) << printed();
  ASSERT_TRUE(mark(0));
  fs::create_directory(work + "/publishing");
  EXPECT_EQ(list(), 0);
  EXPECT_TRUE(prints("step 11: complete") && prints("2 of 2 writers done")) << printed();
  EXPECT_EQ(list(true), 0);
  const Json one = json()["unpublished"][0];
  EXPECT_EQ(one["step"], 11);
  EXPECT_EQ(one["state"], "complete");
  EXPECT_EQ(one["bytes"], 10);
  EXPECT_EQ(one["parts"], 1);
  EXPECT_EQ(one["path"], work);
  EXPECT_EQ(verify(), 0) << "what is not published is not verified";
}

TEST_F(RbioCommandTest, LeftoversAreListed) {
  fs::rename(series() + "/step.3", series() + "/.rbio/removed.3");
  fs::create_directory(series() + "/.rbio/something");
  EXPECT_EQ(list(), 0);
  EXPECT_TRUE(prints("not published: step 3: removed, ")) << printed();
  EXPECT_EQ(list(true), 0);
  EXPECT_EQ(json()["steps"].size(), 2U);
  EXPECT_EQ(json()["unpublished"].size(), 1U);
  EXPECT_EQ(json()["unpublished"][0]["attempt"], nullptr);
}

TEST_F(RbioCommandTest, AStepThatARunPublishesMeanwhileIsListedOnce) {
  const std::string work = series() + "/.rbio/attempt.1-2.9";
  fs::rename(series() + "/step.9", work);
  bool was_seen = false;
  const auto racing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "list" && operation.path == work) was_seen = true;
    if (operation.name == "list" && operation.path == series())
      fs::rename(work, series() + "/step.9");
    return {};
  });
  RbioCommand command;
  command.path = series();
  command.json = true;
  EXPECT_EQ(run(command, *racing), 0) << printed();
  EXPECT_TRUE(was_seen);
  EXPECT_EQ(json()["steps"].size(), 3U);
  EXPECT_TRUE(json()["unpublished"].empty()) << printed();
}

TEST_F(RbioCommandTest, NothingInTheSeriesIsChangedAndNoLockIsTaken) {
  const auto watching = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    const std::string name(operation.name);
    const bool reads =
        name == "open" || name == "info" || name == "list" || name == "read" || name == "size";
    EXPECT_TRUE(reads || operation.path.starts_with(output()) || name == "sync_folder")
        << name << " " << operation.path;
    return {};
  });
  for (const Action action : {Action::list, Action::verify, Action::show}) {
    RbioCommand command;
    command.action = action;
    command.path = action == Action::show ? series() + "/step.9" : series();
    EXPECT_EQ(run(command, *watching), 0) << logged();
  }
  EXPECT_EQ(run(extraction("density"), *watching), 0) << logged();
}

TEST_F(RbioCommandTest, AStepThatARunDeletesMeanwhileIsLeftOut) {
  bool deleted = false;
  const auto racing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "open" && operation.path == part(9, 1) && !deleted) {
      deleted = true;
      EXPECT_TRUE(remove_all(*files_, series() + "/step.9"));
    }
    return {};
  });
  RbioCommand command;
  command.path = series();
  command.json = true;
  EXPECT_EQ(run(command, *racing), 0) << printed();
  EXPECT_EQ(json()["steps"].size(), 2U);
}

TEST_F(RbioCommandTest, AStepThatARunWritesAgainMeanwhileIsReadAgain) {
  bool replaced = false;
  const auto racing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "open" && operation.path == part(9, 1) && !replaced) {
      replaced = true;
      rbio::write_steps(*files_, series(), shape_, {9});
    }
    return {};
  });
  RbioCommand command;
  command.path = series();
  for (const Action action : {Action::list, Action::verify}) {
    command.action = action;
    replaced = false;
    EXPECT_EQ(run(command, *racing), 0) << printed();
    EXPECT_TRUE(replaced);
  }
}

}  // namespace
}  // namespace cairn
