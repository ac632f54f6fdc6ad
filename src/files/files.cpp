#include "files/files.hpp"

#include <algorithm>
#include <string_view>

namespace cairn {
namespace {

bool is_absent(const Error& error) { return error.code == Code::not_found; }

Status remove_folder_and_content(Files& files, const std::string& directory) {
  auto listed = files.list(directory);
  if (!listed && is_absent(listed.error())) return {};  // another process has removed it
  CAIRN_ASSIGN(const auto names, std::move(listed));
  const std::string inside = directory + "/";
  for (const std::string& name : names) CAIRN_TRY(remove_all(files, inside + name));
  return files.remove_folder(directory);
}

Status fill_and_rename(Files& files, File& file, const std::string& temporary,
                       const std::string& path, Bytes content, bool durable) {
  CAIRN_TRY(file.write_at(0, content));
  if (durable) CAIRN_TRY(file.sync());
  return files.rename(temporary, path);
}

/// For implementations of Files without a faster way.
class FolderByPath final : public Folder {
 public:
  FolderByPath(Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  Result<Blob> read_file(const std::string& name, std::uint64_t limit_bytes) override {
    return cairn::read_file(files_, path_ + "/" + name, limit_bytes);
  }

 private:
  Files& files_;
  const std::string path_;
};

}  // namespace

Result<std::unique_ptr<Folder>> Files::open_folder(const std::string& path) {
  return std::make_unique<FolderByPath>(*this, path);
}

Status make_folders(Files& files, const std::string& path, std::uint32_t mode) {
  // Begins with the last one, so that existing directories above are not inspected: they may be
  // links, or belong to another user.
  Status made = files.make_folder(path, mode);
  const std::string above = folder_of(path);
  if (made || !is_absent(made.error()) || above == path) return made;
  CAIRN_TRY(make_folders(files, above, mode));
  return files.make_folder(path, mode);
}

Status remove_all(Files& files, const std::string& path) {
  auto found = files.info(path);
  if (!found && is_absent(found.error())) return {};
  CAIRN_ASSIGN(const FileInfo info, std::move(found));
  return info.kind == Kind::folder ? remove_folder_and_content(files, path)
                                   : files.remove_file(path);
}

Status remove_unless(Files& files, Kind wanted, const std::string& path) {
  auto found = files.info(path);
  if (!found && is_absent(found.error())) return {};
  CAIRN_ASSIGN(const FileInfo info, std::move(found));
  return info.kind == wanted ? Status{} : remove_all(files, path);
}

Status make_own(Files& files, const std::string& path) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  constexpr std::uint32_t only_me = 0600;
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::file || info.names < 2) return {};
  const std::string copy_path = path + ".tmp";
  CAIRN_TRY(files.remove_file(copy_path));
  {
    CAIRN_ASSIGN(const auto shared, files.open(path));
    CAIRN_ASSIGN(const auto copy, files.create(copy_path, only_me));
    Blob buffer(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, info.size)));
    for (std::uint64_t at = 0; at < info.size; at += buffer.size()) {
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), info.size - at));
      const MutableBytes piece = MutableBytes(buffer).first(length);
      CAIRN_TRY(shared->read_at(at, piece));
      CAIRN_TRY(copy->write_at(at, piece));
    }
    CAIRN_TRY(copy->sync());
  }
  return files.rename(copy_path, path);
}

Result<Blob> read_file(Files& files, const std::string& path, std::uint64_t limit_bytes) {
  CAIRN_ASSIGN(const auto file, files.open(path));
  return read_whole(*file, path, limit_bytes);
}

Result<Blob> read_whole(File& file, const std::string& path, std::uint64_t limit_bytes) {
  CAIRN_ASSIGN(const std::uint64_t size, file.size());
  if (size > limit_bytes)
    return fail(Code::io, "cannot read {}: it has {} bytes, and at most {} are expected", path,
                size, limit_bytes);
  Blob content(size);
  CAIRN_TRY(file.read_at(0, content));
  return content;
}

Status write_file_atomically(Files& files, const std::string& path, Bytes content, bool durable) {
  const std::string temporary = path + ".tmp";
  CAIRN_ASSIGN(const auto file, files.create(temporary, 0666));
  Status placed = fill_and_rename(files, *file, temporary, path, content, durable);
  if (!placed) {
    if (const Status removed = files.remove_file(temporary); !removed)
      placed.error().text += "; and " + removed.error().text;
    return placed;
  }
  return durable ? files.sync_folder(folder_of(path)) : Status{};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of_path(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: a bare name is its own
}

std::string normalise(const std::string& path, const std::string& base) {
  const std::string whole = path.starts_with('/') ? path : base + "/" + path;
  std::string clean;
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = std::min(whole.find('/', begin), whole.size());
    const auto part = std::string_view(whole).substr(begin, end - begin);
    if (part == "..")
      clean.erase(clean.empty() ? 0 : clean.rfind('/'));
    else if (!part.empty() && part != ".")
      clean.append("/").append(part);
    begin = end + 1;
  }
  return clean.empty() ? "/" : clean;
}

bool lies_below(const std::string& path, const std::string& directory, std::string* relative) {
  const std::string start = directory == "/" ? directory : directory + "/";
  if (!path.starts_with(start) || path.size() == start.size()) return false;
  if (relative != nullptr) *relative = path.substr(start.size());
  return true;
}

}  // namespace cairn
