#include "session/routing.hpp"

#include "prefix/own_names.hpp"

namespace cairn {
OwnNames::OwnNames(const RankRecord& record) : dataset_(record.dataset.uuid) {
  for (const FileEntry& file : record.files) {
    names_.insert(file.name);
    const auto [known, is_first] = by_base_.emplace(name_of_path("/" + file.name), file.name);
    if (!is_first) known->second.clear();
  }
}

std::optional<std::string> OwnNames::only_one_called(const std::string& base) const {
  const auto found = by_base_.find(base);
  if (found == by_base_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

void Routing::begin(std::optional<RankFolder> into) {
  const std::scoped_lock lock(mutex_);
  into_ = std::move(into);
  asked_for_.clear();
  refused_.clear();
  takes_names_ = false;
}

std::optional<std::string> Routing::relative_name(const std::string& path) const {
  std::string relative;
  if (!lies_below(path, prefix_, &relative) || !is_safe_name(relative)) return std::nullopt;
  return relative;
}

Result<std::string> Routing::write_to(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  auto target = find_place(path);
  if (target)
    refused_.erase(path);
  else
    refused_.emplace(path, target.error());
  return target;
}

std::optional<Routing::Refused> Routing::refused() const {
  const std::scoped_lock lock(mutex_);
  if (refused_.empty()) return std::nullopt;
  return Refused{refused_.begin()->first, refused_.begin()->second};
}

bool Routing::takes_names() const {
  const std::scoped_lock lock(mutex_);
  return takes_names_;
}

Result<std::string> Routing::find_place(const std::string& path) {
  const auto name = relative_name(path);
  if (!name)
    return fail(Code::bad_argument,
                "{} is not below the prefix directory {}; set SCR_PREFIX to a directory above all "
                "checkpoint files",
                path, prefix_);
  if (is_own_name(*name))
    return fail(Code::bad_argument,
                "{} is a reserved name in the prefix directory {}; choose a name that is not "
                ".cairn and does not begin with .cairn.",
                path, prefix_);
  const std::string target = into_ ? into_->file(*name) : prefix_ + "/" + *name;
  if (target.size() > longest_path)
    return fail(Code::bad_argument, "the path {} has {} bytes; at most {} are allowed", target,
                target.size(), longest_path);
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
  takes_names_ = true;
  if (there->kind == Kind::file) return {};
  return fail(Code::bad_argument, "{} is {}: remove it, or give the file another name", target,
              there->kind == Kind::link ? "a link, which may lead out of the prefix directory"
                                        : "not a regular file");
}

std::map<std::string, std::string> Routing::asked_for() const {
  const std::scoped_lock lock(mutex_);
  return asked_for_;
}

/// The names of a dataset's files never change, so they are sorted once for all that is looked for.
const OwnNames& Routing::names_of(const RankRecord& record) const {
  if (own_.dataset() != record.dataset.uuid) own_ = OwnNames(record);
  return own_;
}

std::optional<std::string> Routing::find_by_name(const RankRecord& record,
                                                 const std::string& path) const {
  auto name = relative_name(path);
  const std::scoped_lock lock(mutex_);
  return name && names_of(record).has(*name) ? std::move(name) : std::nullopt;
}

std::optional<std::string> Routing::find_by_base(const RankRecord& record,
                                                 const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  return names_of(record).only_one_called(name_of_path(path));
}

}  // namespace cairn
