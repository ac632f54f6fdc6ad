#include "memory_files.hpp"

#include <algorithm>
#include <cerrno>
#include <list>
#include <mutex>
#include <utility>

namespace cairn::sim {
namespace {

/// One call at a time. Where ranks are fibers nobody ever waits.
class Turn {
 public:
  Turn() : lock_(mutex) {}

 private:
  static inline std::recursive_mutex mutex;
  const std::scoped_lock<std::recursive_mutex> lock_;
};

constexpr std::uint32_t umask = 022;
constexpr std::uint32_t owner_reads = 0400;
constexpr std::uint32_t owner_writes = 0200;
constexpr std::uint32_t user = 1000;

tl::unexpected<Error> refuse(int error_number, std::string_view action, const std::string& path) {
  return tl::unexpected<Error>(errno_error(error_number, action, path));
}

tl::unexpected<Error> too_short(const std::string& path, std::uint64_t actual, std::uint64_t offset,
                                std::uint64_t length) {
  return fail(Code::io, "cannot read {}: it has {} bytes where {} were expected from byte {} on",
              path, actual, length, offset);
}

tl::unexpected<Error> no_folder(std::string_view action, const std::string& path) {
  return fail(Code::io, "cannot {} {}: it is a file, not a directory", action, path);
}

bool reaches(const Inode& file, std::uint64_t offset, std::uint64_t length) {
  return length <= file.content.size() && offset <= file.content.size() - length;
}

using Now = std::function<std::int64_t()>;

/// What comes before a call that production makes again when a signal interrupts it.
Status outlast_signals(const Disturbances& disturbances, std::string_view action,
                       const std::string& path) {
  const int made = uninterrupted([&] {
    errno = EINTR;
    return disturbances.interrupted() ? -1 : 0;
  });
  if (made != 0) return refuse(errno, action, path);
  return {};
}

/// As pread.
ssize_t read_some(const Inode& file, const Disturbances& disturbances, MutableBytes part,
                  std::uint64_t offset) {
  const std::size_t size = file.content.size();
  const std::size_t left = offset < size ? size - static_cast<std::size_t>(offset) : 0;
  const std::size_t wanted = std::min(left, part.size());
  const std::size_t count = wanted > 0 ? disturbances.moved(wanted) : 0;
  if (wanted > 0 && count == 0) {
    errno = EINTR;
    return -1;
  }
  std::copy_n(file.content.begin() + static_cast<std::ptrdiff_t>(offset), count, part.begin());
  return static_cast<ssize_t>(count);
}

Status read_all(const Inode& file, const Disturbances& disturbances, const std::string& path,
                std::uint64_t offset, MutableBytes buffer) {
  CAIRN_ASSIGN(const std::size_t done,
               read_on(path, offset, buffer, [&](MutableBytes part, std::uint64_t at) {
                 return read_some(file, disturbances, part, at);
               }));
  if (done == buffer.size()) return {};
  return too_short(path, file.content.size(), offset, buffer.size());
}

class MemoryFile final : public File {
 public:
  enum class Mode { reads, writes };

  MemoryFile(std::shared_ptr<Volume> volume, InodePtr inode, std::string path, Now now,
             Disturbances disturbances, Mode mode)
      : volume_(std::move(volume)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        now_(std::move(now)),
        disturbances_(std::move(disturbances)),
        writers_(mode == Mode::writes ? 1 : 0) {
    inode_->writers += writers_;
  }
  ~MemoryFile() override {
    const Turn turn;
    inode_->writers -= writers_;
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  Status read_at(std::uint64_t offset, MutableBytes buffer) override {
    const Turn turn;
    return read_all(*inode_, disturbances_, path_, offset, buffer);
  }

  Status write_at(std::uint64_t offset, Bytes data) override {
    const Turn turn;
    return write_on(path_, offset, data, [&](Bytes part, std::uint64_t at) -> ssize_t {
      const std::size_t count = disturbances_.moved(part.size());
      const bool room = count > 0 && volume_->write(*inode_, at, part.first(count), now_());
      errno = count == 0 ? EINTR : ENOSPC;
      if (count > 0 && !room) disturbances_.refused_room(path_);
      return room ? static_cast<ssize_t>(count) : -1;
    });
  }

  Status resize(std::uint64_t bytes) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "resize", path_));
    inode_->content.resize(bytes);
    return {};
  }

