// The names of what Cairn keeps in the prefix directory (docs/format/prefix.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "records/rank_record.hpp"

namespace cairn {

/// <prefix>/.cairn and what is in it; `prefix` is absolute and normalised.
struct PrefixFolder {
  std::string prefix;

  std::string root() const { return prefix + "/.cairn"; }

  /// When and why the job is to stop; `cairn halt` writes it, the library reads it.
  std::string halt() const { return root() + "/halt"; }
  /// What the program has set by SCR_Config; may be missing.
  std::string app_settings() const { return root() + "/app_settings"; }
  /// What the last run wrote down of itself, for the commands; may be missing.
  std::string last_run() const { return root() + "/last_run"; }
  /// Locked while that is changed.
  std::string last_run_lock() const { return root() + "/last_run.lock"; }
  /// Locked while the halt file is changed.
  std::string halt_lock() const { return root() + "/halt.lock"; }
  /// What the runs of the job have done, for people and for programs.
  std::string log() const { return root() + "/log"; }
  std::string json_log() const { return root() + "/log.json"; }
  /// How often restarts from checkpoints that only the caches have were begun; may be missing.
  std::string attempts() const { return root() + "/attempts"; }
  /// What was deleted while no run of its job was there to remove it from the caches; may be
  /// missing.
  std::string deleted_list() const { return root() + "/deleted"; }
  std::string owner() const { return root() + "/owner"; }
  std::string owner_lock() const { return root() + "/owner.lock"; }
  std::string current() const { return root() + "/current"; }
  /// A copy of all dataset records in one file; may be missing, and is made anew from them then.
  std::string listing() const { return root() + "/listing"; }

  /// Datasets that are there: all of each, and durable.
  std::string datasets() const { return root() + "/datasets"; }
  std::string dataset(const DatasetInfo& dataset) const {
    return datasets() + "/" + folder_name(dataset);
  }
  /// Datasets that are no longer there, though their files are; they can be put back.
  std::string dropped() const { return root() + "/dropped"; }
  std::string dropped(const DatasetInfo& dataset) const {
    return dropped() + "/" + folder_name(dataset);
  }
  /// What the owner of an epoch prepares. All that it publishes is renamed from here, so that
  /// closing the folder, by a rename too, ends its rights.
  std::string epoch(std::uint64_t epoch) const { return root() + "/epoch." + text(epoch); }
  std::string closed(std::uint64_t epoch) const { return root() + "/closed." + text(epoch); }
  std::string pending(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + folder_name(dataset);
  }

  /// On its way between the datasets and the dropped ones.
  std::string in_transit(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/" + std::string(transit_start) + folder_name(dataset);
  }
  static constexpr std::string_view transit_start = "dropped.";

  /// Taken out, its files being removed.
  std::string deleted(std::uint64_t of_epoch, const DatasetInfo& dataset) const {
    return epoch(of_epoch) + "/deleted." + folder_name(dataset);
  }

  static std::string folder_name(const DatasetInfo& dataset) {
    return "dataset." + text(dataset.number) + "." + text_of(dataset.uuid);
  }
  /// In the folder of a dataset.
  static std::string record(const std::string& folder) { return folder + "/dataset"; }
  /// What the dataset record becomes where it is a plan that nobody is to carry out any more.
  static std::string withdrawn(const std::string& folder) { return folder + "/withdrawn"; }
  /// The records of ranks [number * ranks_per_manifest, ...) one after the other.
  static std::string manifest(const std::string& folder, std::uint64_t number) {
    return folder + "/manifest." + text(number);
  }

  /// What was saved from the caches of nodes after the job had died, each as it was there
  /// (docs/format/cache.md).
  std::string scavenged() const { return root() + "/scavenged"; }
  std::string scavenged(const std::string& node) const { return scavenged() + "/" + node; }
  /// What was rebuilt for ranks of which nothing was saved; laid out as one more node.
  std::string rebuilt() const { return root() + "/rebuilt"; }

  /// Who has carried out his part of the plan; gone when the dataset is settled.
  static std::string markers(const std::string& folder) { return folder + "/done"; }

  /// The program's own name of a file, and where it is until its dataset has been published.
  std::string file(const FileEntry& entry) const { return prefix + "/" + entry.name; }
  std::string staged(const RankRecord& record, std::size_t file) const;
  /// What the names of all staged files of a dataset begin with.
  static std::string staged_start(const Uuid& dataset) {
    return ".cairn." + text_of(dataset) + ".";
  }

 private:
  static std::string text(std::uint64_t number) { return std::to_string(number); }
};

}  // namespace cairn
