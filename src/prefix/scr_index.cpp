#include "prefix/scr_index.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "records/key_tree.hpp"
#include "records/rank_record.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;
constexpr std::uint64_t index_version = 2;
constexpr std::uint64_t summary_version = 6;

Result<KeyTree> read_tree(Files& files, const std::string& path, std::uint64_t offset = 0) {
  CAIRN_ASSIGN(const Blob content, read_file(files, path, largest_file));
  if (offset > content.size()) return fail(Code::corrupt, "{} is cut short", path);
  auto tree = decode_key_tree(Bytes(content).subspan(offset));
  if (!tree) return fail(tree.error().code, "{}: {}", path, tree.error().text);
  return tree;
}

Status check_version(const KeyTree& tree, const std::string& path, std::uint64_t known) {
  if (tree.number("VERSION") == known) return {};
  return fail(Code::newer_format,
              "{} is of version \"{}\", and only version {}, of SCR 3, is known", path,
              tree.value("VERSION"), known);
}

/// As SCR writes it: 0x and hexadecimal digits.
std::optional<std::uint32_t> checksum_of(std::string_view text) {
  if (!text.starts_with("0x")) return {};
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + 2, end, value, 16);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

/// The files of all ranks: a tree over several files, whose leaves hold some ranks each.
class RankFiles {
 public:
  RankFiles(Files& files, std::string root) : files_(files), root_(std::move(root)) {}

  Result<std::vector<std::vector<ScrFile>>> read() {
    CAIRN_ASSIGN(const KeyTree tree, read_tree(files_, root_));
    const auto count = tree.number("RANKS");
    if (!count || *count == 0 || *count > INT32_MAX)
      return fail(Code::corrupt, "{} does not contain the number of ranks", root_);
    count_ = *count;
    CAIRN_TRY(read(tree, root_));
    if (ranks_.size() != count_)
      return fail(Code::corrupt, "{} lists the files of only {} of {} ranks", root_, ranks_.size(),
                  count_);
    std::vector<std::vector<ScrFile>> all;
    for (auto& [rank, mine] : ranks_) all.push_back(std::move(mine));
    return all;
  }

 private:
  Status read(const KeyTree& tree, const std::string& path) {
    const auto level = tree.number("LEVEL");
    const KeyTree* ranks = tree.find({"RANK"});
    // Below a level there are lower ones only, and every leaf adds a rank: so this ends.
    if (!level || *level >= above_ || ranks == nullptr || ranks->below.empty())
      return fail(Code::corrupt, "{} does not list the files of the ranks", path);
    for (const KeyTree& one : ranks->below)
      CAIRN_TRY(*level == 0 ? take_rank(one, path) : descend(one, *level, path));
    return {};
  }

  Status descend(const KeyTree& one, std::uint64_t level, const std::string& path) {
    const std::string suffix = one.value("FILE");
    const auto offset = one.number("OFFSET");
    if (suffix.empty() || suffix.find('/') != std::string::npos || !offset)
      return fail(Code::corrupt, "{} does not say where the other ranks are listed", path);
    CAIRN_ASSIGN(const KeyTree tree, read_tree(files_, root_ + suffix, *offset));
    const std::uint64_t outer = std::exchange(above_, level);
    CAIRN_TRY(read(tree, root_ + suffix));
    above_ = outer;
    return {};
  }

  Status take_rank(const KeyTree& one, const std::string& path) {
    const auto rank = decimal(one.key);
    if (!rank || *rank >= count_ || ranks_.contains(*rank))
      return fail(Code::corrupt, "{} lists an invalid or repeated rank \"{}\"", path, one.key);
    std::vector<ScrFile>& mine = ranks_[*rank];
    const KeyTree* named = one.find({"FILE"});
    if (named == nullptr) return {};
    for (const KeyTree& file : named->below) {
      if (!is_safe_name(file.key))
        return fail(Code::corrupt, "{} names a file \"{}\", which is not in the prefix directory",
                    path, file.key);
      if (is_own_name(file.key))
        return fail(Code::corrupt, "{} names a file \"{}\", which is one of Cairn's own", path,
                    file.key);
      mine.push_back({file.key, file.number("SIZE"), checksum_of(file.value("CRC"))});
    }
    return {};
  }

  Files& files_;
  const std::string root_;
  std::uint64_t above_ = 64;  ///< levels that are being read
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, std::vector<ScrFile>> ranks_;
};

/// The facts about a dataset that both the index and the summary have.
Status take_facts(const KeyTree& tree, const std::string& path, ScrDataset& dataset) {
  const KeyTree* facts = tree.find({"DSET"});
  const auto created = facts != nullptr ? facts->number("CREATED") : std::nullopt;
  const auto files = facts != nullptr ? facts->number("FILES") : std::nullopt;
  const auto bytes = facts != nullptr ? facts->number("SIZE") : std::nullopt;
  if (!created || *created == 0 || *created > INT64_MAX || !files || !bytes)
    return fail(Code::corrupt, "{} does not say when the dataset was made, or which files it has",
                path);
  if (facts->number("ID") != dataset.id)
    return fail(Code::corrupt, "{} belongs to another dataset, {}", path, facts->value("ID"));
  dataset.created_us = static_cast<std::int64_t>(*created);
  dataset.files = *files;
  dataset.bytes = *bytes;
  dataset.job_id = facts->value("JOBID");
  dataset.output = facts->number("FLAG_OUTPUT") == 1U;
  const auto checkpoint = facts->number("CKPT");
  dataset.checkpoint = facts->number("FLAG_CKPT").value_or(checkpoint ? 1 : 0) != 0
                           ? std::max<std::uint64_t>(checkpoint.value_or(dataset.id), 1)
                           : 0;
  return {};
}

