// The names of Cairn's files in the prefix directory (docs/format/prefix.md).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "records/rank_record.hpp"

namespace cairn {

/// The files of the job in <prefix>/.cairn, which `root` is.
struct JobFiles {
  std::string root;

  /// When and why the job must stop; `cairn halt` writes it, the library reads it.
  std::string halt() const { return root + "/halt"; }
  /// Locked during changes of the halt file.
  std::string halt_lock() const { return root + "/halt.lock"; }
  /// The settings of SCR_Config; may be missing.
  std::string app_settings() const { return root + "/app_settings"; }
  /// The record of the last run, for the commands; may be missing.
  std::string last_run() const { return root + "/last_run"; }
  /// Locked during changes of last_run().
  std::string last_run_lock() const { return root + "/last_run.lock"; }
  /// The logs of the runs, as text and as JSON.
  std::string log() const { return root + "/log"; }
  std::string json_log() const { return root + "/log.json"; }
};

/// What was saved from caches after the job had died, in the layout of docs/format/cache.md.
struct SavedCaches {
  std::string root;  ///< <prefix>/.cairn

  /// Copies of the caches of nodes.
  std::string scavenged() const { return root + "/scavenged"; }
  std::string of_node(const std::string& node) const { return scavenged() + "/" + node; }
  /// The rebuilt parts of ranks of which nothing was saved, in the layout of a further node.
  std::string rebuilt() const { return root + "/rebuilt"; }
};

/// The folder of a dataset in <prefix>/.cairn, wherever it is there.
struct DatasetFolder {
  static std::string folder_name(const DatasetInfo& dataset) {
    return fmt::format("dataset.{}.{}", dataset.number, text_of(dataset.uuid));
  }
  /// The name begins so while the dataset is between the published and the dropped ones.
  static constexpr std::string_view transit_start = "dropped.";
  /// The beginning of the names of all staged files of a dataset.
  static std::string staged_start(const Uuid& dataset) {
    return ".cairn." + text_of(dataset) + ".";
  }

  /// The dataset record.
  static std::string record(const std::string& folder) { return folder + "/dataset"; }
  /// The name of the dataset record of a withdrawn plan.
  static std::string withdrawn(const std::string& folder) { return folder + "/withdrawn"; }
  /// The records of ranks [number * ranks_per_manifest, ...) one after the other.
  static std::string manifest(const std::string& folder, std::uint64_t number) {
    return fmt::format("{}/manifest.{}", folder, number);
  }
  /// The markers of done parts of the plan; removed when the dataset is settled.
  static std::string markers(const std::string& folder) { return folder + "/done"; }
};

/// <prefix>/.cairn and its content; `prefix` is absolute and normalised.
struct PrefixFolder {
  std::string prefix;

  std::string root() const { return prefix + "/.cairn"; }
  JobFiles job() const { return {root()}; }
  SavedCaches saved() const { return {root()}; }

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
    return datasets() + "/" + DatasetFolder::folder_name(dataset);
  }
  /// Datasets that are no longer listed, while their files stay; they can be restored.
  std::string dropped() const { return root() + "/dropped"; }
  std::string dropped(const DatasetInfo& dataset) const {
    return dropped() + "/" + DatasetFolder::folder_name(dataset);
  }
  /// The working folder of the owner of an epoch. It publishes by renames out of this folder. So a
  /// later owner, who renames the folder to close it, ends its rights.
  std::string epoch(std::uint64_t epoch) const {
    return root() + "/epoch." + std::to_string(epoch);
  }
  std::string closed(std::uint64_t epoch) const {
    return root() + "/closed." + std::to_string(epoch);
  }
  std::string pending(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + DatasetFolder::folder_name(dataset);
  }

  /// A dataset between the published and the dropped ones.
  std::string in_transit(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + std::string(DatasetFolder::transit_start) +
           DatasetFolder::folder_name(dataset);
  }
  /// A deleted dataset whose files are being removed.
  std::string deleted(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/deleted." + DatasetFolder::folder_name(dataset);
  }

  /// The path with the program's own name of a file, and the path where it is until its dataset is
  /// published.
  std::string file(const FileEntry& entry) const { return prefix + "/" + entry.name; }
  std::string staged(const RankRecord& record, std::size_t file) const;
};

}  // namespace cairn
