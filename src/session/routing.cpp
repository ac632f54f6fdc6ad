#include "session/routing.hpp"

namespace cairn {

void Routing::begin(RankFolder into) {
  const std::scoped_lock lock(mutex_);
  into_ = std::move(into);
  asked_for_.clear();
}

std::optional<std::string> Routing::relative_name(const std::string& path) const {
  std::string relative;
  if (!lies_below(path, prefix_, &relative) || !is_safe_name(relative)) return std::nullopt;
  if (relative.starts_with(".cairn/")) return std::nullopt;  // ours
  return relative;
}

Result<std::string> Routing::write_to(const std::string& path) {
  const auto name = relative_name(path);
  if (!name)
    return fail(Code::bad_argument,
                "{} is not below the prefix directory {}; set SCR_PREFIX to a folder above all "
                "checkpoint files",
                path, prefix_);
  const std::string cached = into_.file(*name);
  if (cached.size() > longest_path)
    return fail(Code::bad_argument, "the path {} has {} bytes, {} are allowed", cached,
                cached.size(), longest_path);
  const std::scoped_lock lock(mutex_);
  if (!asked_for_.contains(*name)) {
    CAIRN_TRY(make_folders(files_, folder_of(cached), 0700));
    asked_for_.emplace(*name, cached);
  }
  return cached;
}

std::map<std::string, std::string> Routing::asked_for() const {
  const std::scoped_lock lock(mutex_);
  return asked_for_;
}

std::optional<std::string> Routing::read_from(const std::string& path, const RankRecord& record,
                                              const RankFolder& folder) const {
  const auto relative = relative_name(path);
  const std::string base = name_of_path(path);
  const FileEntry* by_name = nullptr;
  const FileEntry* by_base = nullptr;
  int same_base = 0;
  for (const FileEntry& file : record.files) {
    if (relative && file.name == *relative) by_name = &file;
    if (name_of_path("/" + file.name) == base) {
      by_base = &file;
      ++same_base;
    }
  }
  const FileEntry* found = by_name != nullptr ? by_name : same_base == 1 ? by_base : nullptr;
  if (found == nullptr) return std::nullopt;
  return folder.file(found->name);
}

}  // namespace cairn