Status read_summary(Files& files, const std::string& folder, ScrDataset& dataset) {
  const std::string path = folder + "/summary.scr";
  CAIRN_ASSIGN(const KeyTree summary, read_tree(files, path));
  CAIRN_TRY(check_version(summary, path, summary_version));
  if (summary.number("COMPLETE") != 1U)
    return fail(Code::invalid, "SCR has not marked it as complete in {}", path);
  const Uuid in_index = dataset.uuid();
  CAIRN_TRY(take_facts(summary, path, dataset));
  if (in_index.time_us == 0 || dataset.uuid() == in_index) return {};
  return fail(Code::corrupt, "{} belongs to another dataset, which was made at another time", path);
}

class IndexReader {
 public:
  IndexReader(Files& files, const std::string& prefix)
      : files_(files), prefix_(prefix), path_(scr_index_path(prefix)) {}

  Result<ScrIndex> read() {
    if (const auto there = files_.info(path_); !there && there.error().code == Code::not_found)
      return fail(Code::not_found, "there is no {}: SCR has copied nothing to this directory",
                  path_);
    CAIRN_ASSIGN(const KeyTree tree, read_tree(files_, path_));
    CAIRN_TRY(check_version(tree, path_, index_version));
    ScrIndex index;
    index.current = tree.value("CURRENT");
    const auto names = names_of_ids(tree);
    if (const KeyTree* datasets = tree.find({"DSET"}))
      for (const KeyTree& entry : datasets->below)
        index.datasets.push_back(dataset_of(entry, names));
    std::sort(index.datasets.begin(), index.datasets.end(), [](const auto& a, const auto& b) {
      return std::tie(a.id, a.created_us, a.name) < std::tie(b.id, b.created_us, b.name);
    });
    guess_times(index.datasets);
    return index;
  }

 private:
  using Names = std::map<std::string, std::string>;

  /// A completed dataset whose entry in the index is damaged keeps its place by its number: a
  /// restart must not skip it without a message.
  static void guess_times(std::vector<ScrDataset>& datasets) {
    std::int64_t before_us = 0;
    for (ScrDataset& dataset : datasets) {
      if (dataset.is_damaged() && dataset.created_us == 0) {
        dataset.created_us = std::min(before_us, INT64_MAX - 1) + 1;
        dataset.checkpoint = dataset.id;
      }
      before_us = std::max(before_us, dataset.created_us);
    }
  }

  /// NAME/<name>/DSET/<id>, which SCR writes beside the entries.
  static Names names_of_ids(const KeyTree& tree) {
    Names names;
    if (const KeyTree* all = tree.find({"NAME"}))
      for (const KeyTree& name : all->below)
        if (const KeyTree* ids = name.find({"DSET"}))
          for (const KeyTree& id : ids->below) names.emplace(id.key, name.key);
    return names;
  }

  ScrDataset dataset_of(const KeyTree& entry, const Names& names) {
    ScrDataset dataset;
    const KeyTree* facts = entry.find({"DSET"});
    if (facts != nullptr) dataset.name = facts->value("NAME");
    if (const auto named = names.find(entry.key); dataset.name.empty() && named != names.end())
      dataset.name = named->second;
    dataset.id = decimal(entry.key).value_or(0);
    dataset.failed = entry.find({"FAILED"}) != nullptr;
    dataset.complete = entry.number("COMPLETE") == 1U;
    if (const Status taken = take(entry, dataset); !taken) {
      dataset.trouble = taken.error().text;
      dataset.may_pass = taken.error().code == Code::io;
    }
    return dataset;
  }

  Status take(const KeyTree& entry, ScrDataset& dataset) const {
    if (dataset.id == 0) return fail(Code::corrupt, "it has no number in {}", path_);
    if (!dataset.complete) {
      (void)take_facts(entry, path_, dataset);  // for its facts
      return fail(Code::invalid, "SCR has not marked it as complete in {}", path_);
    }
    const KeyTree* facts = entry.find({"DSET"});
    if (facts == nullptr || !facts->number("CREATED"))
      return read_summary(files_, scr_dataset_folder(prefix_, dataset.id), dataset);
    return take_facts(entry, path_, dataset);
  }

  Files& files_;
  const std::string& prefix_;
  const std::string path_;
};

}  // namespace

std::string scr_index_path(const std::string& prefix) { return prefix + "/.scr/index.scr"; }

std::string scr_dataset_folder(const std::string& prefix, std::uint64_t id) {
  return fmt::format("{}/.scr/scr.dataset.{}", prefix, id);
}

bool may_have_scr_index(Files& files, const std::string& prefix) {
  const auto info = files.info(scr_index_path(prefix));
  return info || info.error().code != Code::not_found;
}

Uuid ScrDataset::uuid() const { return {created_us, static_cast<std::int64_t>(id & INT64_MAX)}; }

std::string ScrDataset::label() const { return fmt::format("SCR's dataset {} ({})", id, name); }

Result<ScrIndex> read_scr_index(Files& files, const std::string& prefix) {
  return IndexReader(files, prefix).read();
}

/// Reads the files of incomplete datasets too, to know to which dataset the present files belong.
void read_scr_details(Files& files, const std::string& prefix, ScrDataset& dataset) {
  if (dataset.id == 0 || std::exchange(dataset.has_details, true)) return;
  const std::string folder = scr_dataset_folder(prefix, dataset.id);
  auto ranks = RankFiles(files, folder + "/rank2file").read();
  if (ranks) dataset.ranks = *std::move(ranks);
  if (!dataset.trouble.empty()) return;
  Status known = read_summary(files, folder, dataset);
  if (known && !ranks) known = tl::unexpected(ranks.error());
  if (known) return;
  dataset.trouble = known.error().text;
  dataset.may_pass = known.error().code == Code::io;
}

}  // namespace cairn
