// What a restart would do now: the decisions of the job, followed without doing anything.
#pragma once

#include <functional>
#include <string>

#include "tools/job_facts.hpp"

namespace cairn {

struct Forecast {
  enum class Outcome {
    zero,     ///< nothing to restart from
    cache,    ///< `dataset` is taken from the caches
    prefix,   ///< `dataset` is taken from the prefix directory
    refused,  ///< the run is refused
  };
  Outcome outcome = Outcome::zero;
  DatasetInfo dataset;
  std::string reason;  ///< why it is refused, or starts from scratch although there are checkpoints
  std::string before;  ///< what happens first: "it is copied to ... first"; may be empty
  std::vector<std::string> failed;  ///< labels of those that are tried in vain
};

/// What is wrong with the files of a dataset in the prefix directory, as far as it is seen.
struct FilesTrouble {
  std::vector<std::string> lines;
  bool may_pass = false;  ///< the files cannot be read now: a later look may find them whole
};
using LookAtFiles = std::function<FilesTrouble(const DatasetRecord&)>;
/// How many of them have another time of change than was recorded.
using CountChanged = std::function<std::size_t(const DatasetRecord&)>;

Forecast forecast(const JobFacts& facts, const Settings& settings, const LookAtFiles& look);

/// All of an unfinished flush is there, or in these caches: of those of the job, the next run ends
/// it, and of what was scavenged, cairn rebuild. `also` is what is brought there before.
bool can_be_ended(const UnfinishedFlush& flush, const std::vector<CachedFacts>& caches,
                  const std::vector<CachedFacts>& also = {});

}  // namespace cairn
