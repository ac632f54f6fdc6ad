#include "session/routing.hpp"

#include "prefix/own_names.hpp"

namespace cairn {
namespace {

/// What Cairn keeps in the prefix directory, and files on their way to their names there.
bool is_own_name(const std::string& relative) {
  return relative == ".cairn" || relative.starts_with(".cairn/") ||
         name_of_path(relative).starts_with(".cairn.");
}

}  // namespace

void Routing::begin(std::optional<RankFolder> into) {
  const std::scoped_lock lock(mutex_);
  into_ = std::move(into);
  asked_for_.clear();
}

std::optional<std::string> Routing::relative_name(const std::string& path) const {
  std::string relative;
  if (!lies_below(path, prefix_, &relative) || !is_safe_name(relative)) return std::nullopt;
  return relative;
}

Result<std::string> Routing::write_to(const std::string& path) {
  const auto name = relative_name(path);
  if (!name)
    return fail(Code::bad_argument,
                "{} is not below the prefix directory {}; set SCR_PREFIX to a folder above all "
                "checkpoint files",
                path, prefix_);
  if (is_own_name(*name))
    return fail(Code::bad_argument,
                "{} is a name of Cairn's own in the prefix directory {}; choose one that is not "
                ".cairn and does not begin with .cairn.",
                path, prefix_);
  const std::string target = into_ ? into_->file(*name) : prefix_ + "/" + *name;
  if (target.size() > longest_path)
    return fail(Code::bad_argument, "the path {} has {} bytes, {} are allowed", target,
                target.size(), longest_path);
  const std::scoped_lock lock(mutex_);
  if (!asked_for_.contains(*name)) {
    CAIRN_TRY(make_place(target));
    asked_for_.emplace(*name, target);
  }
  return target;
}

/// The program is about to open `target` with calls that follow links.
Status Routing::make_place(const std::string& target) {
  if (into_) return make_folders(files_, folder_of(target), 0700);
  CAIRN_TRY(make_folder_below(files_, prefix_, folder_of(target)));
  const auto there = files_.info(target);
  if (!there)
    return there.error().code == Code::not_found ? Status{} : tl::unexpected(there.error());
  if (there->kind == Kind::file) return {};
  return fail(Code::bad_argument, "{} is {}: remove it, or give the file another name", target,
              there->kind == Kind::link ? "a link, which may lead out of the prefix directory"
                                        : "no regular file");
}

std::map<std::string, std::string> Routing::asked_for() const {
  const std::scoped_lock lock(mutex_);
  return asked_for_;
}

std::optional<std::string> Routing::find_in(const RankRecord& record,
                                            const std::string& path) const {
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
  return found->name;
}

}  // namespace cairn
