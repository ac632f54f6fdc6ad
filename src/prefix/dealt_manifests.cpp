#include "prefix/dealt_manifests.hpp"

#include "prefix/check.hpp"
#include "prefix/manifest.hpp"
#include "prefix/messages.hpp"
#include "prefix/site.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

int rank_for(std::uint64_t hash, const Communicator& comm) {
  return static_cast<int>(hash % static_cast<std::uint64_t>(comm.size()));
}

void put(Encoder& out, const FileMark& mark) {
  out.u64(mark.name);
  out.u64(mark.size);
  out.i64(mark.modify_ns);
}

FileMark get_mark(Decoder& in) {
  FileMark mark;
  mark.name = in.u64();
  mark.size = in.u64();
  mark.modify_ns = in.i64();
  return mark;
}

/// Collective. Each rank hears of the files whose names fall to it, of those of the dataset in
/// `folder`: `write` says what. Errors are agreed; damage is one, or is passed over.
enum class Damage { is_error, is_passed_over };
template <class Write, class Read>
Status deal_files(Communicator& comm, Files& files, const std::string& folder,
                  const DatasetRecord& dataset, Damage damage, Write write, Read read) {
  Status status;
  std::map<int, Encoder> messages;
  std::vector<std::string> unread;
  visit_dealt(comm, dataset.manifests(), [&](std::size_t i) {
    if (!status) return;
    status = visit_manifest(files, folder, dataset, static_cast<std::uint32_t>(i), unread,
                            [&](const RankRecord& record) {
                              for (const FileEntry& file : record.files) {
                                const std::uint64_t name = hash_of_name(file.name);
                                write(file, name, messages[rank_for(name, comm)]);
                              }
                            });
    if (status && !unread.empty()) status = fail(Code::corrupt, "{}", unread.front());
    const bool damaged = !status && is_damage(status.error().code);
    if (damaged && damage == Damage::is_passed_over) status = {};
  });
  CAIRN_TRY(agree(comm, std::move(status)));
  exchange_messages(comm, std::move(messages), read);
  return {};
}

}  // namespace

Result<bool> treat_dealt(Communicator& comm, Files& files, const std::string& folder,
                         const std::vector<std::uint64_t>& manifests,
                         const std::function<Status(const RankRecord&)>& treat) {
  bool whole = true;
  Status treated;
  const auto treat_manifest = [&](std::uint64_t number) -> Status {
    CAIRN_ASSIGN(const Manifest manifest,
                 read_manifest(files, DatasetFolder::manifest(folder, number)));
    for (const RankRecord& record : manifest.records) CAIRN_TRY(treat(record));
    whole = whole && manifest.whole;
    return {};
  };
  visit_dealt(comm, manifests.size(), [&](std::size_t i) {
    if (treated) treated = treat_manifest(manifests[i]);
  });
  CAIRN_TRY(agree(comm, std::move(treated)));
  return allreduce(comm, whole ? 1 : 0, Reduce::min) != 0;
}

Result<NameHashes> deal_names(Communicator& comm, Files& files, const std::string& folder,
                              const DatasetRecord& dataset,
                              const std::function<void(const FileEntry&)>& visit) {
  NameHashes names;
  CAIRN_TRY(deal_files(
      comm, files, folder, dataset, Damage::is_error,
      [&](const FileEntry& file, std::uint64_t name, Encoder& out) {
        out.u64(name);
        if (visit) visit(file);
      },
      [&](int, Decoder& in) { names.insert(in.u64()); }));
  return names;
}

Result<NameHashes> files_of(Communicator& comm, Files& files, const PrefixFolder& folder,
                            const std::set<FileMark>& asked, const Listing& datasets) {
  std::map<int, Encoder> questions;
  for (const FileMark& mark : asked) put(questions[rank_for(mark.name, comm)], mark);
  std::multimap<FileMark, int> askers;
  exchange_messages(comm, std::move(questions),
                    [&](int asker, Decoder& in) { askers.emplace(get_mark(in), asker); });
  std::map<int, Encoder> answers;
  for (const DatasetRecord& dataset : datasets) {
    if (allreduce(comm, askers.empty() ? 0 : 1, Reduce::max) == 0) break;
    std::map<std::uint64_t, FileMark> theirs;
    CAIRN_TRY(deal_files(
        comm, files, folder.dataset(dataset.info), dataset, Damage::is_passed_over,
        [](const FileEntry& file, std::uint64_t name, Encoder& out) {
          put(out, FileMark{name, file.size, file.times.modify_ns});
        },
        [&](int, Decoder& in) {
          const FileMark mark = get_mark(in);
          theirs[mark.name] = mark;
        }));
    std::erase_if(askers, [&](const auto& question) {
      const auto& [mark, asker] = question;
      const auto same = theirs.find(mark.name);
      const bool is_theirs = same != theirs.end() && same->second.size == mark.size &&
                             is_kept_time(mark.modify_ns, same->second.modify_ns);
      if (is_theirs) answers[asker].u64(mark.name);
      return is_theirs;
    });
  }
  NameHashes taken;
  exchange_messages(comm, std::move(answers), [&](int, Decoder& in) { taken.insert(in.u64()); });
  return taken;
}

}  // namespace cairn
