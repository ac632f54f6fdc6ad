// An event of a run: a line of the log in the prefix directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cairn {

/// An event, or a transfer of bytes from one place to another. Empty and absent fields are not
/// logged.
struct Event {
  enum class Kind { event, transfer };

  /// SCR's name: "CHECKPOINT_END" for an event, "ENCODE" for a transfer.
  std::string name = {};
  Kind kind = Kind::event;
  std::string note = {};          ///< of an event: further text
  std::string code = {};          ///< of a failure: name_of(Code)
  std::uint64_t ranks = 0;        ///< of a run that begins, else 0
  std::string from = {};          ///< of a transfer
  std::string to = {};            ///< of a transfer, or the place of a new dataset
  std::uint64_t dataset = 0;      ///< number, or 0
  std::string dataset_name = {};  ///< the name that the program gave it
  std::string scheme = {};        ///< the redundancy scheme there
  std::uint64_t set_size = 0;     ///< ranks of the redundancy set, or 0
  bool output = false;            ///< in JSON only: the dataset is an output
  std::optional<double> seconds = {};
  std::optional<std::uint64_t> bytes = {};  ///< over all ranks
  std::optional<std::uint64_t> files = {};  ///< over all ranks

  /// The rate of a transfer, if it is known.
  std::optional<double> bytes_per_s() const;
};

/// Where an event comes from.
struct EventOrigin {
  std::string host;
  std::string job_id;
};

/// "2026-12-24T18:00:00: host=n0, jobid=7, event=CHECKPOINT_END, dset=1, name="ckpt.1",
/// secs=0.143", in local time, without a newline.
std::string text_line(const Event& event, const EventOrigin& origin, std::int64_t now_us);

/// The same as a JSON object in one line (docs/format/log.md).
std::string json_line(const Event& event, const EventOrigin& origin, std::int64_t now_us);

}  // namespace cairn
