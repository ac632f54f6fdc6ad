#include "rbio/series.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/checksum.hpp"
#include "comm/group.hpp"

namespace cairn::rbio {
namespace {

std::int64_t fingerprint(const std::vector<Field>& fields) {
  std::uint32_t sum = static_cast<std::uint32_t>(fields.size());
  for (const Field& field : fields) {
    const std::string text = fmt::format("{}\n{}\n{}\n", field.shape.name,
                                         dtype_of(field.shape.type), field.shape.components);
    sum = crc32c(std::as_bytes(std::span(text)), sum);
  }
  return sum;
}

/// The lowest and highest over all ranks are equal.
bool are_equal(Communicator& comm, std::int64_t a, std::int64_t b) {
  std::array<std::int64_t, 4> bounds = {a, -a, b, -b};
  comm.allreduce(bounds, Reduce::max);
  return bounds[0] == -bounds[1] && bounds[2] == -bounds[3];
}

}  // namespace

Series::Series(Files& files, const Log& log, std::string directory, const SeriesOptions& options)
    : files_(files), log_(log), options_(options), directory_(files, std::move(directory)) {}

Result<std::unique_ptr<Series>> Series::open(Communicator& comm, Files& files, const Log& log,
                                             const Placement& placement, std::string directory,
                                             const SeriesOptions& options) {
  auto roles = assign_roles(placement.node_of_rank, options.group_size, options.files, comm.rank());
  CAIRN_TRY(agree(comm, roles ? Status{} : Status(tl::unexpected(roles.error()))));
  auto series = std::unique_ptr<Series>(new Series(files, log, std::move(directory), options));
  series->roles_ = *std::move(roles);
  Status opened;
  if (comm.rank() == 0) {
    const auto generation = series->directory_.open_for_writing();
    if (generation)
      series->last_.generation = *generation;
    else
      opened = tl::unexpected(generation.error());
  }
  CAIRN_TRY(agree(comm, std::move(opened)));
  comm.bcast(mutable_bytes_of(series->last_.generation), 0);
  return series;
}

Result<std::size_t> Series::add_field(const FieldShape& shape, std::byte* data,
                                      std::uint64_t count) {
  CAIRN_TRY(check_shape(shape));
  const bool is_known = std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
    return field.shape.name == shape.name;
  });
  if (is_known)
    return fail(Code::bad_argument, "field {} is registered twice; set its data with rbio_set",
                shape.name);
  if (fields_.size() == most_fields)
    return fail(Code::bad_argument, "field {}: a series has at most {} fields", shape.name,
                most_fields);
  fields_.push_back({shape, nullptr, 0});
  const Status set = set_field(fields_.size() - 1, data, count);
  if (!set) {
    fields_.pop_back();
    return tl::unexpected(set.error());
  }
  return fields_.size() - 1;
}

Status Series::set_field(std::size_t field, std::byte* data, std::uint64_t count) {
  if (field >= fields_.size())
    return fail(Code::bad_argument, "field number {}: {} fields are registered", field,
                fields_.size());
  Field& known = fields_[field];
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;
  if (count > most_bytes / known.shape.element_bytes())
    return fail(Code::bad_argument, "field {}: {} elements are more than a file can hold",
                known.shape.name, count);
  if (data == nullptr && count > 0)
    return fail(Code::bad_argument, "field {}: the data of {} elements are a null pointer",
                known.shape.name, count);
  known.data = data;
  known.count = count;
  return {};
}

Status Series::begin(Communicator& comm, std::uint64_t step) {
  CAIRN_TRY(check_begin(comm, step));
  ++last_.sequence;
  begun_ = step;
  CAIRN_TRY(hand_over(comm, step));
  written_ = roles_.is_writer ? write() : Status{};
  return {};
}

