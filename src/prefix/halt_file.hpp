// The halt file of a prefix directory: `cairn halt` writes it, the library reads it and keeps it up
// to date.
#pragma once

#include <functional>
#include <optional>

#include "base/error.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/halt_record.hpp"

namespace cairn {

/// What HaltFile::change() has done.
struct HaltChange {
  Status status;
  /// The file has the new content. After an error a power failure may take it back.
  bool is_made = false;
};

class HaltFile {
 public:
  /// `files` and `clock` must outlive this.
  HaltFile(Files& files, Clock& clock, PrefixFolder folder)
      : files_(&files), clock_(&clock), folder_(std::move(folder)) {}

  const PrefixFolder& folder() const { return folder_; }

  /// The requests; none if there is no file. Errors: corrupt, newer_format, io; the text has the
  /// file and the remedy.
  Result<HaltRecord> read() const;

  /// Changes the content by `change`, atomically with respect to other calls of update(). Makes the
  /// file and Cairn's directory if they are missing and there is something to write. Errors: those
  /// of read; not_found if there is no prefix directory; busy if another process keeps the lock;
  /// io, no_space. After an error the file is unchanged, unless is_made says otherwise.
  HaltChange change(const std::function<void(HaltRecord&)>& change);
  Status update(const std::function<void(HaltRecord&)>& change) {
    return this->change(change).status;
  }

  /// Removes the file, with any content. Succeeds if there is none.
  Status remove();

 private:
  /// `wanted`: what it has tried to write.
  Status change(const std::function<void(HaltRecord&)>& change, std::optional<HaltRecord>& wanted);
  Result<std::unique_ptr<FileLock>> lock();
  Status write(const HaltRecord& record);

  Files* files_;
  Clock* clock_;
  PrefixFolder folder_;
};

}  // namespace cairn
