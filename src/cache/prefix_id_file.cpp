#include "cache/prefix_id_file.hpp"

#include "files/lock_patiently.hpp"

namespace cairn {
namespace {

using State = RecordedId::State;

constexpr std::uint64_t most_bytes = 1 << 10;
constexpr std::uint32_t for_all = 0777;  // less the umask, as all of <prefix>/.cairn
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

/// Nothing is read through a link below the prefix directory.
Status refuse_link(Files& files, const std::string& root) {
  const auto info = files.info(root);
  if (!info) return tl::unexpected(info.error());
  if (info->kind == Kind::folder) return {};
  return fail(Code::io, "{} is not a directory but a link or file: remove it", root);
}

/// False if another process has recorded an id meanwhile. An error where the file system has no
/// second names.
Result<bool> create_exclusively(Files& files, const std::string& prefix, PrefixId id) {
  const std::string prepared = root_of(prefix) + "/" + std::string(new_start) + text_of(id);
  const auto prepare = [&]() -> Status {
    CAIRN_ASSIGN(const auto file, files.create(prepared, 0666));
    CAIRN_TRY(file->write_at(0, encode(id)));
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

/// What processes have left that died while they created an id; of those that live, each finds the
/// id that is there now.
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

/// Without a lock, where the file system has none, two processes may both replace it.
Result<PrefixId> replace_if_same(Files& files, Clock& clock, const std::string& prefix, PrefixId id,
                                 const RecordedId& before) {
  const auto lock = lock_patiently(files, clock, id_file_of(prefix) + ".lock",
                                   clock.steady_us() + lock_patience_us);
  const RecordedId now = read_prefix_id(files, prefix);
  if (is_same(now, before)) {
    CAIRN_TRY(write_file_atomically(files, id_file_of(prefix), encode(id), true));
    return id;
  }
  if (now.state == State::known) return now.id;
  return fail(Code::io, "{}", now.trouble);
}

}  // namespace

RecordedId read_prefix_id(Files& files, const std::string& prefix) {
  const std::string path = id_file_of(prefix);
  Result<Blob> content = Blob{};
  if (const Status direct = refuse_link(files, root_of(prefix)); !direct)
    content = tl::unexpected(direct.error());
  else
    content = read_file(files, path, most_bytes);
  if (!content) {
    const bool none = is_absent(content.error()) && is_folder(files, prefix);
    return {none ? State::none : State::unreadable, PrefixId::none, content.error().text};
  }
  const auto id = decode_prefix_id(*content);
  if (id) return {State::known, *id, ""};
  const bool newer = id.error().code == Code::newer_format;
  return {newer ? State::unreadable : State::damaged, PrefixId::none,
          fmt::format("{}: {}", path, id.error().text)};
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
      return before.id;
    case State::unreadable:
      return fail(Code::io, "{}", before.trouble);
    case State::damaged:
    case State::copied:
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
  return write_file_atomically(files, id_file_of(prefix), encode(id), true);
}

bool are_two_prefixes(Files& files, const std::string& one, const std::string& other) {
  const auto here = files.info(root_of(one));
  const auto there = files.info(root_of(other));
  return here && there && here->id != there->id;
}

}  // namespace cairn
