#include "files/writer_of.hpp"

#include <linux/magic.h>
#include <signal.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "files/posix_file.hpp"

namespace cairn {
namespace {

/// On these file systems the kernel denies a read lease only if a process has the file open for
/// writing. Clients of NFS and SMB also deny it if their server does.
bool denies_lease_for_writers(std::uint64_t type) {
  return is_memory_file_system(type) || is_local_disk_file_system(type) ||
         type == OVERLAYFS_SUPER_MAGIC;
}

Result<bool> has_writer(const Descriptor& reader, const std::string& path) {
  const int number = reader.number();
  // A process that opens the file for writing meanwhile waits until the lease is released, and the
  // kernel signals this process. The default signal, SIGIO, ends a process without a handler;
  // SIGURG does not.
  if (::fcntl(number, F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(number, F_SETLEASE, F_RDLCK) == 0) {
    ::fcntl(number, F_SETLEASE,
            F_UNLCK);  // released at once: a child made by fork may keep the file open
    return false;
  }
  if (errno != EAGAIN) return false;
  CAIRN_ASSIGN(const std::uint64_t type, file_system_of(reader, path));
  return denies_lease_for_writers(type);
}

/// The flags of an open descriptor, as open() takes them; 0 if it is closed.
int flags_of(const std::string& number) {
  std::ifstream info("/proc/self/fdinfo/" + number);
  for (std::string word; info >> word;) {
    if (word != "flags:") continue;
    int flags = 0;
    info >> std::oct >> flags;
    return flags;
  }
  return 0;
}

/// By its name in /proc, since another thread may close the descriptor at any time.
bool is_open_for_writing(const std::string& number, const struct stat& file) {
  struct stat status = {};
  if (::stat(("/proc/self/fd/" + number).c_str(), &status) != 0) return false;
  return status.st_dev == file.st_dev && status.st_ino == file.st_ino &&
         (flags_of(number) & O_ACCMODE) != O_RDONLY;
}

/// True also if the descriptors cannot be listed.
bool has_open_descriptor(const struct stat& file) {
  std::error_code error;
  std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  for (; !error && descriptors != std::filesystem::directory_iterator();
       descriptors.increment(error))
    if (is_open_for_writing(descriptors->path().filename(), file)) return true;
  return static_cast<bool>(error);
}

/// A line of /proc/PID/maps: "7f00-7f01 rw-s 00000000 00:1a 42    /path".
bool is_writable_mapping(const std::string& line, const struct stat& file,
                         const std::string& real_path) {
  std::istringstream fields(line);
  std::string range, rights, offset, device, path;
  std::uint64_t number = 0;
  fields >> range >> rights >> offset >> device >> number >> std::ws;
  std::getline(fields, path);
  if (rights.size() < 4 || rights[1] != 'w' || rights[3] != 's') return false;
  // Btrfs and overlayfs show another device here than fstat does, but the same path.
  const auto same_device = fmt::format("{:02x}:{:02x}", ::major(file.st_dev), ::minor(file.st_dev));
  return (number == file.st_ino && device == same_device) || path == real_path;
}

/// True also if the mappings cannot be listed.
bool has_writable_mapping(const OpenFile& reader) {
  std::error_code error;
  const std::string real_path = std::filesystem::read_symlink(
      fmt::format("/proc/self/fd/{}", reader.descriptor.number()), error);
  std::ifstream mappings("/proc/self/maps");
  std::string line;
  while (std::getline(mappings, line))
    if (is_writable_mapping(line, reader.status, real_path)) return true;
  return !mappings.eof() || error;
}

}  // namespace

Result<Writer> writer_of(const OpenFile& reader, const std::string& path) {
  CAIRN_ASSIGN(const bool is_open, has_writer(reader.descriptor, path));
  if (!is_open) return Writer::none;
  const bool is_own = has_open_descriptor(reader.status) || has_writable_mapping(reader);
  return is_own ? Writer::this_process : Writer::another_process;
}

}  // namespace cairn
