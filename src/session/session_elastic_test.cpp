// Restarts with another number of ranks, and files that all ranks read.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

const Nodes six = {"n0", "n0", "n1", "n1", "n2", "n2"};
const Nodes one = {"n0"};

class ElasticBed : public PrefixJobBed {
 public:
  ElasticBed() {
    settings.elastic = true;
    settings.flush_interval = 1;
  }

  /// Restarts; every rank reads what every one of the `writers` has written. From which dataset.
  int restart_from(std::size_t writers, const Nodes& nodes, const RankMain& more = nullptr) {
    int from = 0;
    std::ofstream(settings.prefix + "/nobody's") << "no rank's";
    run_well(nodes, [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      ASSERT_TRUE(name) << name.error().text;
      if (!*name) return;
      ASSERT_TRUE(rank.session->start_restart());
      const int dataset = std::stoi((*name)->substr((*name)->rfind('.') + 1));
      for (int writer = 0; writer < static_cast<int>(writers); ++writer)
        for (int number = 0; number < files_per_rank; ++number) {
          const auto path = rank.session->route_file(file(dataset, writer, number));
          ASSERT_TRUE(path) << path.error().text;
          ASSERT_TRUE(read_all(*path) == content_of(writer, number, dataset)) << *path;
        }
      const auto nobodys = rank.session->route_file(settings.prefix + "/nobody's");
      ASSERT_FALSE(nobodys);
      EXPECT_EQ(nobodys.error().code, Code::not_found);
      EXPECT_TRUE(rank.session->complete_restart(true));
      if (rank.number() == 0) from = dataset;
      if (more) more(rank);
    });
    return from;
  }
};

TEST(SessionElastic, FewerMoreAndOne) {
  ElasticBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  const auto writes_on = [](JobRank& rank) {
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->finalize());
  };
  EXPECT_EQ(bed.restart_from(8, six, writes_on), 2);
  EXPECT_EQ(bed.listed()[0], "ckpt.3");
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart_from(6, four_nodes()), 3);
  EXPECT_EQ(bed.restart_from(6, one), 3);
  bed.settings.fetch_bypass = true;
  EXPECT_EQ(bed.restart_from(6, four_nodes()), 3);
}

TEST(SessionElastic, WhatTheCachesHaveTooIsReadInThePrefixDirectory) {
  ElasticBed bed;
  bed.write_and_finalize({1, 2});
  EXPECT_EQ(bed.restart_from(8, six, [](JobRank& rank) { rank.expect_written(3); }), 2);
  EXPECT_EQ(bed.parts("n1"), bed.parts("n1", 3)) << "what it supersedes is gone";
  EXPECT_EQ(bed.restart(six), 3) << "from the cache";
}

/// Eight ranks have written; four that have all their nodes restart.
class CachedElastic : public ElasticBed {
 public:
  const Nodes four = {"n0", "n1", "n2", "n3"};

  CachedElastic() { settings.flush_interval = 2; }

  /// Whether the restart begins, with `hook` on this rank while it does.
  static Status restart_with(JobRank& rank, const FileHook& hook) {
    const auto offered = rank.session->have_restart();
    EXPECT_EQ(offered.value(), "ckpt.3");
    rank.hook = hook;
    const auto started = rank.session->start_restart();
    rank.hook = nullptr;
    return started ? Status{} : Status(tl::unexpected(started.error()));
  }
};

TEST(SessionElastic, WhatOnlyTheCachesHaveIsCopiedWhenTheRestartBegins) {
  CachedElastic bed;
  bed.write(four_nodes(), {1, 2, 3});
  ASSERT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.run_well(bed.four, [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
    rank.comm.barrier();
    EXPECT_EQ(bed.listed(), Names({"ckpt.2"})) << "to ask copies nothing";
    rank.comm.barrier();
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3") << "asked again";
  });
  EXPECT_EQ(bed.restart_from(8, bed.four, [](JobRank& rank) { rank.expect_written(4); }), 3);
  EXPECT_EQ(bed.listed(), Names({"ckpt.4", "ckpt.3", "ckpt.2"}));
  bed.expect_own_files(3);
  EXPECT_EQ(bed.parts("n1", 3), std::vector<std::string>()) << "a newer one is complete";
}

