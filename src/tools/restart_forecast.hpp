// Forecasts a restart: follows the decisions of the job without any change.
#pragma once

#include <functional>
#include <string>

#include "tools/job_facts.hpp"

namespace cairn {

struct Forecast {
  enum class Outcome {
    scratch,  ///< nothing to restart from
    cache,    ///< `dataset` is taken from the caches
    prefix,   ///< `dataset` is taken from the prefix directory
    refused,  ///< the run would fail
  };
  Outcome outcome = Outcome::scratch;
  DatasetInfo dataset;
  std::string reason;  ///< why it is refused, or starts from scratch although there are checkpoints
  std::string before;  ///< what happens first: "it is copied to ... first"; may be empty
  std::vector<std::string> failed;  ///< labels of datasets that are tried without success
};

/// The visible damage of the files of a dataset in the prefix directory.
struct FilesTrouble {
  std::vector<std::string> lines;
  bool may_pass = false;  ///< a transient error: the files cannot be read now, and may be intact
};
using LookAtFiles = std::function<FilesTrouble(const DatasetRecord&)>;
/// The number of files with another modification time than recorded.
using CountChanged = std::function<std::size_t(const DatasetRecord&)>;

Forecast forecast(const JobFacts& facts, const Settings& settings, const LookAtFiles& look);

/// True if all parts of an unfinished flush are done or in these caches. With the caches of the job
/// the next run finishes it, with scavenged caches cairn rebuild does. `also`: parts that are
/// copied there before.
bool can_be_ended(const UnfinishedFlush& flush, const std::vector<CachedFacts>& caches,
                  const std::vector<CachedFacts>& also = {});

}  // namespace cairn
