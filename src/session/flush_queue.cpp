#include "session/flush_queue.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace cairn {
namespace {

// Between two looks at what the other processes have done: a flight that has just moved may go on
// at once, and one that takes hours is not looked after a thousand times a second.
constexpr std::int64_t shortest_pause_us = 500;
constexpr std::int64_t longest_pause_us = 500'000;
// After an error.
constexpr std::int64_t first_backoff_us = 100'000;
constexpr std::int64_t longest_backoff_us = 30'000'000;

/// Who reads damaged bytes again and again although nothing is left to repair is not helped by a
/// repair.
constexpr int most_repairs = 3;

bool is_of_damage(const Error& error) {
  return error.code == Code::corrupt || error.code == Code::lost;
}

FlushQueue::Fate fate_after(const Error& error, int damages) {
  if (error.code == Code::busy) return FlushQueue::Fate::refused;
  return is_of_damage(error) && damages <= most_repairs ? FlushQueue::Fate::damaged
                                                        : FlushQueue::Fate::under_way;
}

/// Two threads take the steps in turns: one of idle priority, and, while they are urgent, only one
/// of normal priority. The other would take minutes for a step on a busy machine, and nothing goes
/// on before a step ends.
class StepsInTurns final : public Repeated {
 public:
  StepsInTurns(std::unique_ptr<Repeated> idle, std::unique_ptr<Repeated> urgent)
      : urgent_(std::move(urgent)), idle_(std::move(idle)) {}

 private:
  std::unique_ptr<Repeated> urgent_;
  std::unique_ptr<Repeated> idle_;  ///< ends first: the other one may have to help it
};

struct StepTurn {
  std::mutex mutex;
  std::atomic<bool> is_urgent = false;  ///< as the thread of normal priority has seen it
};

constexpr std::int64_t not_my_turn_us = 2'000;
constexpr std::int64_t not_urgent_us = 50'000;

std::int64_t backoff_us(int failures) {
  return std::min(longest_backoff_us, first_backoff_us << std::min(failures - 1, 20));
}

}  // namespace

bool Flight::is_over() const {
  return part->state() == PartFlush::State::settled && (owner == nullptr || owner->is_settled());
}

bool Flight::is_copying() const {
  return copies_since_us > 0 && copied_at_us == 0 &&
         copied_before != std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t Flight::copied_bytes() const {
  const std::uint64_t before = copied_before;
  const std::uint64_t now = copied != nullptr ? copied->load() : 0;
  return now > before ? std::min(now - before, part_bytes()) : 0;
}

/// In this order: the thread ends a try meanwhile by the opposite order.
std::uint64_t Flight::most_copied_bytes() const {
  const std::uint64_t now = copied_bytes();
  return std::max(now, most_copied_before.load());
}

void Flight::end_try() {
  most_copied_before = most_copied_bytes();
  copied_before = std::numeric_limits<std::uint64_t>::max();
}

double Flight::bytes_per_s(std::int64_t now_us) const {
  const std::int64_t since_us = copies_since_us;
  const std::int64_t end_us = copied_at_us > 0 ? copied_at_us.load() : now_us;
  if (since_us == 0 || end_us <= since_us) return 0;
  return 1e6 * static_cast<double>(copied_bytes()) / static_cast<double>(end_us - since_us);
}

bool Flight::waits_for_data() const {
  const PartFlush::State state = part->state();
  return state == PartFlush::State::planned || state == PartFlush::State::staged;
}

/// The owner first: the others wait for it.
Result<bool> Flight::advance(bool copies_data) {
  if (copied != nullptr && part->state() <= PartFlush::State::planned) {
    end_try();
    copied_before = copied->load();
  }
  bool moved = false;
  if (owner != nullptr) {
    CAIRN_ASSIGN(moved, owner->advance());
  }
  if (!copies_data && part->state() == PartFlush::State::planned) return moved;
  CAIRN_ASSIGN(const bool own, part->advance());
  return moved || own;
}

std::size_t FlushQueue::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

void FlushQueue::add(std::shared_ptr<Flight> flight) {
  {
    const std::scoped_lock lock(mutex_);
    Entry entry;
    entry.flight = std::move(flight);
    entries_.push_back(std::move(entry));
    set_deadline();
  }
  if (thread_) return;
  help_.begin();
  const auto turn = std::make_shared<StepTurn>();
  auto idle = background_.keep_stepping([this, turn] {
    const std::unique_lock lock(turn->mutex, std::try_to_lock);
    return lock && !turn->is_urgent ? step() : not_my_turn_us;
  });
  if (!idle) return;  // the program takes the steps
  auto urgent = background_.keep_working([this, turn] {
    turn->is_urgent = pace_.is_urgent();
    if (!turn->is_urgent) return not_urgent_us;
    const std::unique_lock lock(turn->mutex, std::try_to_lock);
    return lock ? step() : not_my_turn_us;
  });
  thread_ = std::make_unique<StepsInTurns>(std::move(idle), std::move(urgent));
}

FlushQueue::News FlushQueue::news() const {
  const std::scoped_lock lock(mutex_);
  return entries_.front().news;
}

bool FlushQueue::is_published(const Uuid& dataset) const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.flight->dataset.uuid == dataset && entry.is_published;
  });
}