TEST(SessionElastic, TheLastAttemptSaysUntilWhenItComesBackAlsoFromWhereItIsCopiedTo) {
  CachedElastic bed;
  bed.settings.restart_attempts = 1;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_EQ(bed.restart_from(8, bed.four), 3);
  EXPECT_EQ(bed.listed().at(0), "ckpt.3");
  EXPECT_TRUE(bed.logs("if only the caches have it, until a newer checkpoint is complete"))
      << bed.log_text();
}

TEST(SessionElastic, EightToSixEightToOneAndBackFromTheCaches) {
  const Nodes on_one_node(8, "n0");
  CachedElastic bed;
  bed.settings.flush_interval = 0;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.write(on_one_node, {1});
  EXPECT_EQ(bed.restart_from(8, Nodes(6, "n0"), [](JobRank& rank) { rank.expect_written(2); }), 1);
  EXPECT_EQ(bed.listed(), Names({"ckpt.1"}));
  EXPECT_EQ(bed.restart_from(6, on_one_node, [](JobRank& rank) { rank.expect_written(3); }), 2);
  EXPECT_EQ(bed.restart_from(8, one, [](JobRank& rank) { rank.expect_written(4); }), 3);
  EXPECT_EQ(bed.restart_from(1, four_nodes()), 4);
  EXPECT_EQ(bed.listed(), Names({"ckpt.4", "ckpt.3", "ckpt.2", "ckpt.1"}));
}

TEST(SessionElastic, APartThatIsNotThereIsReportedAndNothingIsBegunInItsPlace) {
  CachedElastic bed;
  bed.write(four_nodes(), {1, 2, 3});
  bed.run_well(six, [](JobRank& rank) {
    for (const auto& found : {rank.session->have_restart(), rank.session->have_restart(),
                              rank.session->start_restart().map(
                                  [](const auto& name) { return std::optional(name); })}) {
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, Code::wrong_ranks);
    }
    EXPECT_FALSE(rank.session->start_checkpoint());
  });
  EXPECT_TRUE(bed.logs("no node of this run has the part of rank 6")) << bed.log_text();
  const std::string said = bed.log_text();
  EXPECT_EQ(said.find("cannot be copied"), said.rfind("cannot be copied")) << said;
  EXPECT_EQ(bed.restart(four_nodes()), 3) << "with the number that wrote it";
}

TEST(SessionElastic, WhatCannotBeCopiedIsOutAndTheNextOlderIsOffered) {
  for (const bool damaged : {true, false}) {
    CachedElastic bed;
    bed.write(four_nodes(), {1, 2, 3});
    bed.save("whole");
    if (damaged) flip_bit(bed.parts("n2", 3)[0] + "/files/ckpt.3/rank 4.0");
    const FileHook full = [&](const FileOperation& operation) -> Status {
      const bool copy = operation.name == "write" &&
                        operation.path.find("/ckpt.3/.cairn.") != std::string_view::npos;
      return copy && !damaged ? fail(Code::no_space, "injected: cannot write {}", operation.path)
                              : Status{};
    };
    bed.run_well(bed.four, [&](JobRank& rank) {
      const Status begun = CachedElastic::restart_with(rank, rank.number() == 2 ? full : nullptr);
      ASSERT_FALSE(begun);
      EXPECT_EQ(begun.error().code, damaged ? Code::corrupt : Code::no_space);
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    });
    EXPECT_TRUE(bed.logs("start it with 8 ranks")) << bed.log_text();
    EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
    EXPECT_EQ(bed.restart(four_nodes()), 3) << "which loses nothing, and repairs it";
    bed.bring_back("whole");
    EXPECT_EQ(bed.restart_from(8, bed.four), 3) << "nor does it matter the next time";
  }
}

