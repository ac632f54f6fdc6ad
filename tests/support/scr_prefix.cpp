#include "support/scr_prefix.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "records/key_tree_writer.hpp"

namespace cairn {

ScrPrefix::ScrPrefix(std::string prefix) : prefix_(std::move(prefix)) {
  std::filesystem::create_directories(prefix_ + "/.scr");
}

ScrPrefix::Dataset& ScrPrefix::add(std::uint64_t id, std::size_t ranks) {
  Dataset& dataset = datasets_[id];
  ScrDataset& facts = dataset.facts;
  facts.id = facts.checkpoint = id;
  facts.name = "ckpt." + std::to_string(id);
  facts.created_us = 1'600'000'000'000'000 + static_cast<std::int64_t>(id);
  facts.job_id = "77";
  facts.ranks.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    give(dataset, rank, facts.name + "/rank_" + std::to_string(rank), content_of(id, rank));
  return dataset;
}

void ScrPrefix::give(Dataset& dataset, std::size_t rank, const std::string& name,
                     const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << content;
  dataset.facts.ranks[rank].push_back({name, {}, {}});
  dataset.facts.files += 1;
  dataset.facts.bytes += content.size();
}

std::string ScrPrefix::content_of(std::uint64_t id, std::size_t rank) {
  return std::string(1000 * (rank + 1) + id, static_cast<char>('a' + (id + rank) % 26));
}

void ScrPrefix::write(const std::string& current, const std::string& version) const {
  KeyTree index{"", {key_value("VERSION", version)}};
  if (!current.empty()) index.below.push_back(key_value("CURRENT", current));
  KeyTree all{"DSET", {}};
  KeyTree names{"NAME", {}};
  for (const auto& [id, dataset] : datasets_) {
    KeyTree entry{std::to_string(id), {key_value("FLUSHED", "2026-11-21T10:00:00")}};
    if (dataset.has_facts_in_index) entry.below.push_back(facts_of(dataset));
    entry.below.push_back(key_value("COMPLETE", dataset.complete_in_index ? "1" : "0"));
    if (dataset.facts.failed) entry.below.push_back(key_value("FAILED", "2026-11-21T11:00:00"));
    all.below.push_back(entry);
    names.below.push_back({dataset.facts.name, {key_value("DSET", entry.key)}});
    write_dataset(dataset);
  }
  index.below.push_back(names);
  index.below.push_back(all);
  put("index.scr", index);
}

void ScrPrefix::put(const std::string& name, const KeyTree& tree) const {
  const Blob content = KeyTreeWriter::file(tree);
  std::ofstream(prefix_ + "/.scr/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
}

KeyTree ScrPrefix::facts_of(const Dataset& dataset) {
  const ScrDataset& facts = dataset.facts;
  const auto text = [](auto number) { return std::to_string(number); };
  return {"DSET",
          {key_value("ID", text(facts.id)), key_value("NAME", facts.name),
           key_value("FLAG_CKPT", facts.checkpoint != 0 ? "1" : "0"),
           key_value("FLAG_OUTPUT", facts.output ? "1" : "0"),
           key_value("CREATED", text(facts.created_us)), key_value("USER", "ann"),
           key_value("JOBID", facts.job_id), key_value("CKPT", text(facts.checkpoint)),
           key_value("FILES", text(facts.files)), key_value("SIZE", text(facts.bytes)),
           key_value("COMPLETE", "1")}};
}

void ScrPrefix::write_dataset(const Dataset& dataset) const {
  const std::string folder = "scr.dataset." + std::to_string(dataset.facts.id) + "/";
  std::filesystem::create_directories(prefix_ + "/.scr/" + folder);
  put(folder + "summary.scr",
      {"",
       {key_value("VERSION", "6"), key_value("COMPLETE", dataset.complete_in_summary ? "1" : "0"),
        facts_of(dataset)}});
  const std::size_t ranks = dataset.facts.ranks.size();
  const std::size_t each = dataset.ranks_in_leaf;
  KeyTree leaves{"RANK", {}};
  for (std::size_t first = 0; first < ranks; first += each) {
    const std::string suffix = ".0." + std::to_string(first);
    const KeyTree leaf = leaf_of(dataset, first, std::min(first + each, ranks));
    put(folder + "rank2file" + (ranks <= each ? "" : suffix), leaf);
    leaves.below.push_back(
        {std::to_string(first), {key_value("OFFSET", "0"), key_value("FILE", suffix)}});
  }
  if (ranks > each)
    put(folder + "rank2file",
        {"", {key_value("LEVEL", "1"), key_value("RANKS", std::to_string(ranks)), leaves}});
}

KeyTree ScrPrefix::leaf_of(const Dataset& dataset, std::size_t first, std::size_t end) {
  KeyTree ranks{"RANK", {}};
  for (std::size_t rank = first; rank < end; ++rank) {
    KeyTree files{"FILE", {}};
    for (const ScrFile& file : dataset.facts.ranks[rank]) {
      KeyTree entry{file.name, {}};
      if (file.size) entry.below.push_back(key_value("SIZE", std::to_string(*file.size)));
      if (file.crc32) entry.below.push_back(key_value("CRC", fmt::format("{:#x}", *file.crc32)));
      files.below.push_back(entry);
    }
    ranks.below.push_back({std::to_string(rank), {files}});
  }
  return {"",
          {key_value("LEVEL", "0"), key_value("RANKS", std::to_string(dataset.facts.ranks.size())),
           ranks}};
}

}  // namespace cairn
