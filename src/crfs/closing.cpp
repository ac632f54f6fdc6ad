#include "crfs/closing.hpp"

#include <chrono>
#include <new>

namespace cairn {
namespace {

/// Repeats `work` until memory is available, as nothing would do it later.
template <class Work>
void patiently(Work work) {
  for (;;) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace

Closing::Closing(Inodes& inodes, UnreportedErrors& unreported, int threads)
    : inodes_(inodes), unreported_(unreported) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Closing::~Closing() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Closing::finish_later(Inode& inode) {
  if (threads_.empty()) return finish(inode);
  inodes_.hold(inode);
  try {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&inode);
  } catch (const std::bad_alloc&) {
    inodes_.forget(inode, 1);
    return finish(inode);
  }
  changed_.notify_one();
}

void Closing::finish(Inode& inode) {
  const std::shared_ptr<SharedFile> file = inode.open_file();
  if (!file) return;
  const bool nameless = !file->settled() && file->is_nameless();
  for (;;) {
    if (nameless) cancel(inode, file);
    file->settle();  // without the lock, so that an open() of the file need not wait
    const std::lock_guard lock(inode.mutex);
    // A handle opened meanwhile gets errors from the file itself, and closes the file later.
    if (!inode.handles.empty() || inode.file != file) return;
    if (!file->settled()) continue;
    int error = file->data().take_unreported_error();
    if (error == 0) error = file->flush();
    if (error != 0)
      patiently([&] { unreported_.add(inode.device, inode.number, {name_of(inode), error}); });
    if (lost && (error != 0 || file->data().has_failed())) patiently([&] { lost(inode); });
    // The kernel's pages are valid only if nothing but this mount has changed the file since it was
    // opened, and if no write failed.
    struct stat now = {};
    if (file->is_cache_untrue() || ::fstat(file->backing().number(), &now) != 0)
      inode.cached = {};
    else if (file->was_changed())
      inode.cached = version_of(now);
    inode.file.reset();
    return;
  }
}

/// Drops the data of a file that has no name, unless a handle was opened meanwhile.
void Closing::cancel(Inode& inode, const std::shared_ptr<SharedFile>& file) {
  const std::lock_guard lock(inode.mutex);
  if (inode.handles.empty() && inode.file == file) file->data().abandon();
}

void Closing::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Inode& inode = *waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    patiently([&] { finish(inode); });
    inodes_.forget(inode, 1);
    lock.lock();
  }
}

}  // namespace cairn