TEST(SessionElastic, ItIsRefusedWhereNothingOlderIsLeft) {
  CachedElastic bed;
  bed.settings.flush_interval = 0;
  bed.write(four_nodes(), {3});
  flip_bit(bed.parts("n2")[0] + "/files/ckpt.3/rank 4.0");
  const auto refused = [](JobRank& rank, Code why) {
    EXPECT_FALSE(CachedElastic::restart_with(rank, nullptr));
    for (int asked = 0; asked < 2; ++asked) {
      const auto found = rank.session->have_restart();
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, why);
    }
    EXPECT_FALSE(rank.session->start_checkpoint()) << "nothing is begun in its place";
  };
  bed.run_well(bed.four, [&](JobRank& rank) { refused(rank, Code::wrong_ranks); });
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.run_well(bed.four, [&](JobRank& rank) { refused(rank, Code::corrupt); });
  bed.settings.on_fetch_fail = OnFetchFail::fresh;
  bed.run_well(bed.four, [&](JobRank& rank) {
    EXPECT_FALSE(CachedElastic::restart_with(rank, nullptr));
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
  });
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH: the caches have dataset 1 (ckpt.3)"))
      << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 3) << "which repairs it";
}

TEST(SessionElastic, WhatWasCopiedButHasNoNamesYetIsReadNextTime) {
  CachedElastic bed;
  bed.write(four_nodes(), {1, 2, 3});
  bed.run_well(bed.four, [&](JobRank& rank) {
    const Status begun = CachedElastic::restart_with(rank, [](const FileOperation& operation) {
      const bool naming =
          operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
      return naming ? Status(fail(Code::io, "injected: cannot rename {}", operation.path))
                    : Status{};
    });
    EXPECT_FALSE(begun);
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
  });
  EXPECT_TRUE(bed.logs("all of it is copied")) << bed.log_text();
  EXPECT_EQ(bed.restart_from(8, bed.four), 3);
  bed.expect_own_files(3);
}

/// At every call that rank 0 makes in the prefix directory, and at every one that another does:
/// they make few, so each of the two has a count of its own.
TEST(SessionElastic, ACrashWhileItIsCopiedLosesNothing) {
  constexpr int stride = sanitized ? 13 : 3;
  for (const int victim : {0, 1}) {
    bool crashed = true;
    for (int step = 0; crashed; step += stride) {
      CachedElastic bed;
      bed.settings.flush_interval = 0;
      bed.write(four_nodes(), {1});
      crashed = !bed.run(bed.four, [&](JobRank& rank) {
        ASSERT_TRUE(rank.init());
        if (rank.number() == victim) rank.hook = crash_after(step, bed.settings.prefix);
        if (rank.session->have_restart()) (void)rank.session->start_restart();
        rank.hook = nullptr;
      });
      ASSERT_EQ(bed.restart_from(8, bed.four), 1) << victim << " " << step;
      ASSERT_EQ(bed.listed(), Names({"ckpt.1"})) << victim << " " << step;
    }
  }
}

/// A cache with the output 2 of eight ranks, which is in the prefix directory no more than
/// checkpoint 1 is.
class OutputOfEight : public CachedElastic {
 public:
  const FileHook away = [this](const FileOperation& operation) -> Status {
    const bool there = operation.path.starts_with(settings.prefix);
    return there ? fail(Code::io, "injected: {} is away", operation.path) : Status{};
  };

  OutputOfEight() {
    EXPECT_TRUE(run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      rank.expect_written(1);
      rank.hook = away;
      EXPECT_FALSE(rank.write(2, flag_output));
      rank.hook = nullptr;
    }));
    EXPECT_EQ(listed(), Names());
  }
};

