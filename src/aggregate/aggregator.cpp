#include "aggregate/aggregator.hpp"

#include "aggregate/buffered_file.hpp"
#include "aggregate/scheduler.hpp"

namespace cairn {

Aggregator::Aggregator(const AggregateOptions& options)
    : scheduler_(std::make_unique<Scheduler>(options)) {}
Aggregator::~Aggregator() = default;

void Aggregator::settle_all() {
  for (const auto& file : scheduler_->files()) file->settle();
}

AggregateStatistics Aggregator::statistics() const { return scheduler_->statistics(); }

AggregatedFile::AggregatedFile(Aggregator& aggregator, std::unique_ptr<BackingFile> backing,
                               std::uint64_t size)
    : scheduler_(*aggregator.scheduler_),
      file_(std::make_shared<BufferedFile>(scheduler_, std::move(backing), size)) {
  scheduler_.add(file_);
}

AggregatedFile::~AggregatedFile() {
  file_->close();
  scheduler_.remove(file_);
}

std::uint64_t AggregatedFile::size() { return file_->size(); }
int AggregatedFile::write(std::uint64_t offset, Bytes data) { return file_->write(offset, data); }
int AggregatedFile::append(Bytes data) { return file_->append(data); }
ssize_t AggregatedFile::read(std::uint64_t offset, MutableBytes buffer) {
  return file_->read(offset, buffer);
}
int AggregatedFile::resize(std::uint64_t bytes) { return file_->resize(bytes); }

AggregatedFile::ErrorCursor AggregatedFile::opened() {
  ErrorCursor cursor;
  cursor.position_ = file_->opened();
  return cursor;
}
int AggregatedFile::drain(ErrorCursor& seen) { return file_->drain(seen.position_); }
int AggregatedFile::sync(ErrorCursor& seen, bool data_only) {
  return file_->sync(seen.position_, data_only);
}
void AggregatedFile::settle() { file_->settle(); }
int AggregatedFile::take_unreported_error() { return file_->take_unreported_error(); }

bool AggregatedFile::has_failed() { return file_->has_failed(); }
int AggregatedFile::change_backing(const std::function<int(BackingFile&)>& change) {
  return file_->change_backing(change);
}
void AggregatedFile::abandon() { file_->abandon(); }

}  // namespace cairn
