// Random operations against a model that is a vector of bytes for each file. What fails is made as
// short as possible and printed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <random>

#include "aggregate/aggregator.hpp"
#include "aggregate/scripted_file.hpp"

namespace cairn {
namespace {

enum class Kind {
  write,
  write_next,
  append,
  read,
  resize,
  drain,
  sync,
  settle,
  settle_all,
  open_handle,
  close_handle,
  change,
  abandon,
  reopen
};
constexpr const char* names[] = {
    "write",  "write_next", "append",      "read",         "resize", "drain",   "sync",
    "settle", "settle_all", "open_handle", "close_handle", "change", "abandon", "reopen"};
constexpr int weights[] = {24, 16, 10, 20, 5, 6, 4, 2, 1, 3, 2, 2, 1, 2};

/// The numbers mean something modulo what there is, so that any part of a sequence is a sequence.
struct Step {
  Kind kind{};
  std::uint64_t file = 0, handle = 0, offset = 0, bytes = 0;
};

struct Settings {
  std::uint64_t seed = 0;
  AggregateOptions aggregate;
  std::uint64_t files = 1;
  std::uint64_t file_bytes = 0;  ///< about the size to which files grow
  bool interrupts = false;       ///< writes and reads are cut short and interrupted
  bool faults = false;           ///< calls of the backing file fail; only where no thread is
};

std::string to_text(const Settings& of) {
  return fmt::format(
      "seed {}: chunk {}, pool {}, write {}, threads {}, {} files of {}, interrupts {}, faults {}",
      of.seed, of.aggregate.chunk_bytes, of.aggregate.pool_bytes, of.aggregate.write_bytes,
      of.aggregate.io_threads, of.files, of.file_bytes, of.interrupts, of.faults);
}

std::string to_text(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps)
    text += fmt::format("  {} file {} handle {} offset {} bytes {}\n",
                        names[static_cast<std::size_t>(step.kind)], step.file, step.handle,
                        step.offset, step.bytes);
  return text;
}

std::vector<Step> random_steps(std::mt19937_64& random, std::size_t count) {
  std::discrete_distribution<int> kind(std::begin(weights), std::end(weights));
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i)
    steps.push_back({static_cast<Kind>(kind(random)), random() % 64, random() % 64, random() % 4096,
                     random() % 4096});
  return steps;
}

struct Broken {
  std::string what;
};

/// One file, its model, and its handles with the number of errors that each must have received.
class Subject {
 public:
  Subject(Aggregator& aggregator, const Settings& settings, std::uint64_t seed)
      : aggregator_(aggregator), settings_(settings), random_(seed) {
    anew();
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject() { file_.reset(); }  // which writes, and so asks react()

  void anew() {
    storage_ = std::make_shared<Storage>();
    storage_->script = [this](const BackingCall& call) { return react(call); };
    model_.clear();
    known_.clear();
    open();
  }

  void step(const Step& step) {
    switch (step.kind) {
      case Kind::write:
        return write(step.offset % settings_.file_bytes, length(step));
      case Kind::write_next:
        return write(next_, length(step));
      case Kind::append:
        return append(length(step));
      case Kind::read:
        return read(step.offset % (settings_.file_bytes * 2), length(step));
      case Kind::resize:
        return resize(step.offset % settings_.file_bytes);
      case Kind::drain:
        return drain(step.handle, false);
      case Kind::sync:
        return drain(step.handle, true);
      case Kind::settle:
        return file_->settle();
      case Kind::settle_all:
        return aggregator_.settle_all();
      case Kind::open_handle:
        return open_handle();
      case Kind::close_handle:
        return close_handle(step.handle);
      case Kind::change:
        return change(step.offset % settings_.file_bytes, length(step));
      case Kind::abandon:
        return abandon();
      case Kind::reopen:
        return reopen();
    }
  }

  /// After every step, of whichever file: memory runs out for all of them.
  void check() {
    take_note_of_losses();
    if (file_->size() != model_.size())
      throw Broken{fmt::format("size {} for {}", file_->size(), model_.size())};
    if (!storage_->violations().empty()) throw Broken{storage_->violations()};
  }

  void reopen() {
    file_.reset();
    take_note_of_losses();
    compare(storage_->content(), 0, "the backing file");
    open();
  }

  /// The whole file.
  void read_all() { read(0, model_.size() + 1); }

 private:
  /// A hole is there only as long as something behind it is.
  enum class Known : char { lost, hole, yes };

  struct Handle {
    AggregatedFile::ErrorCursor cursor;
    std::uint64_t errors = 0;  ///< of the file, when this handle last received one
  };

  void open() {
    file_ = std::make_unique<AggregatedFile>(aggregator_, std::make_unique<ScriptedFile>(storage_),
                                             storage_->content().size());
    handles_.clear();
    errors_ = reported_ = 0;
    open_handle();
  }

  /// Many small writes, some over several chunks.
  std::uint64_t length(const Step& step) const {
    const std::uint64_t chunk = settings_.aggregate.chunk_bytes;
    const std::uint64_t most = step.bytes % 4 == 0 ? 3 * chunk : chunk / 2 + 1;
    return step.bytes / 4 % most + (step.bytes % 8 == 1 ? 0 : 1);
  }

  Blob fresh(std::uint64_t bytes) {
    Blob data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_() % 255 + 1);
    return data;
  }