TEST(SessionElastic, OutputsOfAnotherNumberOfRanksGetOut) {
  OutputOfEight bed;
  bed.run_well(bed.four,
               [](JobRank& rank) { EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1"); });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.expect_own_files(2);
}

TEST(SessionElastic, OutputsOfAnotherNumberOfRanksStayWhereNoTimeIsLeft) {
  OutputOfEight bed;
  bed.settings.end_time_s = bed.clock->now_us() / 1'000'000 + 9;
  EXPECT_TRUE(bed.run(bed.four, [&](JobRank& rank) {
    rank.hook = bed.away;
    ASSERT_TRUE(rank.init());
    rank.hook = nullptr;
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
    EXPECT_NE(ended.error().text.find("dataset 2 "), std::string::npos) << ended.error().text;
  }));
  EXPECT_EQ(bed.listed(), Names());
  EXPECT_TRUE(bed.logs("there is no time left to copy it")) << bed.log_text();
}

TEST(SessionElastic, OneInQuarantineIsPassedOver) {
  CachedElastic bed;
  bed.settings.restart_attempts = 1;
  bed.write(four_nodes(), {1, 2, 3});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart().value());
    ASSERT_TRUE(rank.session->start_restart());
  });
  bed.run_well(bed.four,
               [](JobRank& rank) { EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2"); });
  EXPECT_TRUE(bed.logs("ckpt.3) is not used: it is in quarantine")) << bed.log_text();
}

TEST(SessionElastic, ARestartFromACopyThatIsRejectedIsOutToo) {
  CachedElastic bed;
  bed.write(four_nodes(), {1, 2, 3});
  bed.run_well(bed.four, [](JobRank& rank) {
    EXPECT_TRUE(CachedElastic::restart_with(rank, nullptr));
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 1));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
  });
}

TEST(SessionElastic, DamageIsFoundInWhateverPartAndTheNextOlderTaken) {
  for (const int writer : {0, 5, 7}) {
    ElasticBed bed;
    bed.write_and_finalize({1, 2});
    bed.lose_all_nodes();
    flip_bit(bed.file(2, writer, 1));
    EXPECT_EQ(bed.restart_from(8, six), 1) << writer;
    EXPECT_TRUE(bed.logs(fmt::format("rank {}.1", writer))) << bed.log_text();
  }
}

TEST(SessionElastic, ARestartThatIsRejectedIsOut) {
  ElasticBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  bed.run_well(six, [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    ASSERT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 1));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
  });
  EXPECT_EQ(bed.restart_from(8, six), 1);
}

/// Rank 3 of a job whose other ranks have only their own files.
class BroadcastBed : public PrefixJobBed {
 public:
  BroadcastBed() { settings.broadcast = {"input/*"}; }

  std::string input() const { return settings.prefix + "/input/mesh"; }

  void write_with_input(int dataset) {
    run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output(fmt::format("ckpt.{}", dataset), flag_checkpoint));
      EXPECT_TRUE(rank.write_files(dataset));
      if (rank.number() == 3) {
        const auto path = rank.session->route_file(input());
        ASSERT_TRUE(path);
        std::ofstream(*path) << "of all " << dataset;
      }
      EXPECT_TRUE(rank.session->complete_output(true));
    });
  }

  /// What places a copy for all ranks to read comes to `end`.
  static FileHook at_copy(const std::function<Status()>& end) {
    return [end](const FileOperation& operation) -> Status {
      const bool copy = operation.name == "create" &&
                        operation.path.find("/broadcast.") != std::string_view::npos;
      return copy ? end() : Status{};
    };
  }
  static FileHook no_room() {
    return at_copy([] { return fail(Code::no_space, "injected: no room for a copy"); });
  }

  std::vector<std::string> broadcasts(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(job_folder(name)))
      if (entry.path().filename().string().starts_with("broadcast.")) found.push_back(entry.path());
    return found;
  }
};

TEST(SessionBroadcast, EveryRankReadsItOnItsNodeUntilTheRestartIsComplete) {
  BroadcastBed bed;
  bed.write_with_input(1);
  bed.lose("n1");
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart().value());
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(bed.input());
    ASSERT_TRUE(path) << path.error().text;
    EXPECT_EQ(read_all(*path), "of all 1");
    EXPECT_TRUE(path->starts_with(bed.node(rank.settings.node_name))) << *path;
    rank.expect_files(1);
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->complete_restart(true));
    rank.comm.barrier();
    EXPECT_TRUE(bed.broadcasts(rank.settings.node_name).empty());
  });
}

