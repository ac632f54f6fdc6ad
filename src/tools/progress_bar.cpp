#include "tools/progress_bar.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace cairn {
namespace {

constexpr std::int64_t pause_us = 100'000;
constexpr std::int64_t line_pause_us = 500'000;
constexpr std::uint64_t cells = 20;
constexpr double us_per_s = 1e6;

}  // namespace

std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t all,
                          double seconds) {
  const std::uint64_t filled = all == 0 ? cells : std::min(cells, cells * done / all);
  std::string line = fmt::format("{}: [{:<{}}] {} of {}", what, std::string(filled, '#'), cells,
                                 format_bytes(done), format_bytes(all));
  if (done == 0 || seconds <= 0) return line;
  const double rate = static_cast<double>(done) / seconds;
  const double left_s = static_cast<double>(all - std::min(done, all)) / rate;
  return line + fmt::format(", {}/s, {:.0f} s left", format_bytes(static_cast<std::uint64_t>(rate)),
                            left_s);
}

ProgressBar::ProgressBar(std::ostream& out, Clock& clock, std::string what, bool shown)
    : out_(out),
      clock_(clock),
      what_(std::move(what)),
      shown_(shown),
      begun_us_(clock.steady_us()) {}

double ProgressBar::seconds() const {
  return static_cast<double>(clock_.steady_us() - begun_us_) / us_per_s;
}

void ProgressBar::show(std::uint64_t done, std::uint64_t all) {
  if (!shown_) return;
  const std::scoped_lock lock(mutex_);
  const std::int64_t now_us = clock_.steady_us();
  if (shown_us_ != 0 && now_us - shown_us_ < pause_us && done < all) return;
  shown_us_ = now_us;
  constexpr std::string_view clear_to_end = "\x1b[K";
  out_ << '\r' << progress_line(what_, done, all, seconds()) << clear_to_end << std::flush;
}

void ProgressBar::end() {
  const std::scoped_lock lock(mutex_);
  if (shown_us_ != 0) out_ << std::endl;
  shown_us_ = 0;
}

ProgressLines::ProgressLines(std::ostream& out, Clock& clock, bool shown)
    : out_(out), clock_(clock), shown_(shown), shown_us_(clock.steady_us()) {}

void ProgressLines::show(std::uint64_t done) {
  if (!shown_) return;
  const std::scoped_lock lock(mutex_);
  const std::int64_t now_us = clock_.steady_us();
  if (now_us - shown_us_ < line_pause_us) return;
  shown_us_ = now_us;
  out_ << ". " << done << std::endl;
}

void ProgressLines::end(std::uint64_t done) {
  const std::scoped_lock lock(mutex_);
  if (shown_) out_ << ". " << done << std::endl;
}

}  // namespace cairn
