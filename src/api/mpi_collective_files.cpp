#include "api/mpi_collective_files.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace cairn {
namespace {

using rbio::FilePiece;

Code code_of(int result) {
  int error_class = MPI_ERR_OTHER;
  MPI_Error_class(result, &error_class);
  return error_class == MPI_ERR_NO_SPACE || error_class == MPI_ERR_QUOTA ? Code::no_space
                                                                         : Code::io;
}

Status checked(int result, const char* action, const std::string& path) {
  if (result == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return fail(code_of(result), "cannot {} {} by MPI-IO: {}", action, path,
              std::string_view(text.data(), static_cast<std::size_t>(length)));
}

/// The handler that MPI_File_open uses, and that opened files begin with, belongs to the program.
class ErrorsOfOpenReturn {
 public:
  ErrorsOfOpenReturn() {
    MPI_File_get_errhandler(MPI_FILE_NULL, &of_program_);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  }
  ~ErrorsOfOpenReturn() {
    MPI_File_set_errhandler(MPI_FILE_NULL, of_program_);
    MPI_Errhandler_free(&of_program_);
  }
  ErrorsOfOpenReturn(const ErrorsOfOpenReturn&) = delete;
  ErrorsOfOpenReturn& operator=(const ErrorsOfOpenReturn&) = delete;

 private:
  MPI_Errhandler of_program_ = MPI_ERRHANDLER_NULL;
};

/// Of each piece, how many calls the rank with the most bytes needs: all ranks make so many.
std::vector<std::int64_t> count_calls(Communicator& part, const std::vector<FilePiece>& pieces,
                                      std::size_t bytes_at_once) {
  std::vector<std::int64_t> calls;
  for (const FilePiece& piece : pieces)
    calls.push_back(static_cast<std::int64_t>(piece.data.size() / bytes_at_once +
                                              (piece.data.size() % bytes_at_once > 0 ? 1 : 0)));
  part.allreduce(calls, Reduce::max);
  return calls;
}

/// Goes on after an error, as the other ranks do: the calls are collective.
Status write_pieces(Communicator& part, MPI_File file, const std::string& path,
                    const std::vector<FilePiece>& pieces, std::size_t bytes_at_once) {
  const std::vector<std::int64_t> calls = count_calls(part, pieces, bytes_at_once);
  int first_error = MPI_SUCCESS;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto [offset, rest] = pieces[i];
    for (std::int64_t call = 0; call < calls[i]; ++call) {
      const Bytes now = rest.first(std::min(rest.size(), bytes_at_once));
      const int result =
          MPI_File_write_at_all(file, static_cast<MPI_Offset>(offset), now.data(),
                                static_cast<int>(now.size()), MPI_BYTE, MPI_STATUS_IGNORE);
      if (first_error == MPI_SUCCESS) first_error = result;
      offset += now.size();
      rest = rest.subspan(now.size());
    }
  }
  return checked(first_error, "write", path);
}

/// On success a file that all ranks have opened.
Result<MPI_File> open_on_all(Communicator& part, MPI_Comm comm, const std::string& path) {
  const ErrorsOfOpenReturn errors_return;
  MPI_File file = MPI_FILE_NULL;
  const Status mine = checked(
      MPI_File_open(comm, path.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "open", path);
  if (allreduce(part, mine ? 0 : 1, Reduce::max) == 0) return file;
  // If this rank has opened the file and another has not, it stays open: to close it is collective.
  CAIRN_TRY(mine);
  return MPI_FILE_NULL;
}

}  // namespace

MpiCollectiveFiles::~MpiCollectiveFiles() {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (is_over == 0 && part_ != MPI_COMM_NULL) MPI_Comm_free(&part_);
}

void MpiCollectiveFiles::join(Communicator& comm, int part) {
  MPI_Comm_split(comm_, part, comm.rank(), &part_);
}

Status MpiCollectiveFiles::write(Communicator& part, const std::string& path,
                                 const std::vector<FilePiece>& pieces) {
  CAIRN_ASSIGN(MPI_File file, open_on_all(part, part_, path));
  if (file == MPI_FILE_NULL) return {};  // where the open has failed, that is the error
  Status written = write_pieces(part, file, path, pieces, bytes_at_once_);
  Status synced = checked(MPI_File_sync(file), "sync", path);
  const Status closed = checked(MPI_File_close(&file), "close", path);
  CAIRN_TRY(written);
  CAIRN_TRY(synced);
  return closed;
}

}  // namespace cairn
