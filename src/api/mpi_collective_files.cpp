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

/// Sets the error handler of MPI_File_open and of new files, and restores the program's handler at
/// the end.
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

/// Hints with which each rank writes its own data. In the MPI-IO of Open MPI 4 (OMPIO), a rank that
/// writes for others and gets an error returns success, and the others wait for it for ever. ROMIO
/// does not know this hint, and does not need it, as the pieces of the ranks are adjacent.
class Hints {
 public:
  Hints() {
    MPI_Info_create(&info_);
    MPI_Info_set(info_, "collective_buffering", "disable");
  }
  ~Hints() { MPI_Info_free(&info_); }
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;
  MPI_Info info() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

/// For each piece, the number of calls that the rank with the most bytes needs. All ranks make as
/// many calls.
std::vector<std::int64_t> count_calls(Communicator& part, const std::vector<FilePiece>& pieces,
                                      std::size_t bytes_at_once) {
  std::vector<std::int64_t> calls;
  for (const FilePiece& piece : pieces)
    calls.push_back(static_cast<std::int64_t>(piece.data.size() / bytes_at_once +
                                              (piece.data.size() % bytes_at_once > 0 ? 1 : 0)));
  part.allreduce(calls, Reduce::max);
  return calls;
}

/// OMPIO returns success even if it has written less. The ROMIO of Open MPI sets no status if there
/// is nothing to write.
Status write_at_all(MPI_File file, const std::string& path, std::uint64_t offset, Bytes data) {
  MPI_Status status;
  const int result = MPI_File_write_at_all(file, static_cast<MPI_Offset>(offset), data.data(),
                                           static_cast<int>(data.size()), MPI_BYTE, &status);
  CAIRN_TRY(checked(result, "write", path));
  if (data.empty()) return {};
  int written = 0;
  MPI_Get_count(&status, MPI_BYTE, &written);
  if (written == static_cast<int>(data.size())) return {};
  return fail(Code::io,
              "cannot write {} by MPI-IO: {} of {} bytes are written, and no reason is given", path,
              written, data.size());
}

/// Goes on after an error, as the calls are collective and the other ranks go on.
Status write_pieces(Communicator& part, MPI_File file, const std::string& path,
                    const std::vector<FilePiece>& pieces, std::size_t bytes_at_once) {
  const std::vector<std::int64_t> calls = count_calls(part, pieces, bytes_at_once);
  Status first;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto [offset, rest] = pieces[i];
    for (std::int64_t call = 0; call < calls[i]; ++call) {
      const Bytes now = rest.first(std::min(rest.size(), bytes_at_once));
      Status written = write_at_all(file, path, offset, now);
      if (first) first = std::move(written);
      offset += now.size();
      rest = rest.subspan(now.size());
    }
  }
  return first;
}

bool is_success_on_all(Communicator& part, const Status& mine) {
  return allreduce(part, mine ? 0 : 1, Reduce::max) == 0;
}

/// In OMPIO, MPI_File_open does not return if the first rank can open the file and another rank
/// cannot. This opens the file twice, as MPI needs one more descriptor.
Status try_to_open(Files& files, const std::string& path) {
  CAIRN_ASSIGN(const auto one, files.open_for_update(path));
  CAIRN_ASSIGN(const auto another, files.open_for_update(path));
  return {};
}

/// A file that all ranks have opened; MPI_FILE_NULL if another rank has failed.
Result<MPI_File> open_on_all(Communicator& part, MPI_Comm comm, const std::string& path) {
  const ErrorsOfOpenReturn errors_return;
  const Hints hints;
  MPI_File file = MPI_FILE_NULL;
  const Status mine = checked(
      MPI_File_open(comm, path.c_str(), MPI_MODE_WRONLY, hints.info(), &file), "open", path);
  if (is_success_on_all(part, mine)) return file;
  // If only some ranks have opened the file, it stays open, as closing it is collective.
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
  const Status openable = try_to_open(*files_, path);
  if (!is_success_on_all(part, openable)) return openable;
  CAIRN_ASSIGN(MPI_File file, open_on_all(part, part_, path));
  if (file == MPI_FILE_NULL) return {};  // the rank that failed to open it returns the error
  Status written = write_pieces(part, file, path, pieces, bytes_at_once_);
  const Status synced = checked(MPI_File_sync(file), "sync", path);
  const Status closed = checked(MPI_File_close(&file), "close", path);
  CAIRN_TRY(written);
  CAIRN_TRY(synced);
  return closed;
}

}  // namespace cairn