void FlushQueue::remove_first() {
  {
    const std::scoped_lock lock(mutex_);
    entries_.pop_front();
  }
  if (empty()) end_threads();
}

/// The one that helps last: the other may be waiting for it.
void FlushQueue::end_threads() {
  thread_.reset();
  help_.end();
}

/// This flight, and not a later one of the same dataset.
FlushQueue::Entry* FlushQueue::find(const Flight& flight) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.flight.get() == &flight;
  });
  return found == entries_.end() ? nullptr : &*found;
}

bool FlushQueue::withdraw(const Uuid& dataset) {
  const std::scoped_lock lock(mutex_);
  const auto is_out = [&](const Entry& entry) {
    return entry.flight->dataset.uuid == dataset && !entry.flight->is_taken;
  };
  return std::erase_if(entries_, is_out) > 0;
}

void FlushQueue::remove(const Uuid& dataset) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_,
                [&](const Entry& entry) { return entry.flight->dataset.uuid == dataset; });
}

void FlushQueue::resume() {
  const std::scoped_lock lock(mutex_);
  if (entries_.front().news.fate != Fate::damaged) return;
  entries_.front().news = {};
  entries_.front().next_us = 0;
}

void FlushQueue::hurry() {
  const std::scoped_lock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.news.fate != Fate::under_way || entry.news.trouble) continue;
    entry.news = {};
    entry.failures = entry.damages = 0;
    entry.next_us = 0;
  }
}

std::vector<std::shared_ptr<const Flight>> FlushQueue::flights() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<const Flight>> all;
  for (const Entry& entry : entries_) all.push_back(entry.flight);
  return all;
}

bool FlushQueue::is_taking_step() const {
  const std::scoped_lock lock(mutex_);
  return is_taking_step_;
}

bool FlushQueue::stop(std::int64_t us) {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    ++stops_;
  }
  pace_.stop();
  const std::int64_t end_us = clock_.steady_us() + us;
  while (is_taking_step() && clock_.steady_us() < end_us) clock_.sleep_us(shortest_pause_us);
  return !is_taking_step();
}

void FlushQueue::go_on(bool copies_data) {
  pace_.resume();
  const std::scoped_lock lock(mutex_);
  is_stopped_ = false;
  copies_data_ = copies_data;
  if (copies_data) return;
  for (Entry& entry : entries_) {
    entry.waits_for_data = false;
    entry.pause_us = 0;
    entry.next_us = 0;
  }
}

bool FlushQueue::waits_for_data() const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.waits_for_data || entry.news.fate != Fate::under_way;
  });
}

std::vector<FlushQueue::Seen> FlushQueue::seen() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Seen> all;
  for (const Entry& entry : entries_)
    all.push_back({entry.flight->dataset, entry.is_planned, entry.is_published,
                   entry.news.fate == Fate::over, entry.news.trouble});
  return all;
}

std::vector<std::shared_ptr<Flight>> FlushQueue::abandon() {
  end_threads();
  go_on();
  std::vector<std::shared_ptr<Flight>> flights;
  const std::scoped_lock lock(mutex_);
  for (Entry& entry : std::exchange(entries_, {})) flights.push_back(std::move(entry.flight));
  for (const auto& flight : flights)
    if (flight->part->state() <= PartFlush::State::planned) flight->end_try();
  return flights;
}

void FlushQueue::help() {
  if (!thread_) (void)step();
}

