// MpiCollectiveFiles: what several ranks write together is in the file, and errors are returned.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>

#include "api/mpi_collective_files.hpp"
#include "comm/group.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"
#include "mpi/finalize_mpi.hpp"

namespace cairn {
namespace {

constexpr std::size_t pieces_of_a_rank = 3;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::abort();
}

/// Uneven, and some are empty.
std::size_t bytes_of(int rank, std::size_t piece) {
  return static_cast<std::size_t>(rank) % 3 == piece
             ? 0
             : 1000 * piece + 37 * static_cast<std::size_t>(rank) + 1;
}

std::byte value_at(std::size_t at) { return static_cast<std::byte>((at * 31 + at / 251) & 0xFF); }

/// Piece by piece, and in it rank by rank.
std::size_t offset_of(int ranks, int rank, std::size_t piece) {
  std::size_t offset = 0;
  for (std::size_t p = 0; p <= piece; ++p)
    for (int r = 0; r < (p == piece ? rank : ranks); ++r) offset += bytes_of(r, p);
  return offset;
}

void write_and_check(MpiCommunicator& comm, const std::shared_ptr<Files>& files,
                     const std::string& path, std::size_t bytes_at_once) {
  const int parts = comm.size() > 2 ? 2 : 1;
  const int part = comm.rank() % parts;
  std::vector<int> members;
  for (int rank = part; rank < comm.size(); rank += parts) members.push_back(rank);
  Group group(comm, members);
  MpiCollectiveFiles together(comm, files, bytes_at_once);
  together.join(comm, part);
  const std::string mine = path + std::to_string(part);
  if (group.rank() == 0) expect(files->create(mine, 0600).has_value(), "the file is created");
  group.barrier();
  std::vector<Blob> blobs;
  std::vector<rbio::FilePiece> pieces;
  for (std::size_t piece = 0; piece < pieces_of_a_rank; ++piece) {
    const std::size_t offset = offset_of(group.size(), group.rank(), piece);
    Blob& blob = blobs.emplace_back(bytes_of(group.rank(), piece));
    for (std::size_t i = 0; i < blob.size(); ++i) blob[i] = value_at(offset + i);
    pieces.push_back({offset, blob});
  }
  const Status written = together.write(group, mine, pieces);
  expect(written.has_value(), "the pieces are written");
  group.barrier();
  const Blob content = read_file(*files, mine, 1 << 20).value();
  expect(content.size() == offset_of(group.size(), group.size(), pieces_of_a_rank - 1), "the size");
  for (std::size_t i = 0; i < content.size(); ++i) expect(content[i] == value_at(i), "each byte");
  comm.barrier();
}

/// Also if the program wants errors of files to end it.
void expect_error(MpiCommunicator& comm, const std::shared_ptr<Files>& files,
                  const std::string& path) {
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
  MpiCollectiveFiles together(comm, files);
  together.join(comm, 0);
  const Blob data(10);
  const Status written = together.write(comm, path, {{0, data}});
  expect(!written && written.error().code == Code::not_found, "a missing file is an error");
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_File_get_errhandler(MPI_FILE_NULL, &handler);
  expect(handler == MPI_ERRORS_ARE_FATAL, "the handler stays the program's");
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    cairn::MpiCommunicator comm(MPI_COMM_WORLD);
    const std::shared_ptr<cairn::Files> files = cairn::make_posix_files();
    std::optional<cairn::TemporaryFolder> folder;
    if (comm.rank() == 0) folder.emplace();
    cairn::Blob path;
    if (folder) {
      const auto bytes = std::as_bytes(std::span(folder->path()));
      path.assign(bytes.begin(), bytes.end());
    }
    bcast_blob(comm, path, 0);
    const std::string directory(reinterpret_cast<const char*>(path.data()), path.size());
    for (const std::size_t bytes_at_once : {1000U, 37U, 1U << 30})
      cairn::write_and_check(comm, files, directory + "/part", bytes_at_once);
    cairn::expect_error(comm, files, directory + "/missing");
    comm.barrier();
  }
  cairn::finalize_mpi();
}
