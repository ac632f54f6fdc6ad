#include "volume.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::sim {
namespace {

constexpr std::uint32_t open_to_all = 01777;
/// What a disk writes at once: of a page there are all new bytes after a power failure, or none.
constexpr std::size_t page_bytes = 512;

InodePtr make_root() {
  auto root = std::make_shared<Inode>();
  root->kind = Kind::folder;
  root->mode = root->synced_mode = open_to_all;
  return root;
}

InodePtr copy_of(const Inode& inode) {
  auto copy = std::make_shared<Inode>();
  copy->kind = inode.kind;
  copy->number = inode.number;
  copy->mode = inode.mode;
  copy->times = inode.times;
  copy->change_ns = inode.change_ns;
  copy->synced_mode = inode.synced_mode;
  copy->synced_times = inode.synced_times;
  copy->content = inode.content;
  for (const auto& [name, below] : inode.names) copy->names[name] = copy_of(*below);
  return copy;
}

std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const auto slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

void take_over(Inode::Names& names, const Inode::Change& change) {
  if (!change.removed.empty()) names.erase(change.removed);
  if (change.inode) names[change.added] = change.inode;
}

/// Those of either state: nothing tells that they go with the bytes.
void settle_attributes(Inode& file, Chance& chance) {
  const bool same = file.mode == file.synced_mode &&
                    file.times.access_ns == file.synced_times.access_ns &&
                    file.times.modify_ns == file.synced_times.modify_ns;
  if (!same && chance.one_in(2)) {
    file.mode = file.synced_mode;
    file.times = file.synced_times;
  }
  file.synced_mode = file.mode;
  file.synced_times = file.times;
}

/// Pages of either state; the length of either.
void settle_file(Inode& file, Chance& chance) {
  settle_attributes(file, chance);
  if (file.content != file.synced_content) {
    const auto kind = chance.below(3);  // nothing, all, some
    if (kind == 0) file.content = file.synced_content;
    if (kind == 2) {
      Blob mixed = chance.one_in(2) ? file.content : file.synced_content;
      for (std::size_t at = 0; at < mixed.size(); at += page_bytes) {
        const Blob& source = chance.one_in(2) ? file.content : file.synced_content;
        const std::size_t end = std::min(at + page_bytes, mixed.size());
        for (std::size_t i = at; i < end; ++i)
          mixed[i] = i < source.size() ? source[i] : std::byte{0};
      }
      file.content = std::move(mixed);
    }
    file.synced_content = file.content;
  }
}

void settle_names(Inode& folder, Chance& chance) {
  const auto kind = chance.below(4);  // nothing, all, the first so many, any
  const std::size_t first = folder.changes.empty() ? 0 : chance.below(folder.changes.size());
  for (std::size_t i = 0; i < folder.changes.size(); ++i) {
    bool kept = kind == 1 || (kind == 2 && i < first) || (kind == 3 && chance.one_in(2));
    if (const auto& both = folder.changes[i].both) {
      if (*both) kept = **both;
      *both = kept;
    }
    if (kept) take_over(folder.synced_names, folder.changes[i]);
  }
  folder.changes.clear();
  folder.names = folder.synced_names;
}

void settle(Inode& inode, Chance& chance) {
  inode.locked = false;
  if (inode.kind == Kind::file) return settle_file(inode, chance);
  settle_names(inode, chance);
  for (const auto& [name, child] : inode.names) settle(*child, chance);
}

std::uint64_t count_names_in(const Inode& folder, const Inode& file) {
  std::uint64_t count = 0;
  for (const auto& [name, child] : folder.names)
    count += child->kind == Kind::folder ? count_names_in(*child, file) : child.get() == &file;
  return count;
}

void sync_all_in(const Volume& volume, Inode& inode) {
  volume.sync_attributes(inode);
  if (inode.kind == Kind::file) return volume.sync_content(inode);
  volume.sync_names(inode);
  for (const auto& [name, child] : inode.names) sync_all_in(volume, *child);
}

void collect_files(const Inode& folder, const std::string& path, std::vector<std::string>& found) {
  for (const auto& [name, child] : folder.names) {
    const std::string inside = path + "/" + name;
    if (child->kind == Kind::folder)
      collect_files(*child, inside, found);
    else
      found.push_back(inside);
  }
}

}  // namespace