  Status sync() override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "sync", path_));
    volume_->sync_content(*inode_);
    return {};
  }

  Status sync_all() override {
    CAIRN_TRY(sync());
    const Turn turn;
    volume_->sync_attributes(*inode_);
    return {};
  }

  Status set_attributes(std::uint32_t mode, const FileTimes& times) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "set the attributes of", path_));
    inode_->mode = mode;
    inode_->times = times;
    inode_->change_ns = now_();
    return {};
  }

  Result<std::uint64_t> size() override {
    const Turn turn;
    return inode_->content.size();
  }

 private:
  std::shared_ptr<Volume> volume_;
  InodePtr inode_;
  std::string path_;
  Now now_;
  Disturbances disturbances_;
  const int writers_;
};

class MemoryView final : public View {
 public:
  MemoryView(const Volume& volume, InodePtr inode, std::string path, Disturbances disturbances)
      : mapped_(volume.medium() == Volume::Medium::memory),
        inode_(std::move(inode)),
        path_(std::move(path)),
        disturbances_(std::move(disturbances)),
        size_(inode_->content.size()) {}

  std::uint64_t size() const override { return size_; }

  Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) override {
    const Turn turn;
    if (!reaches(*inode_, offset, length) || offset + length > size_)
      return too_short(path_, inode_->content.size(), offset, length);
    const auto begin = inode_->content.begin() + static_cast<std::ptrdiff_t>(offset);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    if (mapped_) return Bytes(handed_out_.emplace_back(begin, end));
    if (scratch.size() < length)
      return fail(Code::bad_argument, "cannot read {} bytes of {} into a buffer of {}", length,
                  path_, scratch.size());
    CAIRN_TRY(read_all(*inode_, disturbances_, path_, offset, scratch.first(length)));
    return scratch.first(length);
  }

 private:
  bool mapped_;
  InodePtr inode_;
  std::string path_;
  Disturbances disturbances_;
  std::uint64_t size_;
  std::list<Blob> handed_out_;
};

class MemoryLock final : public FileLock {
 public:
  explicit MemoryLock(InodePtr inode) : inode_(std::move(inode)) { inode_->locked = true; }
  ~MemoryLock() override {
    const Turn turn;
    inode_->locked = false;
  }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

 private:
  InodePtr inode_;
};

class MemoryFiles final : public Files {
 public:
  MemoryFiles(Mounts mounts, Now now, Disturbances disturbances)
      : mounts_(std::move(mounts)), now_(std::move(now)), disturbances_(std::move(disturbances)) {}

