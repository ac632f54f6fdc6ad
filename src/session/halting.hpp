// When a run is to stop: the five conditions of the halt file and the settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/event_log.hpp"
#include "session/halt_watch.hpp"

namespace cairn {

/// Why a run is to stop.
struct HaltCause {
  std::string_view reason;  ///< as in the halt file, in which it may point
  std::string text;         ///< the same for people
};

/// The first condition that holds at `now_s` (seconds since 1970), if one does.
std::optional<HaltCause> halt_cause(const HaltRecord& record, const Settings& settings,
                                    std::int64_t now_s);

/// How long (us) a program that ends at `now_us` (since 1970) may wait for its copies: by the
/// settings, and until it has to be gone. Negative: as long as it takes. An end that has passed
/// says nothing.
std::int64_t time_for_copies_us(const HaltRecord& record, const Settings& settings,
                                std::int64_t now_us);

/// What rank 0 knows of the end of the run. Local; only rank 0 may ask it. If the halt file
/// cannot be read or written, it warns once: a run does not end because of that.
class Halting {
 public:
  enum class State {
    goes_on = 0,
    halts = 1,          ///< after its next checkpoint
    halts_at_once = 2,  ///< no further checkpoint is wanted
  };

  /// All that is passed in must outlive this, but for the log.
  Halting(Files& files, Clock& clock, const Settings& settings, Log log, EventLog& events)
      : file_(files, clock, PrefixFolder{settings.prefix}),
        files_(files),
        clock_(clock),
        settings_(settings),
        log_(std::move(log)),
        events_(events) {}

  /// The run begins: what earlier ones have recorded and no longer holds is taken back.
  void begin();
  /// From here on a thread reads the halt file, if there is one for it.
  void watch(Background& background) { watch_ = HaltWatch::start(file_, background); }
  /// Ends that thread; what it has not changed in the file stays as it is.
  void stop_watch() { watch_.reset(); }
  /// Reads the halt file anew, or takes what the thread has read last. Logs and
  /// records what is new.
  State look();
  /// A checkpoint was made.
  void count_checkpoint();
  /// The function of this name, now.
  std::int64_t time_for_copies_us() {
    return cairn::time_for_copies_us(read(), settings_, clock_.now_us());
  }
  /// The run has come to its end.
  void end();

 private:
  HaltRecord read();
  void log_change(const HaltRecord& record, const std::optional<HaltCause>& cause);
  void record_reason(const HaltRecord& record, std::string_view reason);
  void update(std::function<void(HaltRecord&)> change);
  void warn_if_unchanged(const Status& change);
  void warn_once(const Error& error);
  std::int64_t now_s() { return clock_.now_us() / 1'000'000; }

  HaltFile file_;
  Files& files_;
  Clock& clock_;
  const Settings& settings_;
  Log log_;
  EventLog& events_;
  std::int64_t uncounted_ = 0;  ///< checkpoints that could not be subtracted in the file yet
  ChangeFilter requests_;       ///< the reason, and how it ends the run; empty: none
  std::set<std::string> warned_;
  std::unique_ptr<HaltWatch> watch_;
};

}  // namespace cairn
