// One rank's files and parity as numbered blocks.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// Reads and writes the blocks that a record describes. `record` and `files` must outlive it; the
/// record's rank, files and encoding must be set, its checksums are not looked at.
class RankBlocks {
 public:
  RankBlocks(Files& files, RankFolder folder, const RankRecord& record);
  /// The files only, wherever they are: one path for each file of the record. No parity.
  RankBlocks(Files& files, const std::vector<std::string>& paths, const RankRecord& record);

  /// Data block `index`: points into a mapping or into `scratch` (a block long). An error where the
  /// file is missing, too short or unreadable.
  Result<Bytes> data(std::uint64_t index, MutableBytes scratch);
  Result<Bytes> parity(std::uint64_t index, MutableBytes scratch);

  enum class Presence {
    complete,  ///< every file, and the parity, is a regular file of the right size
    partial,
    missing,  ///< nothing at all
  };
  Presence presence();

  /// Removes what is in the place of a folder: a file, or a link. So ask first whether anything is
  /// missing: what a link leads to is not read any more.
  Status clear_way();
  /// Makes every file and the parity a regular file of the right size, keeping what is there of it;
  /// what stands in the way is removed. A file that has other names too becomes one of its own: in
  /// the prefix directory the program may write to it under another.
  Status make_room();
  /// Removes files and parity.
  Status remove();
  /// Makes the parity file anew: of the file `spare`, if there is one, else empty. Every byte of it
  /// is still to be written.
  Status start_parity(const std::string& spare);
  Status write_data(std::uint64_t index, Bytes block);
  Status write_parity(std::uint64_t index, Bytes block);

  /// A hint: what was written to the data file that was written last will be synced.
  void start_writing();
  /// Syncs files, parity and the folders they are in. `of_data` gets whether the files were synced.
  Status sync(Status* of_data = nullptr);
  /// Gives every file the mode and times of the record.
  Status restore_attributes();

 private:
  struct Extent {
    std::string path;
    std::uint64_t size = 0;
    std::uint64_t start = 0;  ///< where the file begins in the stream
    std::uint64_t begin = 0;  ///< where what belongs to the stream begins in the file
    std::unique_ptr<View> view;
  };
  struct Piece {
    Extent* extent;
    std::uint64_t offset;  ///< within the file
    std::size_t length;
  };

  void add_extents(const std::vector<std::string>& paths);
  bool looks_complete();
  /// The rank's folder and those below it that hold its files; each comes after the one it is in.
  std::set<std::string> folders() const;
  std::vector<Piece> pieces_of(std::uint64_t offset, std::size_t length);
  Result<Bytes> read_piece(const Piece& piece, MutableBytes scratch);
  Status write_piece(const Piece& piece, Bytes part);
  /// Kept open: blocks mostly come in order, and a rank may have more files than a process may have
  /// open.
  struct Writer {
    std::unique_ptr<File> file;
    const Extent* extent = nullptr;  ///< that it is for
  };

  Status reshape(Extent& extent);
  /// Of the parity, or of the data file that was written last. The two alternate in a rebuild.
  Writer& writer_for(const Extent& extent) {
    return &extent == &parity_ ? parity_writer_ : writer_;
  }
  Result<File*> open_writer(const Extent& extent);
  void close(Extent& extent);

  Files& files_;
  RankFolder folder_;
  const RankRecord& record_;
  const SetLayout layout_;
  const int me_;                 ///< in the set
  std::vector<Extent> extents_;  ///< the files, in stream order
  Extent parity_;
  Writer writer_;
  Writer parity_writer_;
};

}  // namespace cairn
