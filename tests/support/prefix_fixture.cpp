#include "support/prefix_fixture.hpp"

#include <algorithm>

#include "comm/group.hpp"

namespace cairn {

PrefixRank::PrefixRank(Communicator& its_comm, std::unique_ptr<Files> its_files, Clock& clock,
                       const PrefixFolder& folder, int threads)
    : TestRank(its_comm, std::move(its_files),
               threads > 1 ? make_background_thread() : make_foreground()),
      site{*files, clock, folder, 0, 1, true, {2, 0}, {*background, threads}, nullptr} {}

PrefixFixture::PrefixFixture() {
  test_begun_us = make_system_clock()->now_us();
  std::filesystem::create_directories(prefix());
  std::filesystem::create_directories(base_.path() + "/cache");
}

void PrefixFixture::run(const RankMain& rank_main, const RankHook& hook, int processes) {
  Team(processes).run([&](Communicator& comm) {
    const auto clock = make_clock(comm.rank());
    PrefixRank rank(comm, make_files(), *clock, folder(), threads);
    if (hook)
      rank.hook = [&](const FileOperation& operation) { return hook(comm.rank(), operation); };
    ASSERT_NO_FATAL_FAILURE(take_over(rank, *clock));
    rank_main(rank);
  });
}

void PrefixFixture::run_well(const RankMain& rank_main) {
  run([&](PrefixRank& rank) {
    const std::vector<CachedPart> none;
    const Status tidied = tidy(rank.comm, rank.site, none, Unfinished::removed);
    ASSERT_TRUE(tidied) << tidied.error().text;
    rank_main(rank);
  });
}

void PrefixFixture::take_over(PrefixRank& rank, Clock& clock) {
  if (rank.comm.rank() == 0) {
    auto keeper = Keeper::take_over(*rank.files, clock, folder(), owner());
    ASSERT_TRUE(keeper) << keeper.error().text;
    rank.keeper.emplace(*std::move(keeper));
    rank.site.keeper = &*rank.keeper;
  }
  std::uint64_t epoch = rank.keeper ? rank.keeper->epoch_folder().epoch() : 0;
  rank.comm.bcast(mutable_bytes_of(epoch), 0);
  rank.site.epoch = epoch;
}

DatasetInfo PrefixFixture::info_of(int dataset) {
  const bool is_again = dataset >= made_anew && dataset < begun_later;
  const auto number = static_cast<std::uint64_t>(is_again ? dataset - made_anew : dataset);
  const std::int64_t begun_us = dataset < begun_later       ? 1000
                                : dataset < begun_just_now  ? test_begun_us - 30 * minute_us
                                : dataset < begun_in_future ? test_begun_us - minute_us / 2
                                                            : test_begun_us + 30 * minute_us;
  return {{begun_us + dataset, 7}, number, number, 1, ranks, fmt::format("ckpt.{}", number)};
}

std::string PrefixFixture::content_of(int dataset, int rank, int file) {
  std::string content(static_cast<std::size_t>(3000 * rank + 5000 * file), '\0');
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] =
        static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(dataset * 5 + rank)) % 23);
  return content;
}

RankRecord PrefixFixture::record_of(const DatasetInfo& dataset, int rank) {
  RankRecord record;
  record.dataset = dataset;
  record.rank = rank;
  record.encoding.block_bytes = 4096;
  record.encoding.members = {rank};
  record.encoding.member_nodes = {"n"};
  return record;
}

RankRecord PrefixFixture::write_part(PrefixRank& rank, int dataset) const {
  RankRecord record = record_of(info_of(dataset), rank.comm.rank());
  const RankFolder folder = cached(dataset, record.rank);
  for (int file = 0; file < 2; ++file) {
    const std::string name = fmt::format("{}/r{}/f{}", files_in, record.rank, file);
    std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
    std::ofstream(folder.file(name), std::ios::binary) << content_of(dataset, record.rank, file);
    const FileInfo info = *rank.files->info(folder.file(name));
    record.files.push_back({name, info.size, file_mode, info.owner, info.group, {5, modify_ns}});
  }
  Group alone(rank.comm, {record.rank});
  EXPECT_TRUE(protect(alone, *rank.files, folder, record, 1 << 20));
  return record;
}

std::vector<std::string> PrefixFixture::cached_paths(const RankRecord& record, int dataset) const {
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files)
    paths.push_back(cached(dataset, record.rank).file(file.name));
  return paths;
}

Status PrefixFixture::flush_dataset(PrefixRank& rank, int dataset) const {
  const RankRecord record = write_part(rank, dataset);
  auto account = flush(rank.comm, rank.site, record, cached_paths(record, dataset), "job");
  CAIRN_TRY(account);
  return account->settled;
}

void PrefixFixture::flush_well(int dataset) {
  run_well([&](PrefixRank& rank) {
    const Status flushed = flush_dataset(rank, dataset);
    ASSERT_TRUE(flushed) << flushed.error().text;
  });
}

bool PrefixFixture::flush_crashes(int dataset, int victim, std::uint64_t step) {
  bool crashed = false;
  try {
    run([&](PrefixRank& rank) { (void)flush_dataset(rank, dataset); },
        [&](int rank, const FileOperation& operation) -> Status {
          if (rank != victim || operation.index < step || !operation.path.starts_with(prefix()))
            return {};
          crashed = true;
          throw Crash{};
        });
  } catch (const Crash&) {
  }
  return crashed;
}

std::string PrefixFixture::fetch_again(int dataset) {
  std::string trouble;
  run_well([&](PrefixRank& rank) {
    std::vector<std::string> damaged;
    const Listing listing = *read_listing(*rank.files, folder(), damaged);
    const auto known = std::find_if(listing.begin(), listing.end(), [&](const auto& record) {
      return record.info == info_of(dataset);
    });
    if (known == listing.end()) {
      if (rank.comm.rank() == 0) trouble = "not listed";
      return;
    }
    const RankFolder into{fmt::format("{}/fetched.{}", base_.path(), rank.comm.rank())};
    std::filesystem::remove_all(into.path);
    const auto record = fetch(rank.comm, rank.site, *known, into);
    if (!record && rank.comm.rank() == 0) trouble = record.error().text;
    if (record) expect_part(*record, into, dataset);
  });
  return trouble;
}

void PrefixFixture::expect_part(const RankRecord& record, const RankFolder& into,
                                int dataset) const {
  for (int file = 0; file < 2; ++file) {
    const FileEntry& entry = record.files[static_cast<std::size_t>(file)];
    EXPECT_EQ(read_all(into.file(entry.name)), content_of(dataset, record.rank, file))
        << entry.name;
    const FileInfo info = *make_posix_files()->info(into.file(entry.name));
    EXPECT_EQ(info.mode, file_mode);
    EXPECT_EQ(info.times.modify_ns, modify_ns);
  }
}

std::vector<std::string> PrefixFixture::names_of_cairn() const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(prefix())) {
    const std::string relative = std::filesystem::relative(entry.path(), prefix());
    const bool staged = entry.path().filename().string().starts_with(".cairn.");
    const bool closed = relative.starts_with(".cairn/closed.");
    if (staged || closed) found.push_back(relative);
  }
  return found;
}

}  // namespace cairn
