// One redundancy set for tests: members are threads, each with real files in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "redundancy/block_check.hpp"
#include "redundancy/protect.hpp"
#include "redundancy/repair.hpp"

namespace cairn {

inline constexpr std::uint32_t block_bytes = 4096;

struct Protection {
  Scheme scheme = Scheme::xor_;
  std::uint32_t failures = 1;
  std::uint32_t hop = 1;
};
inline constexpr std::uint64_t encode_bytes = 1 << 20;

inline std::string content_of(int rank, int file, std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(rank * 10 + file));
  std::string content(size, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// A set whose members each have two files of the sizes given, in a folder per member.
class SetOnDisk {
 public:
  SetOnDisk(const std::string& base, std::vector<std::vector<std::size_t>> sizes,
            Protection protection = {})
      : root_(base), sizes_(std::move(sizes)), records_(sizes_.size()) {
    for (int rank = 0; rank < members(); ++rank) {
      RankRecord& record = records_[static_cast<std::size_t>(rank)];
      record.rank = rank;
      record.dataset.ranks = static_cast<std::uint32_t>(members());
      record.encoding.scheme = members() > 1 ? protection.scheme : Scheme::single;
      record.encoding.failures = members() > 1 ? protection.failures : 0;
      record.encoding.hop = protection.hop;
      record.encoding.block_bytes = block_bytes;
      for (int member = 0; member < members(); ++member) {
        record.encoding.members.push_back(member);
        record.encoding.member_nodes.push_back("n" + std::to_string(member));
      }
      for (int file = 0; file < files(rank); ++file) {
        write(path(rank, file), content_of(rank, file, size(rank, file)));
        FileEntry& entry = record.files.emplace_back();
        entry.name = name(file);
        entry.size = size(rank, file);
        entry.mode = 0640;
        entry.times = {1'000'000'000, 1'600'000'000'123'456'789};
      }
    }
  }

  int members() const { return static_cast<int>(sizes_.size()); }
  int files(int rank) const {
    return static_cast<int>(sizes_[static_cast<std::size_t>(rank)].size());
  }
  std::size_t size(int rank, int file) const {
    return sizes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(file)];
  }
  std::string name(int file) const { return "d" + std::to_string(file) + "/state"; }
  RankFolder folder(int rank) const { return {root_ + "/rank." + std::to_string(rank)}; }
  std::string path(int rank, int file) const { return folder(rank).file(name(file)); }
  std::string parity(int rank) const { return folder(rank).parity(1); }
  RankRecord& record(int rank) { return records_[static_cast<std::size_t>(rank)]; }

  /// Makes the files that each member works with.
  using MakeFiles = std::function<std::unique_ptr<Files>()>;

  void protect_all(Team::Mode mode = Team::Mode::rendezvous,
                   const MakeFiles& make_files = make_posix_files) {
    Team(members(), mode).run([&](Communicator& set) {
      const auto files = make_files();
      const auto done = protect(set, *files, folder(set.rank()), record(set.rank()), encode_bytes);
      EXPECT_TRUE(done) << done.error().text;
    });
  }

  /// The members' common verdict.
  Result<std::uint64_t> heal_all(bool read_everything,
                                 const MakeFiles& make_files = make_posix_files) {
    Result<std::uint64_t> verdict = 0;
    std::mutex mutex;
    Team(members()).run([&](Communicator& set) {
      const auto files = make_files();
      HealOptions options;
      options.read_everything = read_everything;
      options.encode_bytes = encode_bytes;
      const auto healed = heal(set, *files, folder(set.rank()), record(set.rank()), options);
      const std::scoped_lock lock(mutex);
      if (!healed)
        verdict = tl::unexpected(healed.error());
      else if (verdict)
        *verdict += healed->repaired_blocks;
    });
    return verdict;
  }

  void expect_intact() {
    for (int rank = 0; rank < members(); ++rank) {
      for (int file = 0; file < files(rank); ++file) {
        ASSERT_EQ(read(path(rank, file)), content_of(rank, file, size(rank, file))) << rank;
        const auto info = make_posix_files()->info(path(rank, file));
        ASSERT_TRUE(info);
      }
      const auto posix = make_posix_files();
      RankBlocks blocks(*posix, folder(rank), record(rank));
      EXPECT_EQ(blocks.presence(), RankBlocks::Presence::complete);
      EXPECT_TRUE(find_erasures(blocks, record(rank)).none()) << "rank " << rank;
    }
  }

 private:
  std::string root_;
  std::vector<std::vector<std::size_t>> sizes_;
  std::vector<RankRecord> records_;
};

/// Loses members of a protected set: the set is as before where survives() says so, refused and
/// untouched otherwise.
inline void lose(SetOnDisk& set, const std::vector<bool>& lost, const std::string& aside) {
  std::filesystem::create_directory(aside);
  const auto each_lost =
      [&](const std::function<void(const std::string&, const std::string&)>& action) {
        for (int member = 0; member < set.members(); ++member)
          if (lost[static_cast<std::size_t>(member)])
            action(set.folder(member).path, aside + "/" + std::to_string(member));
      };
  each_lost([](const auto& path, const auto& kept) { std::filesystem::rename(path, kept); });
  const auto healed = set.heal_all(false);
  ASSERT_EQ(healed.has_value(), survives(SetLayout(set.record(0).encoding), lost))
      << (healed ? "repaired" : healed.error().text);
  if (healed) {
    set.expect_intact();
  } else {
    EXPECT_EQ(healed.error().code, Code::lost);
    each_lost([](const auto& path, const auto& kept) {
      ASSERT_FALSE(std::filesystem::exists(path));
      std::filesystem::rename(kept, path);
    });
  }
  std::filesystem::remove_all(aside);
}

}  // namespace cairn
