// The facts about a series for cairn rbio, of which rbio_report makes a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbio/step_check.hpp"
#include "rbio/unpublished.hpp"

namespace cairn {

enum class StepState {
  whole,
  damaged,  ///< a file is damaged or missing
  newer,    ///< of a format that this version does not know
  unread,   ///< a file cannot be read now
};
std::string_view name_of(StepState state);
StepState state_of(const Error& error);

struct StepFacts {
  std::uint64_t step = 0;
  std::string path;
  StepState state = StepState::whole;
  std::string reason;  ///< why it is not whole
  std::uint64_t bytes = 0;
  std::uint64_t parts = 0;
  std::optional<std::uint32_t> ranks;    ///< that wrote it
  std::optional<rbio::Attempt> attempt;  ///< of its first part
};

/// From headers and tables, without reading the data.
struct SeriesFacts {
  std::string directory;
  std::vector<StepFacts> steps;  ///< in the order in which they were written
  std::vector<rbio::UnpublishedStep> unpublished;
};

struct PartFacts {
  std::string path;
  std::optional<rbio::PartIndex> index;
  std::string reason;  ///< why there is none
};

/// A step, or one part of it.
struct ShownFacts {
  std::string path;
  StepState state = StepState::whole;
  std::string reason;
  std::vector<PartFacts> parts;
};

struct CheckedStep {
  std::uint64_t step = 0;
  std::string path;
  StepState state = StepState::whole;
  rbio::StepCheck check;
};

struct CheckedFacts {
  std::string directory;
  std::vector<CheckedStep> steps;  ///< in the order in which they were written
};

// None of these takes a lock or changes a file: a run may be writing. A step that the run deletes
// while it is looked at is left out, and one that it writes again is looked at again.

/// not_found if the directory is no series; the text says what to give instead.
Result<SeriesFacts> facts_of_series(Files& files, const std::string& directory);
/// `path`: directory of a step, or a part file.
Result<ShownFacts> facts_of_step(Files& files, const std::string& path);
/// Every byte of all steps, or of one.
Result<CheckedFacts> check_series(Files& files, const std::string& directory,
                                  std::optional<std::uint64_t> step);

/// Numbers for messages: "steps 1, 2, 7", "no step".
std::string text_of_steps(const std::vector<StepFacts>& steps);

}  // namespace cairn
