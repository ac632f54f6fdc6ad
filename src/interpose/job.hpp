#pragma once

#include <string_view>
#include <utility>

#include "interpose/located.hpp"
#include "interpose/moving.hpp"

/// The job of a program with MPI, in a library that is loaded once MPI is there. Without it, files
/// lie in the cache until the program ends.
namespace cairn::interpose {

/// By all ranks, after MPI_Init, and before MPI_Finalize.
void start_job(Process& process);
void finish_job(Process& process);
/// Before MPI_Abort, by any rank, perhaps in a signal handler.
void abort_job(Process& process);

/// A name for a call of the job. It needs no memory of the program: where that is lacking, the job
/// must hear of a file all the same.
class NameText {
 public:
  explicit NameText(std::string_view name);
  const char* c_str() const { return memory_.bytes; }

 private:
  PathBuffer<PATH_MAX> memory_;
};

/// After an open for writing that made a file in the cache.
void note_opened(Process& process, const Located& file, int flags);

/// What the job hears of a name in a call that may be made again, as the file was moved meanwhile.
/// The name begins anew once: for names without a step, each time counts as another step.
class NewBeginning {
 public:
  Content once(Content content) {
    if (content == Content::kept || std::exchange(has_begun_, true)) return Content::kept;
    return Content::emptied;
  }
  /// The same in the flags of open.
  int flags_once(int flags) {
    return once(content_after(flags)) == Content::kept ? flags & ~O_TRUNC : flags;
  }
  static Content content_after(int flags) {
    return (flags & O_TRUNC) != 0 ? Content::emptied : Content::kept;
  }

 private:
  bool has_begun_ = false;
};

/// A call of the program after which a name of the cache may stand for other bytes, as long as this
/// lives. The job knows of it before anything changes, and makes no checkpoint of the file
/// meanwhile.
class Announcement {
 public:
  Announcement(Process& process, const Located& file, Content content);
  ~Announcement();
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

 private:
  const cairn_wrapped_calls* job_;
  NameText name_;
};

/// An announced call that changes the file itself. If that is a part of a checkpoint, the name gets
/// a file of its own.
///
/// The job of another process of the node does not hear of it. Until this ends, such a job finds
/// that the file is open for writing, and makes no checkpoint of it either.
class Change {
 public:
  /// `announced`: what the job hears.
  Change(Process& process, const Located& file, Content content, Content announced);
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  /// Whether it became a part of a checkpoint since, by another process. Then a call that has
  /// changed nothing is to be made again.
  bool is_outrun(int descriptor) const;

 private:
  void hold_writer(const char* place);
  bool separate(const Located& file, Content content);

  Process& process_;
  Announcement announcement_;
  bool is_apart_ = true;
  Descriptor writer_;
};

/// After a call that opened a file for writing, or gave it this name: if that is a checkpoint file
/// in its plain place, it is missed in its step. A link or a pipe is missed too: what is read
/// through it is in no checkpoint.
void note_if_plain(Process& process, int directory, const char* path, int flags);
void note_removed(Process& process, const Located& file);
/// After a call has moved a file out of the cache, by its name from the prefix directory on.
void note_moved_out(Process& process, std::string_view name);

}  // namespace cairn::interpose
