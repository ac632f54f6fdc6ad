#include "rbio/done_page.hpp"

#include <atomic>

namespace cairn::rbio {
namespace {

constexpr std::size_t known_outcomes = 256;
constexpr unsigned bits_of_code = 8;

/// Lock-free, so that processes may share it. Place 0 has the number, the others outcomes: the
/// number of the step, and the code.
std::atomic_ref<std::uint64_t> number_at(Segment& page, std::size_t place) {
  static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
  static_assert(sizeof(std::uint64_t) * (1 + known_outcomes) <= done_page_bytes);
  auto* numbers = reinterpret_cast<std::uint64_t*>(page.bytes().data());
  return std::atomic_ref<std::uint64_t>(numbers[place]);
}

std::size_t place_of(std::uint64_t number) { return 1 + number % known_outcomes; }

}  // namespace

void note_done(Segment& page, std::uint64_t number, Code outcome) {
  number_at(page, place_of(number))
      .store(number << bits_of_code | static_cast<std::uint64_t>(outcome));
  number_at(page, 0).store(number);
}

std::uint64_t last_done(Segment& page) { return number_at(page, 0).load(); }

Code outcome_in(Segment& page, std::uint64_t number) {
  const std::uint64_t outcome = number_at(page, place_of(number)).load();
  if (outcome >> bits_of_code != number) return Code::ok;
  return static_cast<Code>(outcome & ((1U << bits_of_code) - 1));
}

}  // namespace cairn::rbio
