#include "recovery/commit.hpp"

#include <algorithm>
#include <array>

#include "comm/group.hpp"
#include "redundancy/block_check.hpp"
#include "redundancy/closed_files.hpp"
#include "redundancy/protect.hpp"
#include "redundancy/replicas.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t private_file = 0600;

Status write_prepared(Files& files, bool durable, const RankFolder& folder, Bytes content) {
  CAIRN_ASSIGN(const auto file, files.create(folder.prepared(), private_file));
  CAIRN_TRY(file->write_at(0, content));
  return durable ? file->sync() : Status{};
}

/// Data, parity and prepared record are on the store, with their names.
Status prepare(Files& files, Store& store, const RankFolder& folder, const RankRecord& record,
               Bytes content, Status* synced) {
  CAIRN_TRY(write_prepared(files, store.durable(), folder, content));
  if (store.durable()) {
    Status done = RankBlocks(files, folder, record).sync(synced);
    // Else a run after a crash would take what is read now for what was written.
    if (synced != nullptr && !*synced) CAIRN_TRY(files.remove_file(folder.record()));
    CAIRN_TRY(done);
  }
  return store.sync_names(record.dataset);
}

std::vector<std::string> paths_of(const RankFolder& folder, const RankRecord& record) {
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files) paths.push_back(folder.file(file.name));
  return paths;
}

Status check_still_intact(Files& files, const RankFolder& folder, const RankRecord& record) {
  RankBlocks blocks(files, folder, record);
  if (find_erasures(blocks, record).data.empty()) return {};
  return fail(Code::corrupt, "files of rank {} in {} do not match their checksums", record.rank,
              folder.path);
}

/// `ready`: the files are the program's, and it has closed them; `unchanged` finds out afterwards
/// whether the checksums are those of what they were to be, and gets how that has ended so far.
template <class Unchanged>
Status encode_and_commit(Communicator& comm, Files& files, Store& store, const RankFolder& folder,
                         RankRecord& record, std::uint64_t encode_bytes, Status ready,
                         Unchanged unchanged, bool& has_committed, Status* synced = nullptr) {
  Group set(comm, record.encoding.members);
  const Status encoded = protect(set, files, folder, record, encode_bytes,
                                 store.durable() ? "" : store.spare(record.rank));
  Status status = ready ? encoded : std::move(ready);
  const Blob sealed = encode(record);
  const Blob content = join_records(sealed, exchange_records(set, record.encoding, sealed));
  status = unchanged(std::move(status));
  if (status) status = prepare(files, store, folder, record, content, synced);
  CAIRN_TRY(agree(comm, std::move(status)));
  return agree(comm, commit_prepared(files, store, folder, has_committed));
}

}  // namespace

Status commit_prepared(Files& files, const Store& store, const RankFolder& folder,
                       bool& has_committed) {
  if (!has_committed) CAIRN_TRY(files.rename(folder.prepared(), folder.record()));
  has_committed = true;
  return store.durable() ? files.sync_folder(folder.path) : Status{};
}

Status protect_and_commit(Communicator& comm, Files& files, Store& store, const RankFolder& folder,
                          RankRecord& record, const Settings& settings, const RankRecord* intact_by,
                          std::string* open_elsewhere, bool* has_committed) {
  const bool by_program = intact_by == nullptr;
  const std::vector<std::string> paths = paths_of(folder, record);
  Status ready = by_program ? check_closed(files, record, paths, open_elsewhere) : Status{};
  const auto unchanged = [&](Status encoded) -> Status {
    CAIRN_TRY(encoded);
    return by_program ? check_unchanged(files, record, paths)
                      : check_still_intact(files, folder, *intact_by);
  };
  bool is_named = false;
  Status done = encode_and_commit(comm, files, store, folder, record, settings.encode_bytes,
                                  std::move(ready), unchanged, is_named);
  if (has_committed != nullptr) *has_committed = is_named;
  return done;
}

Status protect_written(Communicator& comm, Files& files, Store& store, const RankFolder& folder,
                       RankRecord& record, std::uint64_t encode_bytes, LateCommit& mine) {
  const std::vector<std::string> paths = paths_of(folder, record);
  // What the program has cut or removed fails the encoding first: the change is the reason.
  const auto unchanged_files = [&](Status encoded) -> Status {
    Status unchanged = check_unchanged(files, record, paths);
    if (unchanged) return encoded;
    const Code code = unchanged.error().code;
    if (code != Code::invalid && code != Code::not_found) return encoded ? unchanged : encoded;
    return fail(
        Code::invalid,
        "a file of dataset {} ({}) has changed after the call that completed it, and before "
        "it was protected, so the dataset is invalid: {}",
        record.dataset.number, record.dataset.name, unchanged.error().text);
  };
  return encode_and_commit(comm, files, store, folder, record, encode_bytes, mine.synced,
                           unchanged_files, mine.has_committed, &mine.synced);
}

Status commit_written(Communicator& comm, Files& files, const RankFolder& folder,
                      const RankRecord& record, std::string* open_elsewhere) {
  const std::vector<std::string> paths = paths_of(folder, record);
  Status status = check_closed(files, record, paths, open_elsewhere);
  if (status) status = check_unchanged(files, record, paths);
  if (status) status = write_prepared(files, false, folder, encode(record));
  CAIRN_TRY(agree(comm, std::move(status)));
  return agree(comm, files.rename(folder.prepared(), folder.record()));
}

std::uint64_t later_generation(Communicator& comm, Clock& clock, std::uint64_t old) {
  std::array<std::int64_t, 2> newest = {clock.now_us(), static_cast<std::int64_t>(old)};
  comm.allreduce(newest, Reduce::max);
  return static_cast<std::uint64_t>(std::max(newest[1] + 1, newest[0]));
}

Status rewrite_record(Files& files, const Store& store, const RankFolder& folder, Bytes content) {
  CAIRN_TRY(remove_unless(files, Kind::file, folder.record()));
  CAIRN_TRY(write_file_atomically(files, folder.record(), content, store.durable()));
  return remove_all(files, folder.prepared());
}

}  // namespace cairn