  void model_write(std::uint64_t offset, const Blob& data) {
    if (data.empty()) return;
    if (model_.size() < offset + data.size()) model_resize(offset + data.size(), Known::hole);
    std::copy(data.begin(), data.end(), model_.begin() + static_cast<std::ptrdiff_t>(offset));
    std::fill_n(known_.begin() + static_cast<std::ptrdiff_t>(offset), data.size(), Known::yes);
    next_ = offset + data.size();
  }

  void model_resize(std::uint64_t bytes, Known added = Known::yes) {
    model_.resize(bytes);
    known_.resize(bytes, added);
  }

  void write(std::uint64_t offset, std::uint64_t bytes) {
    const Blob data = fresh(bytes);
    model_write(offset, data);
    if (const int error = file_->write(offset, data)) throw Broken{fmt::format("write: {}", error)};
  }

  void append(std::uint64_t bytes) {
    const Blob data = fresh(bytes);
    model_write(model_.size(), data);
    if (const int error = file_->append(data)) throw Broken{fmt::format("append: {}", error)};
  }

  void read(std::uint64_t offset, std::uint64_t bytes) {
    Blob buffer(bytes, std::byte{0xee});
    const ssize_t got = file_->read(offset, buffer);
    if (got < 0 && settings_.faults) return;
    const std::uint64_t there = std::max<std::uint64_t>(model_.size(), offset) - offset;
    if (got < 0 || static_cast<std::uint64_t>(got) != std::min(bytes, there))
      throw Broken{fmt::format("read at {} of {}: {}", offset, bytes, got)};
    buffer.resize(static_cast<std::size_t>(got));
    compare(buffer, offset, "a read");
  }

  /// `bytes` against what the model has from `offset` on.
  void compare(const Blob& bytes, std::uint64_t offset, const std::string& what) const {
    if (offset == 0 && what == "the backing file" && bytes.size() != model_.size())
      throw Broken{
          fmt::format("the backing file has {} bytes for {}", bytes.size(), model_.size())};
    for (std::size_t at = 0; at < bytes.size(); ++at)
      if (known_[offset + at] != Known::lost && bytes[at] != model_[offset + at])
        throw Broken{fmt::format("{} has byte {} wrong", what, offset + at)};
  }

  void resize(std::uint64_t bytes) {
    const int error = file_->resize(bytes);
    if (error == 0) return model_resize(bytes);
    if (!settings_.faults) throw Broken{fmt::format("resize: {}", error)};
  }

  void drain(std::uint64_t which, bool sync) {
    if (handles_.empty()) return;
    Handle& handle = handles_[which % handles_.size()];
    const int error =
        sync ? file_->sync(handle.cursor, which % 2 == 0) : file_->drain(handle.cursor);
    take_note_of_losses();
    if ((error != 0) != (errors_ != handle.errors))
      throw Broken{fmt::format("handle {} got {} of {} errors, {} before", which, error, errors_,
                               handle.errors)};
    handle.errors = reported_ = errors_;
    compare(storage_->content(), 0, "the backing file");
  }