TEST(SessionBroadcast, WhereFilesAreReadInPlaceEveryRankKnowsThoseOfThisCheckpoint) {
  BroadcastBed bed;
  bed.settings.flush_interval = 1;
  bed.write_with_input(1);
  const std::string of_none = bed.settings.prefix + "/input/of_none";
  std::ofstream(of_none) << "no rank's";
  bed.lose_all_nodes();
  bed.settings.fetch_bypass = true;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart().value());
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(bed.input());
    ASSERT_TRUE(path) << path.error().text;
    EXPECT_EQ(*path, bed.input());
    rank.expect_files(1);
    const int other = (rank.number() + 1) % 8;
    EXPECT_EQ(rank.session->route_file(bed.file(1, other)).value(), bed.file(1, other));
    const auto refused = rank.session->route_file(of_none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::not_found) << refused.error().text;
    EXPECT_TRUE(rank.session->complete_restart(true));
  });
}

/// Each rank writes `header` in a folder of its own, rank 0 also one that all ranks read.
class HeaderBed : public PrefixJobBed {
 public:
  HeaderBed() {
    settings.broadcast = {"*/global/*"};
    settings.flush_interval = 1;
    run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->start_output("ckpt.5", flag_checkpoint));
      const auto own = rank.session->route_file(header(fmt::format("r{}", rank.number())));
      std::ofstream(*own) << "of rank " << rank.number();
      if (rank.number() == 0)
        std::ofstream(*rank.session->route_file(header("global"))) << "of all";
      EXPECT_TRUE(rank.session->complete_output(true));
    });
  }

  std::string header(const std::string& folder) const {
    return fmt::format("{}/step.5/{}/header", settings.prefix, folder);
  }

  void expect_both(JobRank& rank) const {
    const auto of_all = rank.session->route_file(header("global"));
    ASSERT_TRUE(of_all) << of_all.error().text;
    EXPECT_EQ(read_all(*of_all), "of all") << *of_all;
    const auto own = rank.session->route_file(header(fmt::format("r{}", rank.number())));
    ASSERT_TRUE(own) << own.error().text;
    EXPECT_EQ(read_all(*own), fmt::format("of rank {}", rank.number()));
  }
};

TEST(SessionBroadcast, TheFileOfAllIsNotTakenForARanksOwnOfTheSameLastName) {
  HeaderBed bed;
  for (const bool in_place : {false, true}) {
    bed.settings.fetch_bypass = in_place;
    if (in_place) bed.lose_all_nodes();
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->have_restart().value());
      ASSERT_TRUE(rank.session->start_restart());
      bed.expect_both(rank);
      EXPECT_TRUE(rank.session->complete_restart(true));
    });
  }
}

/// Programs of 2009 begin no restart, so no copies of it are made for them.
TEST(SessionBroadcast, OutsideARestartARanksOwnOfTheSameLastNameIsNotHandedOutForIt) {
  HeaderBed bed;
  for (const bool in_place : {false, true}) {
    bed.settings.fetch_bypass = in_place;
    if (in_place) bed.lose_all_nodes();
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.session->have_restart().value());
      const std::string found = rank.session->route_loaded(bed.header("global"));
      if (rank.number() == 0 || in_place)
        EXPECT_EQ(read_all(found), "of all") << found;
      else
        EXPECT_EQ(found, bed.header("global"));
      const std::string own = bed.header(fmt::format("r{}", rank.number()));
      EXPECT_EQ(read_all(rank.session->route_loaded(own)),
                fmt::format("of rank {}", rank.number()));
    });
  }
}

TEST(SessionBroadcast, WhatADeadRestartHasLeftGoes) {
  BroadcastBed bed;
  bed.write_with_input(1);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart().value());
    ASSERT_TRUE(rank.session->start_restart());
  });
  EXPECT_EQ(bed.broadcasts("n2").size(), 1U);
  const Nodes moved = {"n0", "n1", "n2", "n3", "n0", "n1", "n2", "n3"};
  bed.run_well(moved, [&](JobRank& rank) {
    rank.comm.barrier();
    EXPECT_TRUE(bed.broadcasts(rank.settings.node_name).empty());
  });
}

