#include "cache/prefix_id_file.hpp"

#include "files/lock_patiently.hpp"

namespace cairn {
namespace {

using State = RecordedId::State;

constexpr std::uint64_t most_bytes = 1 << 16;
constexpr std::uint32_t for_all = 0777;  // minus the umask, like everything in <prefix>/.cairn
constexpr std::int64_t lock_patience_us = 2'000'000;
constexpr std::string_view new_start = "id.new.";

std::string root_of(const std::string& prefix) { return prefix + "/.cairn"; }
std::string id_file_of(const std::string& prefix) { return root_of(prefix) + "/id"; }

bool is_absent(const Error& error) { return error.code == Code::not_found; }

/// The prefix directory itself may be a link.
bool is_folder(Files& files, const std::string& path) {
  const auto info = files.info(path + "/.");
  return info && info->kind == Kind::folder;
}

/// The information about .cairn. Fails if it is a link: nothing is read through a link below the
/// prefix directory.
Result<FileInfo> info_of_root(Files& files, const std::string& prefix) {
  const std::string root = root_of(prefix);
  CAIRN_ASSIGN(const FileInfo info, files.info(root));
  if (info.kind == Kind::folder) return info;
  return fail(Code::io, "{} is not a directory but a link or file: remove it", root);
}

/// The record for the present path and inode.
Result<Blob> record_for(Files& files, const std::string& prefix, PrefixId id) {
  CAIRN_ASSIGN(const FileInfo root, info_of_root(files, prefix));
  return encode(PrefixIdRecord{id, prefix, root.id.number});
}

Status write_record(Files& files, const std::string& prefix, PrefixId id) {
  CAIRN_ASSIGN(const Blob record, record_for(files, prefix, id));
  return write_file_atomically(files, id_file_of(prefix), record, true);
}

/// False if another process has recorded an id meanwhile. Fails if the file system has no hard
/// links.
Result<bool> create_exclusively(Files& files, const std::string& prefix, PrefixId id) {
  const std::string prepared = root_of(prefix) + "/" + std::string(new_start) + text_of(id);
  const auto prepare = [&]() -> Status {
    CAIRN_ASSIGN(const Blob record, record_for(files, prefix, id));
    CAIRN_ASSIGN(const auto file, files.create(prepared, 0666));
    CAIRN_TRY(file->write_at(0, record));
    return file->sync();
  };
  Status linked = prepare();
  if (linked) linked = files.link(prepared, id_file_of(prefix));
  Status removed = files.remove_file(prepared);
  if (!linked && read_prefix_id(files, prefix).state == State::known) return false;
  CAIRN_TRY(linked);
  CAIRN_TRY(removed);
  for (const std::string& folder : {root_of(prefix), prefix + "/."})
    CAIRN_TRY(files.sync_folder(folder));
  return true;
}

/// Removes the temporary files of processes that died while they created an id. Live processes may
/// lose theirs too: they then find the id that exists now.
void remove_prepared(Files& files, const std::string& prefix) {
  const auto names = files.list(root_of(prefix));
  for (const std::string& name : names.value_or(std::vector<std::string>{}))
    if (name.starts_with(new_start)) (void)files.remove_file(root_of(prefix) + "/" + name);
}

bool is_same(const RecordedId& a, const RecordedId& b) {
  const auto state = [](const RecordedId& one) {
    return one.state == State::copied ? State::known : one.state;
  };
  return state(a) == state(b) && a.id == b.id;
}

/// If the file system has no locks, two processes may both replace it.
Result<PrefixId> replace_if_same(Files& files, Clock& clock, const std::string& prefix, PrefixId id,
                                 const RecordedId& before) {
  const auto lock = lock_patiently(files, clock, id_file_of(prefix) + ".lock",
                                   clock.steady_us() + lock_patience_us);
  const RecordedId now = read_prefix_id(files, prefix);
  if (is_same(now, before)) {
    CAIRN_TRY(write_record(files, prefix, id));
    return id;
  }
  if (now.state == State::known) return now.id;
  return fail(Code::io, "another process changed {}; its id is read again at the next SCR_Init{}{}",
              id_file_of(prefix), now.trouble.empty() ? "" : ": ", now.trouble);
}

RecordedId judge(Files& files, const std::string& prefix, const FileInfo& root,
                 const PrefixIdRecord& record) {
  const bool is_claimed_there =
      record.path != prefix && is_id_of_another(files, record.id, prefix, record.path);
  const RecordOrigin origin = origin_of(record, prefix, root.id.number, is_claimed_there);
  const bool is_other = origin == RecordOrigin::elsewhere;
  return {is_other ? State::copied : State::known, record.id, "", record.path,
          origin == RecordOrigin::here};
}

}  // namespace

RecordOrigin origin_of(const PrefixIdRecord& record, const std::string& path, std::uint64_t inode,
                       bool is_claimed_there) {
  const bool is_same_inode = record.inode == inode;
  if (record.path == path) return is_same_inode ? RecordOrigin::here : RecordOrigin::same_path;
  return is_same_inode && !is_claimed_there ? RecordOrigin::renamed : RecordOrigin::elsewhere;
}

RecordedId read_prefix_id(Files& files, const std::string& prefix) {
  const std::string path = id_file_of(prefix);
  const auto root = info_of_root(files, prefix);
  Result<Blob> content = Blob{};
  if (root)
    content = read_file(files, path, most_bytes);
  else
    content = tl::unexpected(root.error());
  if (!content) {
    const bool none = is_absent(content.error()) && is_folder(files, prefix);
    return {none ? State::none : State::unreadable, PrefixId::none, content.error().text};
  }
  const auto record = decode_prefix_id_record(*content);
  if (record) return judge(files, prefix, *root, *record);
  const bool newer = record.error().code == Code::newer_format;
  return {newer ? State::unreadable : State::damaged, PrefixId::none,
          fmt::format("{}: {}", path, record.error().text)};
}

PrefixId draw_prefix_id(Clock& clock) {
  PrefixId id{clock.random()};
  while (id == PrefixId::none) id = PrefixId{clock.random()};
  return id;
}

Result<PrefixId> record_prefix_id(Files& files, Clock& clock, const std::string& prefix,
                                  PrefixId id, const RecordedId& before) {
  switch (before.state) {
    case State::known:
      if (before.is_in_place) return before.id;
      return replace_if_same(files, clock, prefix, before.id, before);
    case State::unreadable:
      return fail(Code::io, "{}", before.trouble);
    case State::copied:
      return replace_if_same(files, clock, prefix, id == before.id ? draw_prefix_id(clock) : id,
                             before);
    case State::damaged:
      return replace_if_same(files, clock, prefix, id, before);
    case State::none:
      break;
  }
  CAIRN_TRY(files.make_folder(root_of(prefix), for_all));
  const auto created = create_exclusively(files, prefix, id);
  Result<PrefixId> there = id;
  if (!created)
    there = replace_if_same(files, clock, prefix, id, before);
  else if (!*created)
    there = read_prefix_id(files, prefix).id;
  if (there) remove_prepared(files, prefix);
  return there;
}

Status replace_prefix_id(Files& files, Clock& clock, const std::string& prefix, PrefixId id) {
  CAIRN_TRY(files.make_folder(root_of(prefix), for_all));
  const auto lock = lock_patiently(files, clock, id_file_of(prefix) + ".lock",
                                   clock.steady_us() + lock_patience_us);
  return write_record(files, prefix, id);
}

bool is_id_of_another(Files& files, PrefixId id, const std::string& prefix,
                      const std::string& other) {
  const auto here = info_of_root(files, prefix);
  const auto there = info_of_root(files, other);
  if (!here || !there || here->id == there->id) return false;
  const auto content = read_file(files, id_file_of(other), most_bytes);
  if (!content) return false;
  const auto record = decode_prefix_id_record(*content);
  return record && record->id == id;
}

}  // namespace cairn