  void open_handle() {
    if (handles_.size() < 4) handles_.push_back({file_->opened(), reported_});
  }

  void close_handle(std::uint64_t which) {
    if (handles_.empty()) return;
    drain(which, false);
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(which % handles_.size()));
  }

  /// Changes the backing file through change_backing().
  void change(std::uint64_t offset, std::uint64_t bytes) {
    const Blob data = fresh(bytes);
    const int error = file_->change_backing([&](BackingFile& backing) {
      take_note_of_losses();
      hands_off_ = true;
      const int failed = backing.resize(offset);
      if (failed == 0) backing.write_at(offset, data);
      hands_off_ = false;
      return failed;
    });
    if (error != 0) throw Broken{fmt::format("change: {}", error)};
    model_resize(offset);
    model_write(offset, data);
  }

  void abandon() {
    file_->abandon();
    file_.reset();
    if (storage_->content().size() > model_.size()) throw Broken{"more than was written"};
    anew();
  }

  Reaction react(const BackingCall& call) {
    if (hands_off_) return {};
    const std::scoped_lock lock(mutex_);
    Reaction reaction;
    const std::uint64_t bytes = call.range.end - call.range.begin;
    if (settings_.interrupts && call.kind <= BackingCall::read) {
      if (random_faults_() % 8 == 0) return {-EINTR};
      if (random_faults_() % 3 == 0 && bytes > 0)
        reaction.bytes_most = 1 + random_faults_() % bytes;
    }
    if (settings_.aggregate.io_threads > 0 && random_faults_() % 16 == 0)
      reaction.delay = std::chrono::microseconds(random_faults_() % 100);
    if (!settings_.faults || random_faults_() % 6 != 0) return reaction;
    if (call.kind == BackingCall::write && random_faults_() % 4 == 0)
      reaction.bytes_most = 0;
    else
      reaction.error = random_faults_() % 2 == 0 ? -EIO : -ENOSPC;
    if (call.kind == BackingCall::write) lost_.push_back(call.range);
    if (call.kind == BackingCall::write || call.kind == BackingCall::sync) ++errors_;
    return reaction;
  }

  /// A byte of a failed write is as in the backing file, or was written again.
  void take_note_of_losses() {
    if (lost_.empty()) return;
    for (const Range& range : lost_)
      for (std::uint64_t at = range.begin; at < std::min<std::uint64_t>(range.end, known_.size());
           ++at)
        known_[at] = Known::lost;
    lost_.clear();
    const std::uint64_t size = file_ ? file_->size() : storage_->content().size();
    std::uint64_t known_end = model_.size();
    while (known_end > 0 && known_[known_end - 1] != Known::yes) --known_end;
    if (size < known_end || size > model_.size())
      throw Broken{
          fmt::format("size {} after a loss; {} of {} are known", size, known_end, model_.size())};
    model_resize(size);
  }

  Aggregator& aggregator_;
  const Settings settings_;
  std::mt19937_64 random_;
  std::mt19937_64 random_faults_{random_()};
  std::mutex mutex_;  ///< guards random_faults_
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<AggregatedFile> file_;
  std::vector<Handle> handles_;
  Blob model_;
  std::vector<Known> known_;
  std::uint64_t next_ = 0;  ///< behind the last write
  std::vector<Range> lost_;
  std::uint64_t errors_ = 0, reported_ = 0;
  bool hands_off_ = false;
};

