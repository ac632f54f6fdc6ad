#pragma once

#include <dirent.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "interpose/listing.hpp"

namespace cairn::interpose {

/// Where a program is in a directory that has redirected files. Its first part is the real one.
struct Listing {
  explicit Listing(std::vector<ListedFile> files) : added(std::move(files)) {}

  const AddedNames added;
  std::size_t next = 0;
  bool is_behind_real = false;
  std::mutex changing;  // readdir may be called by several threads
  dirent entry;
};

/// The open directories with redirected files. The others cost one look at a number.
class Listings {
 public:
  std::shared_ptr<Listing> find(DIR* directory);
  void put(DIR* directory, std::vector<ListedFile> added);
  void remove(DIR* directory);

  /// Around fork: the child must not inherit the mutex while another thread holds it.
  void lock() { changing_.lock(); }
  void unlock() { changing_.unlock(); }

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex changing_;
  std::unordered_map<DIR*, std::shared_ptr<Listing>> open_;
};

Listings& listings();

}  // namespace cairn::interpose
