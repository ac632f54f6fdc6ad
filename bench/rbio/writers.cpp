#include "rbio/writers.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "mpi_timing.hpp"

namespace cairn::bench {
namespace {

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  check(false, std::string(what) + ": " + text);
}

class NoWriter : public Writer {
 public:
  void begin(std::int64_t) override {}
};

/// A program without rbIO, coIO: one collective write per field. The fields are at the same places
/// as in a part of rbIO, but there is neither header nor table, and no byte has a checksum.
class CollectiveWriter : public Writer {
 public:
  CollectiveWriter(MPI_Comm comm, const WriterOptions& options, std::vector<FieldData> fields)
      : world_(comm), options_(options), fields_(std::move(fields)) {
    MPI_Comm_rank(comm, &rank_);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    file_ = rank_ * options.files / ranks;
    MPI_Comm_split(comm, file_, rank_, &comm_);
  }
  ~CollectiveWriter() override {
    CollectiveWriter::remove_older();
    MPI_Comm_free(&comm_);
  }
  CollectiveWriter(const CollectiveWriter&) = delete;
  CollectiveWriter& operator=(const CollectiveWriter&) = delete;

  void begin(std::int64_t step) override {
    const std::string path = path_of(step);
    MPI_File file;
    check_mpi(
        MPI_File_open(comm_, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
        "MPI_File_open");
    MPI_Offset base = alignment;
    for (const FieldData& field : fields_) {
      const auto [before, all] = place(field);
      check_mpi(MPI_File_write_at_all(file, base + before, field.data,
                                      static_cast<int>(field.count), MPI_DOUBLE, MPI_STATUS_IGNORE),
                "MPI_File_write_at_all");
      base += (all + alignment - 1) / alignment * alignment;
    }
    if (options_.syncs) check_mpi(MPI_File_sync(file), "MPI_File_sync");
    check_mpi(MPI_File_close(&file), "MPI_File_close");
    last_ = path;
  }

  void remove_older() override {
    if (last_.empty()) return;
    MPI_Barrier(world_);
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    if (rank == 0) check_mpi(MPI_File_delete(last_.c_str(), MPI_INFO_NULL), "MPI_File_delete");
    last_.clear();
  }

 private:
  static constexpr MPI_Offset alignment = 4096;

  struct Place {
    MPI_Offset before, all;  ///< bytes of the lower ranks, and of all
  };

  Place place(const FieldData& field) const {
    const long long mine = field.bytes();
    long long before = 0, all = 0;
    MPI_Exscan(&mine, &before, 1, MPI_LONG_LONG, MPI_SUM, comm_);
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, comm_);
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    return {rank == 0 ? 0 : before, all};
  }

  std::string path_of(std::int64_t step) const {
    return fmt::format("{}/step.{}.{}.coio", options_.directory, step, file_);
  }

  MPI_Comm world_, comm_ = MPI_COMM_NULL;
  WriterOptions options_;
  std::vector<FieldData> fields_;
  int rank_ = 0, file_ = 0;
  std::string last_;
};

class RbioWriter : public Writer {
 public:
  RbioWriter(MPI_Comm comm, const WriterOptions& options, const std::vector<FieldData>& fields)
      : directory_(options.directory + "/series") {
    MPI_Comm_rank(comm, &rank_);
    check_rbio(rbio_open(comm, directory_.c_str(), options.kind.c_str(), &series_));
    for (std::size_t i = 0; i < fields.size(); ++i)
      check_rbio(rbio_add_field(series_, fmt::format("field{}", i).c_str(), RBIO_FLOAT64, 1,
                                fields[i].data, fields[i].count, nullptr));
  }
  ~RbioWriter() override { check_rbio(rbio_close(&series_)); }
  RbioWriter(const RbioWriter&) = delete;
  RbioWriter& operator=(const RbioWriter&) = delete;

  void begin(std::int64_t step) override { check_rbio(rbio_begin(series_, step, &ticket_)); }
  void wait() override { check_rbio(rbio_wait(series_, ticket_)); }
  bool is_writing() override {
    if (ticket_ == RBIO_NO_TICKET) return false;
    int finished = 0;
    check_rbio(rbio_test(series_, ticket_, &finished));
    return finished == 0;
  }
  void remove_older() override {
    while (rank_ == 0 && is_removing()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    barrier();
  }
  rbio_statistics_t statistics() const override {
    rbio_statistics_t result{};
    check_rbio(rbio_statistics(series_, &result));
    return result;
  }

 private:
  bool is_removing() const { return entries("", "step.") > 1 || entries("/.rbio", "removed.") > 0; }
  std::ptrdiff_t entries(const char* folder, const char* beginning) const {
    namespace fs = std::filesystem;
    return std::count_if(fs::directory_iterator(directory_ + folder), fs::directory_iterator(),
                         [&](const fs::directory_entry& entry) {
                           return entry.path().filename().string().starts_with(beginning);
                         });
  }
  void check_rbio(int code) const { check(code == RBIO_SUCCESS, rbio_error_text(series_)); }

  const std::string directory_;
  int rank_ = 0;
  rbio_series* series_ = nullptr;
  rbio_ticket ticket_ = RBIO_NO_TICKET;
};

}  // namespace

std::unique_ptr<Writer> make_writer(MPI_Comm comm, const WriterOptions& options,
                                    const std::vector<FieldData>& fields) {
  if (options.kind == "none") return std::make_unique<NoWriter>();
  if (options.kind == "coio") return std::make_unique<CollectiveWriter>(comm, options, fields);
  return std::make_unique<RbioWriter>(comm, options, fields);
}

}  // namespace cairn::bench