  Result<std::unique_ptr<File>> open(const std::string& path) override {
    const Turn turn;
    return open_existing(path, owner_reads);
  }
  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    const Turn turn;
    return open_existing(path, owner_reads | owner_writes);
  }

  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, create_unlinked(path, mode));
    place.inode->content.clear();
    return std::make_unique<MemoryFile>(place.volume, place.inode, path, now_, disturbances_,
                                        MemoryFile::Mode::writes);
  }

  Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                               std::uint32_t mode) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, create_unlinked(path, mode));
    return std::make_unique<MemoryFile>(place.volume, place.inode, path, now_, disturbances_,
                                        MemoryFile::Mode::writes);
  }

  Status append(const std::string& path, Bytes data, std::uint32_t mode) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, make_file(path, mode, "append to"));
    MemoryFile file(place.volume, place.inode, path, now_, disturbances_, MemoryFile::Mode::writes);
    return file.write_at(place.inode->content.size(), data);
  }

  Result<std::unique_ptr<View>> view(const std::string& path) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, find_file(path, owner_reads));
    return std::make_unique<MemoryView>(*place.volume, place.inode, path, disturbances_);
  }

  Result<FileInfo> info(const std::string& path) override {
    const Turn turn;
    const Place place = find(path);
    if (!place.inode) return refuse(ENOENT, "inspect", path);
    const Inode& inode = *place.inode;
    // Only told apart: the order of volumes is chance.
    const auto volume = reinterpret_cast<std::uintptr_t>(place.volume.get());
    return FileInfo{inode.kind,
                    inode.content.size(),
                    inode.mode,
                    user,
                    user,
                    inode.times,
                    inode.change_ns,
                    {volume, inode.number},
                    inode.linked ? place.volume->count_names(inode) : 1};
  }

  Result<Writer> find_writer(const std::string& path) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, find_file(path, owner_reads));
    return place.inode->writers > 0 ? Writer::this_process : Writer::none;
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "list", folder));
    CAIRN_ASSIGN(const Place place, find_folder(folder, "list"));
    std::vector<std::string> names;
    for (const auto& [name, child] : place.inode->names) names.push_back(name);
    return names;
  }

  Status make_folder(const std::string& path, std::uint32_t mode) override {
    const Turn turn;
    const Place place = find(path);
    if (place.inode && place.inode->kind == Kind::folder) return {};
    if (place.inode) return refuse(EEXIST, "create directory", path);
    if (!place.parent) return refuse(ENOENT, "create directory", path);
    if (place.volume->free_bytes() == 0) {
      disturbances_.refused_room(path);
      return refuse(ENOSPC, "create directory", path);
    }
    add(place, Kind::folder, mode);
    return {};
  }

  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    const Turn turn;
    if (find(path).inode) return false;
    CAIRN_TRY(make_folder(path, mode));
    return true;
  }

  Status rename(const std::string& from, const std::string& to) override {
    const Turn turn;
    const Place source = find(from);
    const Place target = find(to);
    if (!source.inode || !target.parent) return refuse(ENOENT, "rename", from + " to " + to);
    const bool one_folder = source.parent == target.parent;
    if (source.volume != target.volume) return refuse(EXDEV, "rename", from + " to " + to);
    if (target.inode && target.inode->kind == Kind::folder)
      return refuse(EISDIR, "rename", from + " to " + to);
    if (one_folder) {
      source.volume->change_names(*source.parent, {source.name, target.name, source.inode, {}});
      return {};
    }
    const auto both = std::make_shared<std::optional<bool>>();
    target.volume->change_names(*target.parent, {"", target.name, source.inode, both});
    source.volume->change_names(*source.parent, {source.name, "", nullptr, both});
    return {};
  }

  Status link(const std::string& from, const std::string& to) override {
    const Turn turn;
    const Place source = find(from);
    const Place target = find(to);
    if (!source.inode || !target.parent) return refuse(ENOENT, "link", from + " to " + to);
    if (source.inode->kind != Kind::file) return refuse(EPERM, "link", from + " to " + to);
    if (source.volume != target.volume) return refuse(EXDEV, "link", from + " to " + to);
    if (target.inode) return refuse(EEXIST, "link", from + " to " + to);
    source.inode->linked = true;
    source.inode->change_ns = now_();
    target.volume->change_names(*target.parent, {"", target.name, source.inode, {}});
    return {};
  }

  Status remove_file(const std::string& path) override {
    const Turn turn;
    const Place place = find(path);
    if (!place.inode) return {};
    if (place.inode->kind == Kind::folder) return refuse(EISDIR, "remove", path);
    place.volume->change_names(*place.parent, {place.name, "", nullptr, {}});
    return {};
  }

  Status remove_folder(const std::string& path) override {
    const Turn turn;
    const Place place = find(path);
    if (!place.inode) return {};
    if (place.inode->kind != Kind::folder) return no_folder("remove", path);
    if (!place.inode->names.empty()) return refuse(ENOTEMPTY, "remove", path);
    place.volume->change_names(*place.parent, {place.name, "", nullptr, {}});
    return {};
  }

  Status set_attributes(const std::string& path, std::uint32_t mode,
                        const FileTimes& times) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "set the attributes of", path));
    const Place place = find(path);
    if (!place.inode) return refuse(ENOENT, "set the attributes of", path);
    place.inode->mode = mode;
    place.inode->times = times;
    place.inode->change_ns = now_();
    return {};
  }

  Status sync_folder(const std::string& folder) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "sync directory", folder));
    CAIRN_ASSIGN(const Place place, find_folder(folder, "sync directory"));
    place.volume->sync_names(*place.inode);
    return {};
  }

  Result<Space> space(const std::string& path) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "find the free space at", path));
    const Place place = find(path);
    if (!place.inode) return refuse(ENOENT, "find the free space at", path);
    const auto mount = std::find_if(mounts_.begin(), mounts_.end(), [&](const auto& candidate) {
      return candidate.second == place.volume;
    });
    return Space{place.volume->free_bytes(), std::uint64_t{1} << 40,
                 static_cast<std::uint64_t>(std::distance(mounts_.begin(), mount))};
  }

  Result<bool> is_memory(const std::string& path) override {
    const Turn turn;
    CAIRN_TRY(outlast_signals(disturbances_, "inspect the file system of", path));
    const Place place = find(path);
    if (!place.inode) return refuse(ENOENT, "inspect the file system of", path);
    return place.volume->medium() == Volume::Medium::memory;
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const Turn turn;
    CAIRN_ASSIGN(const Place place, make_file(path, 0600, "lock"));
    if (place.inode->locked)
      return fail(Code::busy, "cannot lock {}: another process holds it; wait until it has ended",
                  path);
    return std::make_unique<MemoryLock>(place.inode);
  }

  std::uint32_t effective_user() override { return user; }
  std::string boot() override {
    for (const auto& [mount, volume] : mounts_)
      if (volume->medium() == Volume::Medium::memory) return volume->boot();
    return "";
  }

 private:
  struct Place {
    std::shared_ptr<Volume> volume;
    InodePtr parent;  ///< null if there is no such folder, or for the root of a volume
    std::string name;
    InodePtr inode;  ///< null if there is nothing
  };

  Place find(const std::string& path) const {
    if (path.ends_with("/.")) return find(path.substr(0, path.size() - 2));
    for (const auto& [folder, volume] : mounts_) {
      if (path == folder) return {volume, nullptr, "", volume->root()};
      if (!lies_below(path, folder, nullptr)) continue;
      const std::string inside = path.substr(folder.size());
      return {volume, volume->folder_of(inside), name_of_path(path), volume->find(inside)};
    }
    return {};
  }

  Result<Place> find_folder(const std::string& path, std::string_view action) const {
    Place place = find(path);
    if (!place.inode) return refuse(ENOENT, action, path);
    if (place.inode->kind != Kind::folder) return no_folder(action, path);
    return place;
  }

  Result<Place> find_file(const std::string& path, std::uint32_t access) const {
    CAIRN_TRY(outlast_signals(disturbances_, "open", path));
    Place place = find(path);
    if (!place.inode) return refuse(ENOENT, "open", path);
    if (place.inode->kind != Kind::file) return refuse(EISDIR, "open", path);
    if ((place.inode->mode & access) != access) return refuse(EACCES, "open", path);
    return place;
  }

  Result<std::unique_ptr<File>> open_existing(const std::string& path, std::uint32_t access) {
    CAIRN_ASSIGN(const Place place, find_file(path, access));
    const auto mode =
        (access & owner_writes) != 0 ? MemoryFile::Mode::writes : MemoryFile::Mode::reads;
    return std::make_unique<MemoryFile>(place.volume, place.inode, path, now_, disturbances_, mode);
  }

  Result<Place> make_file(const std::string& path, std::uint32_t mode, std::string_view action) {
    CAIRN_TRY(outlast_signals(disturbances_, action, path));
    Place place = find(path);
    if (place.inode) {
      if (place.inode->kind != Kind::file) return refuse(EISDIR, action, path);
      if ((place.inode->mode & owner_writes) == 0) return refuse(EACCES, action, path);
      return place;
    }
    if (!place.parent) return refuse(ENOENT, action, path);
    place.inode = add(place, Kind::file, mode);
    return place;
  }

  /// A file of no other name.
  Result<Place> create_unlinked(const std::string& path, std::uint32_t mode) {
    CAIRN_ASSIGN(Place place, make_file(path, mode, "create"));
    if (place.inode->linked && place.volume->count_names(*place.inode) > 1) {
      place.volume->change_names(*place.parent, {place.name, "", nullptr, {}});
      place.inode = add(place, Kind::file, mode);
    }
    return place;
  }

  InodePtr add(const Place& place, Kind kind, std::uint32_t mode) {
    auto inode = std::make_shared<Inode>();
    inode->kind = kind;
    inode->number = place.volume->next_number();
    inode->mode = mode & ~umask;
    inode->times = {now_(), now_()};
    inode->change_ns = now_();
    place.volume->sync_attributes(*inode);  // there from the beginning, if it is there at all
    place.volume->change_names(*place.parent, {"", place.name, inode, {}});
    return inode;
  }

  Mounts mounts_;
  Now now_;
  Disturbances disturbances_;
};

}  // namespace

std::unique_ptr<Files> make_memory_files(Mounts mounts, std::function<std::int64_t()> now_ns,
                                         Disturbances disturbances) {
  return std::make_unique<MemoryFiles>(std::move(mounts), std::move(now_ns),
                                       std::move(disturbances));
}

}  // namespace cairn::sim
