// A program with a few fields, whose content follows from step, field and global element.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "comm/team.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "rbio/series.hpp"

namespace cairn::rbio {

struct Shape {
  int ranks = 4;
  SeriesOptions options;
  int ranks_per_node = 2;
};

/// In memory, where there is such a folder: a sync takes long on a disk, and no test here needs
/// one.
inline std::string fast_folder() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ""; }

/// Of which any rank may have data.
inline constexpr std::array tested_modes = {Mode::threaded, Mode::sync, Mode::collective};

inline std::string name_of_mode(const testing::TestParamInfo<Mode>& mode) {
  switch (mode.param) {
    case Mode::threaded:
      return "Threaded";
    case Mode::split:
      return "Split";
    case Mode::sync:
      return "Sync";
    case Mode::collective:
      return "Collective";
  }
  return "";
}

/// So many files, or as many as there are groups where the mode allows no number between.
inline int files_in(Mode mode, int files) {
  return mode == Mode::collective && files != 1 ? 0 : files;
}

inline Placement placement_of(const Shape& shape) {
  Placement placement;
  for (int rank = 0; rank < shape.ranks; ++rank)
    placement.node_of_rank.push_back(static_cast<std::uint64_t>(rank / shape.ranks_per_node));
  return placement;
}

inline const std::vector<FieldShape>& test_shapes() {
  static const std::vector<FieldShape> shapes = {
      {"density", ElementType::float64, 1},
      {"momentum", ElementType::float32, 3},
      {"material", ElementType::uint8, 1},
      {"phase", ElementType::complex128, 1},
  };
  return shapes;
}

/// Elements of a field over all ranks; the last field has none in most.
inline std::uint64_t total_of(std::size_t field) {
  static const std::vector<std::uint64_t> totals = {60000, 1234, 100003, 5};
  return totals[field];
}

/// Uneven: rank 1 has nothing, and the highest rank the rest.
inline std::uint64_t count_of(std::size_t field, int rank, int ranks) {
  const auto share = [&](int r) -> std::uint64_t {
    if (r == 1) return 0;
    return total_of(field) * static_cast<std::uint64_t>(r + 1) /
           static_cast<std::uint64_t>((ranks + 1) * (ranks + 1));
  };
  if (rank + 1 < ranks) return share(rank);
  std::uint64_t rest = total_of(field);
  for (int r = 0; r + 1 < ranks; ++r) rest -= share(r);
  return rest;
}

inline std::byte value_at(std::uint64_t step, std::size_t field, std::uint64_t byte) {
  return static_cast<std::byte>((byte * 31 + byte / 251 + step * 7 + field * 101) & 0xFF);
}

/// The fields of one rank; a negative one has no data.
class Program {
 public:
  Program(Series& series, int rank, int ranks) : series_(series) {
    for (std::size_t field = 0; field < test_shapes().size(); ++field) {
      const FieldShape& shape = test_shapes()[field];
      std::uint64_t first = 0;
      for (int r = 0; r < rank; ++r) first += count_of(field, r, ranks);
      const std::uint64_t count = rank < 0 ? 0 : count_of(field, rank, ranks);
      first_byte_.push_back(first * shape.element_bytes());
      data_.emplace_back(count * shape.element_bytes());
      const auto added = series_.add_field(shape, data_.back().data(), count);
      EXPECT_TRUE(added) << added.error().text;
    }
  }

  void compute(std::uint64_t step) {
    for (std::size_t field = 0; field < data_.size(); ++field)
      for (std::size_t i = 0; i < data_[field].size(); ++i)
        data_[field][i] = value_at(step, field, first_byte_[field] + i);
  }
  void forget() {
    for (auto& data : data_) std::fill(data.begin(), data.end(), std::byte{0xEE});
  }
  bool holds(std::uint64_t step) const {
    for (std::size_t field = 0; field < data_.size(); ++field)
      for (std::size_t i = 0; i < data_[field].size(); ++i)
        if (data_[field][i] != value_at(step, field, first_byte_[field] + i)) return false;
    return true;
  }

 private:
  Series& series_;
  std::vector<std::uint64_t> first_byte_;
  std::vector<Blob> data_;
};

/// In mode split the data are on the ranks that are no writers.
inline Program program_of(Series& series, const Shape& shape, int rank) {
  if (shape.options.mode != Mode::split) return {series, rank, shape.ranks};
  int place = -1, with_data = 0;
  for (int other = 0; other < shape.ranks; ++other) {
    const auto roles = assign_roles(placement_of(shape).node_of_rank, shape.options.group_size,
                                    shape.options.files, other);
    if (roles->is_writer) continue;
    if (other == rank) place = with_data;
    ++with_data;
  }
  return {series, place, with_data};
}

/// `files` outlives the series.
inline Services services_of(Files& files) {
  return {std::shared_ptr<Files>(std::shared_ptr<Files>(), &files), make_shared_memory(), Log()};
}

inline std::unique_ptr<Series> open_series(Communicator& comm, Files& files,
                                           const std::string& directory, const Shape& shape) {
  auto series =
      Series::open(comm, services_of(files), placement_of(shape), directory, shape.options);
  EXPECT_TRUE(series) << series.error().text;
  return series ? *std::move(series) : nullptr;
}

/// A run that writes the steps given, one after the other.
inline void write_steps(Files& files, const std::string& directory, const Shape& shape,
                        const std::vector<std::uint64_t>& steps) {
  Team(shape.ranks).run([&](Communicator& comm) {
    const auto series = open_series(comm, files, directory, shape);
    Program program = program_of(*series, shape, comm.rank());
    for (const std::uint64_t step : steps) {
      program.compute(step);
      const auto begun = series->begin(comm, step);
      ASSERT_TRUE(begun) << begun.error().text;
      program.forget();  // the file has what was there before begin() returned
      const Status written = series->wait(comm, *begun);
      ASSERT_TRUE(written) << written.error().text;
    }
    ASSERT_TRUE(series->close(comm));
  });
}

/// A run that restores the newest step, which should be `step`.
inline void expect_restored(Files& files, const std::string& directory, const Shape& shape,
                            std::uint64_t step) {
  Team(shape.ranks).run([&](Communicator& comm) {
    const auto series = open_series(comm, files, directory, shape);
    Program program = program_of(*series, shape, comm.rank());
    program.forget();
    const auto restored = series->restore(comm, std::nullopt);
    ASSERT_TRUE(restored) << restored.error().text;
    EXPECT_EQ(*restored, step);
    EXPECT_TRUE(program.holds(step));
  });
}

}  // namespace cairn::rbio
