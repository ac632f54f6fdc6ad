// What a run has done, and when: a line of the log in the prefix directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cairn {

/// Something that has happened, or bytes that have gone from one place to another. What is empty or
/// absent is not told.
struct Event {
  enum class Kind { event, transfer };

  /// SCR's name of it: "CHECKPOINT_END", or of a transfer "ENCODE".
  std::string name = {};
  Kind kind = Kind::event;
  std::string note = {};          ///< an event's: what else there is to say
  std::string code = {};          ///< of a failure: name_of(Code)
  std::uint64_t ranks = 0;        ///< of a run that begins; 0: none begins
  std::string from = {};          ///< a transfer's
  std::string to = {};            ///< likewise; and where a dataset is that was made
  std::uint64_t dataset = 0;      ///< number; 0: it concerns none
  std::string dataset_name = {};  ///< as the program calls it
  std::string scheme = {};        ///< that protects the dataset there
  std::uint64_t set_size = 0;     ///< over how many ranks; 0: over none
  std::optional<double> seconds = {};
  std::optional<std::uint64_t> bytes = {};  ///< over all ranks
  std::optional<std::uint64_t> files = {};  ///< over all ranks

  /// A transfer's rate, where it is known.
  std::optional<double> bytes_per_s() const;
};

/// Whose event it is.
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
