// The names of Cairn's files in the prefix directory (docs/format/prefix.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "records/rank_record.hpp"

namespace cairn {

/// <prefix>/.cairn and its content; `prefix` is absolute and normalised.
struct PrefixFolder {
  std::string prefix;

  std::string root() const { return prefix + "/.cairn"; }

  /// When and why the job must stop; `cairn halt` writes it, the library reads it.
  std::string halt() const { return root() + "/halt"; }
  /// The settings of SCR_Config; may be missing.
  std::string app_settings() const { return root() + "/app_settings"; }
  /// The record of the last run, for the commands; may be missing.
  std::string last_run() const { return root() + "/last_run"; }
  /// Locked during changes of last_run().
  std::string last_run_lock() const { return root() + "/last_run.lock"; }
  /// Locked during changes of the halt file.
  std::string halt_lock() const { return root() + "/halt.lock"; }
  /// The logs of the runs, as text and as JSON.
  std::string log() const { return root() + "/log"; }
  std::string json_log() const { return root() + "/log.json"; }
  /// The number of restarts from checkpoints that only the caches have; may be missing.
  std::string attempts() const { return root() + "/attempts"; }
  /// Datasets deleted while no run of their job could remove them from the caches; may be missing.
  std::string deleted_list() const { return root() + "/deleted"; }
  std::string owner() const { return root() + "/owner"; }
  std::string owner_lock() const { return root() + "/owner.lock"; }
  std::string current() const { return root() + "/current"; }
  /// A copy of all dataset records in one file. If it is missing, it is made again from them.
  std::string listing() const { return root() + "/listing"; }

  /// Published datasets: complete and durable.
  std::string datasets() const { return root() + "/datasets"; }
  std::string dataset(const DatasetInfo& dataset) const {
    return datasets() + "/" + folder_name(dataset);
  }
  /// Datasets that are no longer listed, while their files stay; they can be restored.
  std::string dropped() const { return root() + "/dropped"; }
  std::string dropped(const DatasetInfo& dataset) const {
    return dropped() + "/" + folder_name(dataset);
  }
  /// The working folder of the owner of an epoch. It publishes by renames out of this folder. So a
  /// later owner, who renames the folder to close it, ends its rights.
  std::string epoch(std::uint64_t epoch) const { return root() + "/epoch." + text(epoch); }
  std::string closed(std::uint64_t epoch) const { return root() + "/closed." + text(epoch); }
  std::string pending(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + folder_name(dataset);
  }

  /// A dataset between the published and the dropped ones.
  std::string in_transit(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + std::string(transit_start) + folder_name(dataset);
  }
  static constexpr std::string_view transit_start = "dropped.";

  /// A deleted dataset whose files are being removed.
  std::string deleted(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/deleted." + folder_name(dataset);
  }

  static std::string folder_name(const DatasetInfo& dataset) {
    return "dataset." + text(dataset.number) + "." + text_of(dataset.uuid);
  }
  /// The dataset record in the folder of a dataset.
  static std::string record(const std::string& folder) { return folder + "/dataset"; }
  /// The name of the dataset record of a withdrawn plan.
  static std::string withdrawn(const std::string& folder) { return folder + "/withdrawn"; }
  /// The records of ranks [number * ranks_per_manifest, ...) one after the other.
  static std::string manifest(const std::string& folder, std::uint64_t number) {
    return folder + "/manifest." + text(number);
  }

  /// Copies of the caches of nodes, saved after the job had died, in the layout of
  /// docs/format/cache.md.
  std::string scavenged() const { return root() + "/scavenged"; }
  std::string scavenged(const std::string& node) const { return scavenged() + "/" + node; }
  /// The rebuilt parts of ranks of which nothing was saved, in the layout of a further node.
  std::string rebuilt() const { return root() + "/rebuilt"; }

  /// The markers of done parts of the plan; removed when the dataset is settled.
  static std::string markers(const std::string& folder) { return folder + "/done"; }

  /// The path with the program's own name of a file, and the path where it is until its dataset is
  /// published.
  std::string file(const FileEntry& entry) const { return prefix + "/" + entry.name; }
  std::string staged(const RankRecord& record, std::size_t file) const;
  /// The beginning of the names of all staged files of a dataset.
  static std::string staged_start(const Uuid& dataset) {
    return ".cairn." + text_of(dataset) + ".";
  }

 private:
  static std::string text(std::uint64_t number) { return std::to_string(number); }
};

}  // namespace cairn