Status Series::check_begin(Communicator& comm, std::uint64_t step) {
  Status mine;
  if (fields_.empty()) mine = fail(Code::bad_argument, "step {}: no field is registered", step);
  if (step > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    mine = fail(Code::bad_argument, "step {} is larger than 2^63 - 1", step);
  CAIRN_TRY(agree(comm, std::move(mine)));
  if (are_equal(comm, static_cast<std::int64_t>(step), fingerprint(fields_))) return {};
  return fail(Code::differs,
              "step {}: the ranks passed different step numbers, or registered different fields",
              step);
}

/// Brings the data of each group to its writer.
Status Series::hand_over(Communicator& comm, std::uint64_t step) {
  Group part(comm, roles_.part_ranks);
  StepPlan plan = plan_step(part, fields_, static_cast<std::uint32_t>(comm.rank()));
  Group group(comm, roles_.group_ranks);
  const std::vector<Share> shares = gather_shares(group, plan.mine);
  if (roles_.is_writer) {
    buffer_.resize(BufferLayout(shares).bytes());
    plan.header.step = step;
    plan.header.attempt = last_;
    plan.header.part = static_cast<std::uint32_t>(roles_.part());
    plan.header.parts = static_cast<std::uint32_t>(roles_.parts);
    plan.header.ranks = static_cast<std::uint32_t>(comm.size());
    task_ = {plan.header, roles_.writes_header(), shares, buffer_, roles_.group, roles_.groups};
  }
  gather_data(group, fields_, shares, buffer_);
  return {};
}

Status Series::write() {
  CAIRN_TRY(write_part(files_, directory_, task_));
  return {};
}

Status Series::wait(Communicator& comm) {
  if (!begun_) return {};
  CAIRN_TRY(agree(comm, written_));
  Status published;
  if (comm.rank() == 0) published = directory_.check_published(last_, *begun_);
  if (comm.rank() == 0 && published && options_.keep > 0)
    published = directory_.remove_all_but(options_.keep);
  CAIRN_TRY(agree(comm, std::move(published)));
  return agree(comm, roles_.is_writer ? directory_.remove_marker(*begun_, roles_.group) : Status{});
}

/// Rank 0 looks; the others learn what it found.
Result<std::vector<std::uint64_t>> Series::steps(Communicator& comm) {
  Status looked;
  std::vector<std::uint64_t> numbers;
  if (comm.rank() == 0) {
    auto found = directory_.steps();
    if (!found) looked = tl::unexpected(found.error());
    for (const PublishedStep& one : found.value_or(std::vector<PublishedStep>{})) {
      if (!one.readable)
        log_.warning("{}: this step cannot be restored", one.readable.error().text);
      else
        numbers.push_back(one.step);
    }
  }
  CAIRN_TRY(agree(comm, std::move(looked)));
  std::uint64_t count = numbers.size();
  comm.bcast(mutable_bytes_of(count), 0);
  numbers.resize(count);
  comm.bcast(std::as_writable_bytes(std::span(numbers)), 0);
  return numbers;
}

Result<StepIndex> Series::index_of(Communicator& comm, std::uint64_t step) {
  return StepIndex::load(comm, files_, directory_.step_path(step));
}

Status Series::restore_one(Communicator& comm, std::uint64_t step) {
  CAIRN_ASSIGN(const StepIndex index, index_of(comm, step));
  return restore_step(comm, files_, directory_.step_path(step), index, fields_);
}

Result<std::uint64_t> Series::restore(Communicator& comm, std::optional<std::uint64_t> step) {
  CAIRN_ASSIGN(std::vector<std::uint64_t> there, steps(comm));
  if (step) {
    if (std::find(there.begin(), there.end(), *step) == there.end())
      return fail(Code::not_found, "{} has no step {}; \"cairn rbio list\" shows its steps",
                  directory_.path(), *step);
    CAIRN_TRY(restore_one(comm, *step));
    return *step;
  }
  for (; !there.empty(); there.pop_back()) {
    const Status restored = restore_one(comm, there.back());
    if (restored) return there.back();
    if (restored.error().code != Code::corrupt) return tl::unexpected(restored.error());
    if (comm.rank() == 0)
      log_.warning("{}: step {} is not restored, the next older one is tried",
                   restored.error().text, there.back());
  }
  return fail(Code::not_found, "{} has no step that can be restored", directory_.path());
}

}  // namespace cairn::rbio
