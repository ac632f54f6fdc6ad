#include "interpose/patterns.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>

namespace cairn::interpose {
namespace {

constexpr std::uint32_t match_limit =
    100'000;  // ends the search of a pattern that tries too many ways
constexpr std::uint32_t last_group = 15;
constexpr std::size_t stack_first_bytes = 32 << 10;
constexpr std::size_t stack_most_bytes = 64 << 10;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text;
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// The pattern of one entry of SCR; empty if it is not for this rank. An entry without a range is
/// for all.
std::string_view for_rank(std::string_view entry, int rank) {
  int low = 0;
  int high = -1;
  const char* const end = entry.data() + entry.size();
  const auto first = std::from_chars(entry.data(), end, low);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return entry;
  const char* after = first.ptr + 1;
  if (after != end && *after == 'N') {
    ++after;
  } else {
    const auto last = std::from_chars(after, end, high);
    if (last.ec != std::errc()) return entry;
    after = last.ptr;
  }
  if (after == end || *after != ':') return entry;
  const bool is_for_it = rank >= low && (high < 0 || rank <= high);
  return is_for_it ? std::string_view(after + 1, static_cast<std::size_t>(end - after - 1))
                   : std::string_view();
}

/// 0 if the pattern has no group of this name.
std::uint32_t number_of_group(const pcre2_code* code, const char* name) {
  const int group = pcre2_substring_number_from_name(code, reinterpret_cast<PCRE2_SPTR>(name));
  return group > 0 ? static_cast<std::uint32_t>(group) : 0;
}

/// What the group has matched; empty if nothing, or if there is no such group.
std::string_view text_of_group(std::string_view name, pcre2_match_data* data, int groups,
                               std::uint32_t group) {
  if (group == 0 || static_cast<int>(group) >= groups) return {};
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data) + std::size_t{2} * group;
  return ends[0] == PCRE2_UNSET ? std::string_view() : name.substr(ends[0], ends[1] - ends[0]);
}

}  // namespace

struct Patterns::Compiled {
  pcre2_code* code = nullptr;
  bool is_machine_code = false;  // false where the system allows no executable memory
  std::uint32_t step_group = 0;  // none
  std::uint32_t rank_group = 0;

  ~Compiled() { pcre2_code_free(code); }
};

/// Memory for searches at the same time, one bit each. A signal handler that interrupts a search
/// takes another.
class Patterns::Workspaces {
 public:
  static constexpr unsigned count = 32;

  struct One {
    pcre2_match_data* data = nullptr;
    pcre2_match_context* context = nullptr;
    pcre2_jit_stack* stack = nullptr;
  };

  Workspaces() {
    for (One& one : all_) {
      one.data = pcre2_match_data_create(last_group + 1, nullptr);
      one.context = pcre2_match_context_create(nullptr);
      one.stack = pcre2_jit_stack_create(stack_first_bytes, stack_most_bytes, nullptr);
      if (one.context == nullptr) continue;
      pcre2_set_match_limit(one.context, match_limit);
      pcre2_jit_stack_assign(one.context, nullptr, one.stack);
    }
  }

  ~Workspaces() {
    for (One& one : all_) {
      pcre2_match_data_free(one.data);
      pcre2_match_context_free(one.context);
      pcre2_jit_stack_free(one.stack);
    }
  }

  unsigned take() {
    for (;;) {
      std::uint32_t used = used_.load(std::memory_order_relaxed);
      if (used == UINT32_MAX) {
        sched_yield();
        continue;
      }
      const unsigned index = static_cast<unsigned>(__builtin_ctz(~used));
      if (used_.compare_exchange_weak(used, used | (1U << index), std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return index;
    }
  }

  void give_back(unsigned index) { used_.fetch_and(~(1U << index), std::memory_order_release); }
  void give_all_back() { used_.store(0, std::memory_order_release); }
  One& at(unsigned index) { return all_[index]; }

 private:
  std::array<One, count> all_;
  std::atomic<std::uint32_t> used_{0};
};

Patterns::Patterns() : workspaces_(std::make_unique<Workspaces>()) {}
Patterns::~Patterns() = default;

std::string Patterns::add(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = std::make_unique<Compiled>();
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                 PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (compiled->code == nullptr)
    return "the pattern '" + expression + "' is wrong at character " + std::to_string(offset + 1) +
           ": " + message_of(error);
  compiled->is_machine_code = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
  compiled->step_group = number_of_group(compiled->code, "step");
  compiled->rank_group = number_of_group(compiled->code, "rank");
  if (std::max(compiled->step_group, compiled->rank_group) > last_group)
    return "the pattern '" + expression + "' has more than 14 groups before the step or the rank";
  expressions_.push_back(expression);
  compiled_.push_back(std::move(compiled));
  return {};
}

std::string Patterns::add_of_scr(std::string_view list, std::string_view token, int rank) {
  while (!list.empty()) {
    const std::size_t end = token.empty() ? std::string_view::npos : list.find(token);
    const std::string_view expression = for_rank(list.substr(0, end), rank);
    // SCR never takes a name that ends in ".scr".
    const std::string error = expression.empty()
                                  ? std::string()
                                  : add("^(?!.*\\.scr$).*(?:" + std::string(expression) + ")");
    if (!error.empty()) return error;
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + token.size());
  }
  return {};
}

Match Patterns::find(std::string_view name) const {
  Match found;
  if (compiled_.empty()) return found;
  const unsigned index = workspaces_->take();
  Workspaces::One& with = workspaces_->at(index);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(name.data());
  for (std::size_t i = 0; i < compiled_.size() && !found && with.data != nullptr; ++i) {
    const Compiled& one = *compiled_[i];
    const int groups =
        one.is_machine_code
            ? pcre2_jit_match(one.code, subject, name.size(), 0, 0, with.data, with.context)
            : pcre2_match(one.code, subject, name.size(), 0, PCRE2_NO_JIT, with.data, with.context);
    if (groups < 0) continue;  // also where it gave up: the file then stays in its plain place
    found.pattern = static_cast<int>(i);
    found.step = text_of_group(name, with.data, groups, one.step_group);
    found.is_shared =
        one.rank_group != 0 && text_of_group(name, with.data, groups, one.rank_group).empty();
  }
  workspaces_->give_back(index);
  return found;
}

void Patterns::adopt_process() const { workspaces_->give_all_back(); }

}  // namespace cairn::interpose
