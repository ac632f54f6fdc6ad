#include "crfs/inodes.hpp"

#include <unistd.h>

#include <climits>

#include <algorithm>

namespace cairn {

std::string name_of(const Inode& inode) {
  char name[PATH_MAX];
  const ssize_t length = ::readlink(name_in_proc(inode.path).c_str(), name, sizeof name);
  return length < 0 ? "a file without a name" : std::string(name, static_cast<std::size_t>(length));
}

Version version_of(const struct stat& status) {
  return {status.st_mtim, status.st_ctim, status.st_size};
}

Inodes::Inodes(Descriptor root) {
  struct stat status = {};
  (void)::fstat(root.number(), &status);
  root_ = &look_up(std::move(root), status);
}

ino_t Inodes::shown_number(dev_t device, ino_t number) const {
  return device == root_->device ? number : number ^ far_apart(device);
}

Inode& Inodes::look_up(Descriptor path, const struct stat& status) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Inode>& inode = all_[{status.st_dev, status.st_ino}];
  if (!inode) inode = std::make_unique<Inode>(std::move(path), status);
  ++inode->lookups_;
  return *inode;
}

Inode* Inodes::find(dev_t device, ino_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find({device, number});
  if (found == all_.end()) return nullptr;
  ++found->second->lookups_;
  return found->second.get();
}

void Inodes::hold(Inode& inode) {
  const std::lock_guard lock(mutex_);
  ++inode.lookups_;
}

void Inodes::forget(Inode& inode, std::uint64_t lookups) {
  std::unique_ptr<Inode> gone;  // its descriptor is closed outside the lock
  const std::lock_guard lock(mutex_);
  inode.lookups_ -= std::min(lookups, inode.lookups_);
  if (inode.lookups_ > 0 || &inode == root_) return;
  const auto found = all_.find({inode.device, inode.number});
  gone = std::move(found->second);
  all_.erase(found);
}

std::vector<Inode*> Inodes::hold_all() {
  const std::lock_guard lock(mutex_);
  std::vector<Inode*> all;
  for (auto& [key, inode] : all_) {
    ++inode->lookups_;
    all.push_back(inode.get());
  }
  return all;
}

}  // namespace cairn
