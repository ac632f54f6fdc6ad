// The halt file of a prefix directory: `cairn halt` writes it, the library reads it and keeps it up
// to date.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/halt_record.hpp"

namespace cairn {

class HaltFile {
 public:
  /// `files` and `clock` must outlive this.
  HaltFile(Files& files, Clock& clock, PrefixFolder folder)
      : files_(&files), clock_(&clock), folder_(std::move(folder)) {}

  const PrefixFolder& folder() const { return folder_; }

  /// What is asked for: nothing, where there is no file. Errors: corrupt, newer_format, io; the
  /// text names the file and what to do.
  Result<HaltRecord> read() const;

  /// Replaces the content by what `change` makes of it, as one step among all that do so. Makes the
  /// file, and Cairn's folder, where they are missing and there is something to write.
  /// Errors: those of read; not_found if there is no prefix directory; busy if somebody else does
  /// not come to an end; io, no_space. The file is as it was then.
  Status update(const std::function<void(HaltRecord&)>& change);

  /// Removes the file, whatever its content. Success if there is none.
  Status remove();

 private:
  Result<std::unique_ptr<FileLock>> lock();
  Status write(const HaltRecord& record);

  Files* files_;
  Clock* clock_;
  PrefixFolder folder_;
};

}  // namespace cairn