Volume::Volume(Medium medium, std::string node)
    : medium_(medium), node_(std::move(node)), root_(make_root()) {}

InodePtr Volume::find(std::string_view path) const {
  InodePtr inode = root_;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    const auto child = inode->names.find(path.substr(0, end));
    if (inode->kind != Kind::folder || child == inode->names.end()) return nullptr;
    inode = child->second;
    path.remove_prefix(end);
  }
  return inode;
}

InodePtr Volume::folder_of(std::string_view path) const {
  const InodePtr folder = find(split_last(path).first);
  return folder && folder->kind == Kind::folder ? folder : nullptr;
}

void Volume::change_names(Inode& folder, Inode::Change change) const {
  take_over(folder.names, change);
  if (medium_ == Medium::disk) folder.changes.push_back(std::move(change));
}

void Volume::sync_content(Inode& file) const {
  if (medium_ == Medium::disk) file.synced_content = file.content;
}

void Volume::sync_attributes(Inode& inode) const {
  inode.synced_mode = inode.mode;
  inode.synced_times = inode.times;
}

void Volume::sync_names(Inode& folder) const {
  if (medium_ == Medium::disk) folder.synced_names = folder.names;
  for (const Inode::Change& change : folder.changes)
    if (change.both) *change.both = true;
  folder.changes.clear();
}

bool Volume::write(Inode& file, std::uint64_t offset, Bytes data, std::int64_t now_ns) {
  const std::uint64_t end = offset + data.size();
  const std::uint64_t grown = end > file.content.size() ? end - file.content.size() : 0;
  const std::uint64_t missing = grown > free_bytes_ ? grown - free_bytes_ : 0;
  const std::size_t written = data.size() - std::min<std::uint64_t>(missing, data.size());
  if (free_bytes_ != plenty) free_bytes_ -= grown - missing;
  if (written > 0) {
    if (offset + written > file.content.size()) file.content.resize(offset + written);
    std::copy_n(data.begin(), written, file.content.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  file.times.modify_ns = now_ns;
  file.change_ns = now_ns;
  return missing == 0;
}

void Volume::power_failure(Chance& chance) {
  if (medium_ == Medium::memory) return wipe();
  settle(*root_, chance);
}

std::uint64_t Volume::count_names(const Inode& file) const { return count_names_in(*root_, file); }

void Volume::sync_all() const { sync_all_in(*this, *root_); }

Volume Volume::copy() const {
  Volume copy(medium_, node_);
  copy.starts_ = starts_;
  copy.root_ = copy_of(*root_);
  copy.last_number_ = last_number_;
  return copy;
}

void Volume::lose(const std::string& path) const {
  const InodePtr folder = folder_of(path);
  change_names(*folder, {name_of_path(path), "", nullptr, {}});
  sync_names(*folder);
}

void Volume::wipe() {
  root_ = make_root();
  ++starts_;
}

std::vector<std::string> Volume::files_below(const std::string& folder) const {
  std::vector<std::string> found;
  const InodePtr start = find(folder);
  if (start && start->kind == Kind::folder) collect_files(*start, folder, found);
  return found;
}

void lose_unsynced(Inode& file, Chance& chance) { settle_file(file, chance); }

std::string damage(Inode& file, Chance& chance) {
  std::string what;
  if (!file.content.empty() && !chance.one_in(4)) {
    const std::uint64_t bit = chance.below(8 * file.content.size());
    file.content[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    what = fmt::format("bit {} flips", bit);
  } else {
    file.content.resize(chance.below(file.content.size() + 2));
    what = fmt::format("cut to {} bytes", file.content.size());
  }
  file.synced_content = file.content;
  return what;
}

}  // namespace cairn::sim
