// Reads a published step back, on any number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "rbio/part_file.hpp"
#include "rbio/series_directory.hpp"

namespace cairn::rbio {

/// What one rank wrote of a field, and the part that has it.
struct PlacedPiece {
  std::uint32_t part = 0;
  const Piece* piece = nullptr;
};

/// The headers and tables of all parts of a step, equal on all ranks.
class StepIndex {
 public:
  /// Rank 0 reads. Fails alike on all ranks: corrupt if a part is damaged, missing, of another
  /// attempt, or of another step than the name of the directory says.
  static Result<StepIndex> load(Communicator& comm, Files& files, const std::string& step_path);

  std::uint64_t step() const { return parts_[0].header.step; }
  std::uint32_t ranks() const { return parts_[0].header.ranks; }
  const std::vector<PartIndex>& parts() const { return parts_; }
  /// Of the field in all parts; nothing if there is none of that name.
  std::optional<std::size_t> find(const std::string& field) const;
  const FieldShape& shape(std::size_t field) const { return parts_[0].header.fields[field].shape; }
  /// Of all ranks that wrote, in their order; valid as long as this.
  std::vector<PlacedPiece> pieces(std::size_t field) const;
  /// Elements that `rank` wrote, of all ranks in order.
  std::vector<std::uint64_t> counts(std::size_t field) const;

 private:
  std::vector<PartIndex> parts_;
};

/// Fills the fields from the step. Rank r of the calling ranks takes the elements that follow those
/// of the ranks below it, in the order of the ranks that wrote. Fails alike on all ranks:
/// bad_argument if a field is not there, has another shape, or if the counts of all ranks do not
/// add up to what was written; corrupt if a block does not match its checksum; io if a part is not
/// visible on a rank. After an error the content of the fields is undefined.
Status restore_step(Communicator& comm, Files& files, const std::string& step_path,
                    const StepIndex& index, const std::vector<Field>& fields);

}  // namespace cairn::rbio
