#include "recovery/written.hpp"

#include <algorithm>

#include "base/local_time.hpp"
#include "redundancy/protect.hpp"

namespace cairn {
namespace {

/// Null where the part was not written as that generation, or has its checksums already.
const HeldRecord* find_written(const HeldPart& part, std::uint64_t generation) {
  const HeldRecord* written = nullptr;
  for (const HeldRecord& held : part.own) {
    if (held.record.encoding.generation != generation) continue;
    if (!held.record.exposure) return nullptr;
    if (written == nullptr) written = &held;
  }
  return written;
}

/// After a sync that failed, the kernel may drop what it could not write, and the next sync
/// succeeds: no later run may take checksums of that.
void forget_written(Files& files, HeldPart& part, Error& why) {
  std::erase_if(part.own, [&](const HeldRecord& held) {
    if (!held.record.exposure) return false;
    const Status removed =
        files.remove_file(held.committed ? part.folder.record() : part.folder.prepared());
    if (!removed) why.text += "; and its record stays: " + removed.error().text;
    return true;
  });
}

Status sync_part(Files& files, HeldPart& part, const RankRecord& record) {
  const RankFolder& folder = part.folder;
  CAIRN_ASSIGN(const bool in_memory, files.is_memory(folder.path));
  if (in_memory) return {};
  Status of_data;
  Status synced = RankBlocks(files, folder, record).sync(&of_data);
  if (!of_data) forget_written(files, part, synced.error());
  CAIRN_TRY(synced);
  // No name of the way there is durable either.
  const std::string dataset = folder_of(folder.path);
  CAIRN_TRY(files.sync_folder(dataset));
  return files.sync_folder(folder_of(dataset));
}

}  // namespace

Status check_written(Files& files, const RankFolder& folder, const RankRecord& record) {
  if (record.exposure->boot.empty() || record.exposure->boot != files.boot())
    return fail(Code::lost,
                "the node {}, on which rank {} wrote, has been started anew since, or this is "
                "another one: what was not synced may be gone",
                record.node(), record.rank);
  for (const FileEntry& was : record.files) {
    const auto now = files.info(folder.file(was.name));
    if (!now)
      return fail(now.error().code == Code::not_found ? Code::lost : now.error().code,
                  "of what rank {} wrote: {}", record.rank, now.error().text);
    if (now->kind != Kind::file || now->size != was.size ||
        now->times.modify_ns != was.times.modify_ns)
      return fail(Code::lost, "{} has changed since rank {} wrote it, and it has no checksum yet",
                  folder.file(was.name), record.rank);
  }
  return {};
}

Status settle_written(Files& files, HeldPart& part, std::uint64_t generation) {
  const HeldRecord* written = find_written(part, generation);
  if (written == nullptr) return {};
  const RankRecord& old = written->record;
  CAIRN_TRY(check_written(files, part.folder, old));
  // Whether it was committed only all ranks together know.
  const bool is_committed = written->committed;
  HeldRecord settled{old, {}, is_committed};
  settled.record.exposure.reset();
  RankBlocks blocks(files, part.folder, settled.record);
  CAIRN_TRY(take_checksums(blocks, settled.record));
  CAIRN_TRY(sync_part(files, part, settled.record));
  CAIRN_TRY(check_written(files, part.folder, old));
  settled.sealed = encode(settled.record);
  CAIRN_ASSIGN(const bool in_memory, files.is_memory(part.folder.path));
  const std::string path = is_committed ? part.folder.record() : part.folder.prepared();
  CAIRN_TRY(remove_unless(files, Kind::file, path));
  CAIRN_TRY(write_file_atomically(files, path, settled.sealed, !in_memory));
  const bool was_prepared_too =
      is_committed && std::any_of(part.own.begin(), part.own.end(), [](const auto& held) {
        return !held.committed && held.record.exposure;
      });
  if (was_prepared_too) CAIRN_TRY(files.remove_file(part.folder.prepared()));
  std::erase_if(part.own, [](const HeldRecord& held) { return held.record.exposure.has_value(); });
  part.own.insert(part.own.begin(), std::move(settled));
  return {};
}

std::string describe_exposure(const Exposure& exposure) {
  return fmt::format("it was written at {} and not protected yet when its run ended",
                     format_local_time(exposure.since_us / 1'000'000));
}

}  // namespace cairn