/// Without copies of data any flight may move, in turn; else only the first.
bool FlushQueue::is_next(const Entry& entry, std::int64_t now_us) const {
  if (entry.news.fate != Fate::under_way || now_us < entry.next_us) return false;
  return copies_data_ || !entry.waits_for_data;
}

/// The first that this process has still to do with. Null where that has to wait, or rests.
FlushQueue::Entry* FlushQueue::next_entry(std::int64_t now_us) {
  if (is_stopped_) return nullptr;
  const auto next = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return copies_data_ ? entry.news.fate != Fate::over : is_next(entry, now_us);
  });
  return next != entries_.end() && is_next(*next, now_us) ? &*next : nullptr;
}

/// While this lives, a step is taken.
class FlushQueue::Step {
 public:
  explicit Step(FlushQueue& queue) : queue_(queue) { queue_.is_taking_step_ = true; }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    const std::scoped_lock lock(queue_.mutex_);
    queue_.is_taking_step_ = false;
  }

 private:
  FlushQueue& queue_;
};

/// Of the queue's thread, or of the program's where there is none: only that one touches a flight.
/// The clock, which may let others go on, is not asked under the lock.
std::int64_t FlushQueue::step() {
  const std::int64_t begun_us = clock_.steady_us();
  {
    const std::scoped_lock lock(mutex_);
    if (next_entry(begun_us) == nullptr) return longest_pause_us / 20;
  }
  if (const std::int64_t rest_us = pace_.rest_us()) return rest_us;
  std::shared_ptr<Flight> flight;
  std::optional<Step> taken;
  std::uint64_t stops = 0;
  bool copies_data = true;
  {
    const std::scoped_lock lock(mutex_);
    copies_data = copies_data_;
    Entry* entry = next_entry(begun_us);
    if (entry == nullptr) return 0;  // it was taken out meanwhile
    taken.emplace(*this);
    stops = stops_;
    flight = entry->flight;
    flight->is_taken = true;
  }
  const bool copies = copies_data && flight->part->state() == PartFlush::State::planned;
  if (copies) {
    flight->rested_before_us = pace_.rested_us();
    flight->copies_since_us = begun_us;
  }
  const auto moved = flight->advance(copies_data);
  pace_.stop_working();
  const std::int64_t now_us = clock_.steady_us();
  if (copies && flight->part->state() > PartFlush::State::planned) flight->copied_at_us = now_us;
  const std::scoped_lock lock(mutex_);
  Entry* entry = find(*flight);
  if (entry == nullptr) return 0;           // it was taken out meanwhile
  if (!moved && stops_ != stops) return 0;  // stopped: that is no trouble of the flight
  note(*entry, moved, now_us);
  return copies_data_ ? entry->pause_us : shortest_pause_us;
}

void FlushQueue::note(Entry& entry, const Result<bool>& moved, std::int64_t now_us) {
  const Flight& flight = *entry.flight;
  entry.is_planned = flight.part->state() >= PartFlush::State::planned;
  entry.is_published = flight.part->state() >= PartFlush::State::published;
  entry.waits_for_data = moved && !*moved && flight.waits_for_data();
  if (!moved) {
    ++entry.failures;
    if (is_of_damage(moved.error())) ++entry.damages;
    entry.news = {fate_after(moved.error(), entry.damages), tl::unexpected(moved.error()),
                  entry.failures};
    entry.next_us = now_us + backoff_us(entry.failures);
    return;
  }
  entry.news = {};
  entry.failures = entry.damages = 0;
  entry.pause_us =
      *moved ? 0
             : std::clamp(entry.pause_us + entry.pause_us / 4, shortest_pause_us, longest_pause_us);
  if (!copies_data_) entry.next_us = now_us + entry.pause_us;  // the others get their turn
  if (flight.is_over()) entry.news.fate = Fate::over;
  set_deadline();
  if (*moved) ++steps_;
}

/// The earliest of those that are not over here, as they end in their order. To be called with the
/// lock, whenever one comes or ends; one that is taken out makes room for another.
void FlushQueue::set_deadline() {
  std::int64_t earliest_us = std::numeric_limits<std::int64_t>::max();
  for (const Entry& entry : entries_)
    if (entry.news.fate != Fate::over)
      earliest_us = std::min(earliest_us, entry.flight->deadline_us);
  pace_.be_done_by(earliest_us);
}

}  // namespace cairn
