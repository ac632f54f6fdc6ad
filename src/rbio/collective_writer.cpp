#include "rbio/collective_writer.hpp"

#include "comm/group.hpp"

namespace cairn::rbio {
namespace {

constexpr std::uint32_t file_mode = 0666;

double seconds_of(TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

bool is_success_on_all(Communicator& comm, const Status& mine) {
  return allreduce(comm, mine ? 0 : 1, Reduce::max) == 0;
}

/// Where another rank has failed, this one has nothing to say.
Result<Publication> stop_with(Status mine) {
  if (mine) return Publication::by_others;
  return tl::unexpected(std::move(mine).error());
}

Status check_time(Threads& threads, const CollectiveStep& step) {
  if (threads.now() < step.deadline) return {};
  return tl::unexpected(too_late(step.header.step, step.timeout_s));
}

RankEntry entry_of(const Share& mine, const std::vector<Field>& fields) {
  RankEntry entry{mine.rank, {}};
  for (std::size_t i = 0; i < fields.size(); ++i)
    entry.pieces.push_back({mine.offsets[i], mine.bytes[i], checksums_of(fields[i].content())});
  return entry;
}

}  // namespace

CollectiveWriter::CollectiveWriter(Services services, Roles roles, Settings settings)
    : services_(std::move(services)),
      roles_(std::move(roles)),
      settings_(std::move(settings)),
      directory_(*services_.files, settings_.directory),
      files_(services_.collective ? services_.collective : make_collective_files(services_.files)) {
}

Result<std::unique_ptr<CollectiveWriter>> CollectiveWriter::make(Communicator& comm,
                                                                 Services services,
                                                                 const Roles& roles,
                                                                 Settings settings) {
  if (roles.parts != 1 && roles.parts != roles.groups)
    return fail(Code::bad_setting,
                "{} files for {} groups of ranks: mode collective writes one file, or one per "
                "group; use files=1 or files=0, or another mode",
                roles.parts, roles.groups);
  auto writer = std::unique_ptr<CollectiveWriter>(
      new CollectiveWriter(std::move(services), roles, std::move(settings)));
  writer->files_->join(comm, roles.part());
  return writer;
}

std::string CollectiveWriter::path_of(const CollectiveStep& step) const {
  return directory_.attempt_path(step.header.attempt, step.header.step) + "/" +
         part_name(step.header.part);
}

Result<Publication> CollectiveWriter::write(Communicator& comm, const CollectiveStep& step,
                                            const std::vector<Field>& fields) {
  remove_failed_attempts(directory_, step.failed, roles_.groups, services_.log);
  Status mine = roles_.writes_header() ? prepare(step) : Status{};
  if (!is_success_on_all(comm, mine)) return stop_with(std::move(mine));
  mine = write_pieces(comm, step, fields);
  if (mine) mine = check_time(*services_.threads, step);
  // A marker says that all bytes are durable, also those of the ranks that leave no marker.
  if (!is_success_on_all(comm, mine)) return stop_with(std::move(mine));
  if (!roles_.is_writer) return Publication::by_others;
  const auto published = publish(step);
  if (published && *published == Publication::published)
    remove_older_steps(directory_, settings_.keep, services_.log);
  return published;
}

/// The ranks that write together find a file of the right size.
Status CollectiveWriter::prepare(const CollectiveStep& step) {
  const PartHeader& header = step.header;
  CAIRN_TRY(directory_.make_attempt(header.attempt, header.step));
  CAIRN_ASSIGN(const auto file, services_.files->create(path_of(step), file_mode));
  CAIRN_TRY(file->resize(header.file_bytes));
  return services_.files->sync_folder(directory_.attempt_path(header.attempt, header.step));
}

Status CollectiveWriter::write_pieces(Communicator& comm, const CollectiveStep& step,
                                      const std::vector<Field>& fields) {
  const TimePoint start = services_.threads->now();
  const Blob entry = encode_entry(entry_of(step.mine, fields));
  const Blob header = roles_.writes_header() ? encode_header(step.header) : Blob{};
  std::vector<FilePiece> pieces;
  for (std::size_t i = 0; i < fields.size(); ++i)
    pieces.push_back({step.mine.offsets[i], fields[i].content()});
  pieces.push_back({step.mine.entry_offset, entry});
  pieces.push_back({0, header});
  Group part(comm, roles_.part_ranks);
  CAIRN_TRY(files_->write(part, path_of(step), pieces));
  write_s_ += seconds_of(services_.threads->now() - start);
  for (const Field& field : fields) written_bytes_ += field.bytes();
  return {};
}

Result<Publication> CollectiveWriter::publish(const CollectiveStep& step) {
  const PartHeader& header = step.header;
  CAIRN_TRY(directory_.mark_done(header.attempt, header.step, roles_.group, roles_.groups));
  return directory_.publish_if_complete(header.attempt, header.step, roles_.groups);
}

}  // namespace cairn::rbio
