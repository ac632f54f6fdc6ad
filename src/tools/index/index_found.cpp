#include "tools/index/index_found.hpp"

#include <algorithm>
#include <sstream>

#include "base/count.hpp"
#include "prefix/contents.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/unread.hpp"
#include "records/key_tree.hpp"
#include "tools/index/index_actions.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t largest_list = std::uint64_t{1} << 30;
constexpr std::uint64_t most_ranks_found = std::uint64_t{1} << 24;

/// "a/{rank:04}" -> "a/0007"
Result<std::string> name_for(const std::string& pattern, std::uint32_t rank) {
  try {
    return fmt::format(fmt::runtime(pattern), fmt::arg("rank", rank));
  } catch (const fmt::format_error& error) {
    return fail(Code::bad_argument,
                "\"{}\": {}; {{rank}} stands for the rank, {{rank:05}} for its five digits, and "
                "{{{{ for a brace",
                pattern, error.what());
  }
}

Result<std::string> name_below(const PrefixFolder& folder, const std::string& path) {
  std::string name;
  if (lies_below(normalise(path, folder.prefix), folder.prefix, &name)) return name;
  return fail(Code::bad_argument, "{} is not in the prefix directory {}", path, folder.prefix);
}

Result<NamesOfRanks> from_patterns(const IndexCommand& command, const PrefixFolder& folder) {
  if (!command.ranks || command.names.empty())
    return fail(Code::bad_argument,
                "name the files, and the number of ranks that read them (--ranks)");
  NamesOfRanks names(*command.ranks);
  for (std::uint32_t rank = 0; rank < *command.ranks; ++rank)
    for (const std::string& pattern : command.names) {
      CAIRN_ASSIGN(const std::string path, name_for(pattern, rank));
      CAIRN_ASSIGN(std::string name, name_below(folder, path));
      names[rank].push_back(std::move(name));
    }
  return names;
}

/// Reads lines "RANK NAME".
Result<NamesOfRanks> from_list(const IndexCommand& command, Files& files,
                               const PrefixFolder& folder) {
  CAIRN_ASSIGN(const Blob content, read_file(files, command.list_file, largest_list));
  std::istringstream lines(
      std::string(reinterpret_cast<const char*>(content.data()), content.size()));
  NamesOfRanks names(command.ranks.value_or(0));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    const std::size_t blank = std::min(line.find(' '), line.size());
    const auto rank = decimal(line.substr(0, blank));
    if (!rank || blank + 1 >= line.size() || *rank >= command.ranks.value_or(most_ranks_found))
      return fail(Code::bad_argument, "{}:{}: \"{}\" is not a rank{}, a blank and a file name",
                  command.list_file, number, line,
                  command.ranks ? fmt::format(" below {}", *command.ranks) : "");
    CAIRN_ASSIGN(std::string name, name_below(folder, line.substr(blank + 1)));
    if (*rank >= names.size()) names.resize(*rank + 1);
    names[*rank].push_back(std::move(name));
  }
  return names;
}

DatasetInfo info_of_new(const IndexCommand& command, const Site& site, std::size_t ranks,
                        const Listing& dropped) {
  DatasetInfo info;
  info.uuid = {site.clock.now_us(), static_cast<std::int64_t>(site.clock.random() >> 1)};
  for (const Listing* all : {&site.keeper->known().listing, &dropped})
    for (const DatasetRecord& each : *all) {
      info.uuid.time_us = std::max(info.uuid.time_us, each.info.uuid.time_us + 1);
      info.number = std::max(info.number, each.info.number);
      info.checkpoint = std::max(info.checkpoint, each.info.checkpoint);
    }
  ++info.number;
  ++info.checkpoint;
  info.flags = 1U;
  info.ranks = static_cast<std::uint32_t>(ranks);
  info.name = command.name;
  return info;
}

/// A deletion of one of the two would remove the files of the other.
Status refuse_owned(const NamesOfRanks& names, const FileOwners& owners) {
  for (const auto& of_rank : names)
    for (const std::string& name : of_rank)
      if (const auto owner = owners.find(name); owner != owners.end())
        return fail(Code::bad_argument,
                    "{} belongs to dataset {} ({}) already: cairn index drop {} releases it", name,
                    owner->second.number, owner->second.name, owner->second.name);
  return {};
}

}  // namespace

Result<NamesOfRanks> names_of_ranks(const IndexCommand& command, Files& files,
                                    const PrefixFolder& folder) {
  CAIRN_ASSIGN(NamesOfRanks names, command.list_file.empty() ? from_patterns(command, folder)
                                                             : from_list(command, files, folder));
  if (!names.empty()) return names;
  return fail(Code::bad_argument, "no rank has a file");
}

Status look_at_files(const IndexCommand& command, Files& files, const PrefixFolder& folder) {
  CAIRN_ASSIGN(const NamesOfRanks names, names_of_ranks(command, files, folder));
  for (const auto& of_rank : names)
    for (const std::string& name : of_rank)
      CAIRN_TRY(files.info(folder.prefix + "/" + name).map([](const FileInfo&) {}));
  std::vector<std::string> damaged;
  std::vector<UnreadDataset> unread;
  CAIRN_ASSIGN(const Listing listing, read_listing(files, folder, damaged, nullptr, &unread));
  CAIRN_TRY(check_unread(UnreadMatters::add_files, unread));
  if (find_named(listing, command.name) != nullptr)
    return fail(Code::bad_argument, "dataset {} is in {} already", command.name, folder.prefix);
  CAIRN_ASSIGN(const FileOwners owners, owners_of_files(files, folder, listing));
  return refuse_owned(names, owners);
}

Status add_found(IndexChange& change) {
  const IndexCommand& command = change.command;
  const Site& site = change.site;
  CAIRN_ASSIGN(const Dropped dropped, read_dropped(site.files, site.folder));
  FoundDataset found;
  CAIRN_ASSIGN(found.files, names_of_ranks(command, site.files, site.folder));
  found.record.info = info_of_new(command, site, found.files.size(), dropped.listing);
  found.record.job_id = change.settings.job_id;
  found.node = change.settings.node_name;
  found.block_bytes = static_cast<std::uint32_t>(change.settings.block_bytes);
  CAIRN_ASSIGN(const FlushAccount published, publish_found(change.comm, site, std::move(found)));
  const DatasetRecord& record = published.record;
  if (!published.settled)
    note(change.report,
         fmt::format("the record of {} is not complete yet; the next run completes it: {}",
                     record.label(), published.settled.error().text));
  note(change.report, record,
       fmt::format("is added: {} of {}; a restart uses it", count_text(record.files, "file"),
                   count_text(record.info.ranks, "rank")));
  return {};
}

}  // namespace cairn