/// What is wrong, if anything.
std::optional<std::string> run(const Settings& settings, const std::vector<Step>& steps) {
  Aggregator aggregator(settings.aggregate);
  std::vector<std::unique_ptr<Subject>> subjects;
  for (std::uint64_t file = 0; file < settings.files; ++file)
    subjects.push_back(std::make_unique<Subject>(aggregator, settings, settings.seed * 64 + file));
  try {
    for (const Step& step : steps) {
      subjects[step.file % subjects.size()]->step(step);
      for (const auto& subject : subjects) subject->check();
    }
    for (const auto& subject : subjects) subject->read_all();
    for (const auto& subject : subjects) subject->reopen();
    for (const auto& subject : subjects) subject->read_all();
    const std::uint64_t used = aggregator.statistics().pool_used_bytes;
    if (used != 0) throw Broken{fmt::format("{} bytes of the pool are in use for nothing", used)};
  } catch (const Broken& broken) {
    return broken.what;
  }
  return {};
}

using Fails = std::function<bool(const std::vector<Step>&)>;

/// A part of `steps` that fails too, and of which no single step can be left out.
std::vector<Step> shrink(std::vector<Step> steps, const Fails& fails) {
  for (std::size_t length = std::max<std::size_t>(1, steps.size() / 2); length > 0; length /= 2)
    for (std::size_t at = 0; at + length <= steps.size();) {
      std::vector<Step> without = steps;
      const auto first = without.begin() + static_cast<std::ptrdiff_t>(at);
      without.erase(first, first + static_cast<std::ptrdiff_t>(length));
      if (fails(without))
        steps = without;
      else
        at += length;
    }
  for (std::size_t at = 0; at < steps.size(); ++at)
    for (std::uint64_t Step::*number : {&Step::file, &Step::handle, &Step::offset, &Step::bytes})
      for (std::vector<Step> smaller = steps; smaller[at].*number > 0;) {
        smaller[at].*number /= 2;
        if (!fails(smaller)) break;
        steps = smaller;
      }
  return steps;
}

Settings random_settings(std::uint64_t seed, std::mt19937_64& random) {
  Settings settings;
  settings.seed = seed;
  settings.aggregate.chunk_bytes = std::uint64_t{8} << (random() % 5);
  settings.aggregate.pool_bytes = settings.aggregate.chunk_bytes * (1 + random() % 8);
  settings.aggregate.write_bytes = settings.aggregate.chunk_bytes * (1 + random() % 6) / 2;
  settings.aggregate.io_threads = static_cast<int>(random() % 4 == 0 ? 1 + random() % 3 : 0);
  settings.files = 1 + random() % 4;
  settings.file_bytes = settings.aggregate.chunk_bytes * (2 + random() % 8);
  settings.interrupts = random() % 2 == 0;
  settings.faults = settings.aggregate.io_threads == 0 && random() % 2 == 0;
  return settings;
}

TEST(AggregatorProperties, AreThoseOfPlainFiles) {
  const char* const wanted = std::getenv("CAIRN_AGGREGATE_SEEDS");
  const std::uint64_t seeds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1500;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed);
    const Settings settings = random_settings(seed, random);
    std::vector<Step> steps = random_steps(random, 120);
    if (!run(settings, steps)) continue;
    steps = shrink(steps, [&](const auto& some) { return run(settings, some).has_value(); });
    FAIL() << to_text(settings) << "\n"
           << to_text(steps) << run(settings, steps).value_or("it does not fail again");
  }
}

TEST(AggregatorProperties, AreShrunkToWhatMatters) {
  std::mt19937_64 random(1);
  const auto fails = [](const std::vector<Step>& steps) {
    const auto write = std::find_if(steps.begin(), steps.end(), [](const Step& step) {
      return step.kind == Kind::write && step.offset >= 100;
    });
    return std::any_of(write, steps.end(),
                       [](const Step& step) { return step.kind == Kind::resize; });
  };
  std::vector<Step> steps = random_steps(random, 200);
  ASSERT_TRUE(fails(steps));
  steps = shrink(steps, fails);
  ASSERT_EQ(steps.size(), 2u) << to_text(steps);
  EXPECT_EQ(steps[0].kind, Kind::write);
  EXPECT_LT(steps[0].offset, 200u);
  EXPECT_EQ(steps[0].bytes, 0u);
  EXPECT_EQ(steps[1].kind, Kind::resize);
}

}  // namespace
}  // namespace cairn
