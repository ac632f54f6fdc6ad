// Mode collective: all ranks of a part write its file together, each what it has, without a writer
// between them and without a buffer.
//
// Files, markers and publication are those of the other modes: the first rank of each group leaves
// the group's marker, once the bytes of all ranks are durable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "rbio/collective_files.hpp"
#include "rbio/field.hpp"
#include "rbio/plan.hpp"
#include "rbio/removal.hpp"
#include "rbio/roles.hpp"
#include "rbio/services.hpp"
#include "rbio/step_writer.hpp"

namespace cairn::rbio {

/// What one rank has of a step.
struct CollectiveStep {
  PartHeader header;  ///< of this rank's part
  Share mine;
  TimePoint deadline;                 ///< from then on the step has failed,
  double timeout_s = 0;               ///< after so long
  std::vector<FailedAttempt> failed;  ///< on rank 0: earlier ones, whose files are of no use
};

class CollectiveWriter {
 public:
  struct Settings {
    std::string directory;
    std::size_t keep = 0;  ///< steps; 0: all
  };

  /// Over all ranks. bad_setting unless all ranks share one file, or each group has its own.
  static Result<std::unique_ptr<CollectiveWriter>> make(Communicator& comm, Services services,
                                                        const Roles& roles, Settings settings);

  /// Over all ranks. The step is published if all ranks return success and one of them `published`.
  Result<Publication> write(Communicator& comm, const CollectiveStep& step,
                            const std::vector<Field>& fields);

  /// Of this rank's bytes; until they were durable.
  double write_s() const { return write_s_; }
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  CollectiveWriter(Services services, Roles roles, Settings settings);
  Status prepare(const CollectiveStep& step);
  Status write_pieces(Communicator& comm, const CollectiveStep& step,
                      const std::vector<Field>& fields);
  Result<Publication> publish(const CollectiveStep& step);
  std::string path_of(const CollectiveStep& step) const;

  const Services services_;
  const Roles roles_;
  const Settings settings_;
  SeriesDirectory directory_;
  std::shared_ptr<CollectiveFiles> files_;
  double write_s_ = 0;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace cairn::rbio