TEST(SessionBroadcast, WhereThereIsNoRoomAndNoOtherCheckpointTheRunDoesNotStartFromScratch) {
  for (const OnFetchFail on_fetch_fail : {OnFetchFail::older, OnFetchFail::stop}) {
    BroadcastBed bed;
    bed.settings.on_fetch_fail = on_fetch_fail;
    bed.settings.restart_attempts = 1;
    bed.write_with_input(1);
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      rank.hook = BroadcastBed::no_room();
      ASSERT_TRUE(rank.session->have_restart().value());
      const auto started = rank.session->start_restart();
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error().code, Code::no_space);
      for (int asked = 0; asked < 2; ++asked) EXPECT_FALSE(rank.session->have_restart());
      EXPECT_FALSE(rank.session->start_checkpoint());
    });
    EXPECT_EQ(bed.restart(four_nodes()), 1) << "no run has died: " << bed.log_text();
  }
}

TEST(SessionBroadcast, WhereThereIsNoRoomAndStopIsSetNoFurtherCallGoesOnToTheOlderOne) {
  BroadcastBed bed;
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.settings.stores[0].count = 2;
  bed.write(four_nodes(), {1});
  bed.write_with_input(2);
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = BroadcastBed::no_room();
    ASSERT_TRUE(rank.session->have_restart().value());
    for (int asked = 0; asked < 2; ++asked) {
      const auto started = rank.session->start_restart();
      ASSERT_FALSE(started) << *started;
      EXPECT_EQ(started.error().code, Code::no_space);
    }
    EXPECT_FALSE(rank.session->have_restart());
  });
}

TEST(SessionBroadcast, WhereThereIsNoRoomAndNothingIsToBeKeptItSaysSoLoudly) {
  BroadcastBed bed;
  bed.settings.on_fetch_fail = OnFetchFail::fresh;
  bed.write_with_input(1);
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = BroadcastBed::no_room();
    EXPECT_EQ(rank.restart(), 0);
  });
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH: the caches have dataset 1 (ckpt.1)"))
      << bed.log_text();
}

TEST(SessionBroadcast, WhereThereIsNoRoomThePrefixDirectoryIsAskedAndTheCachesKeepItUntilTheNext) {
  for (const OnFetchFail on_fetch_fail : {OnFetchFail::older, OnFetchFail::fresh}) {
    BroadcastBed bed;
    bed.settings.on_fetch_fail = on_fetch_fail;
    bed.settings.stores[0].count = 1;
    for (const int dataset : {1, 2, 3}) bed.write_with_input(dataset);
    ASSERT_EQ(bed.listed(), Names({"ckpt.2"}));
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      rank.hook = BroadcastBed::no_room();
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
      EXPECT_FALSE(rank.session->start_restart());
      EXPECT_EQ(rank.restart(), 2) << "read where it is, as there is no room for its copy either";
      rank.comm.barrier();
      EXPECT_EQ(bed.parts("n1", 3).size(), 2U);
      rank.comm.barrier();
      rank.expect_written(4);
    });
    EXPECT_EQ(bed.parts("n1", 3).size(), 0U) << "a newer one is safe";
    EXPECT_EQ(bed.parts("n1", 4).size(), 2U);
  }
}

TEST(SessionBroadcast, ACheckpointWhoseCopiesKillTheRunIsQuarantined) {
  BroadcastBed bed;
  bed.settings.stores[0].count = 1;
  for (const int dataset : {1, 2, 3}) bed.write_with_input(dataset);
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_FALSE(bed.run(four_nodes(), [](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
      rank.hook = BroadcastBed::at_copy([]() -> Status { throw Crash(); });
      (void)rank.session->start_restart();
    }));
  EXPECT_EQ(bed.restart(four_nodes()), 2) << bed.log_text();
  EXPECT_TRUE(bed.logs("ckpt.3) is not used: it is in quarantine")) << bed.log_text();
  EXPECT_TRUE(bed.logs("until a newer checkpoint is complete")) << bed.log_text();
}

}  // namespace
}  // namespace cairn
