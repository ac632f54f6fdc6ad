#include "session/halt_watch.hpp"

namespace cairn {
namespace {

constexpr std::int64_t look_every_us = 1'000'000;

}  // namespace

std::unique_ptr<HaltWatch> HaltWatch::start(HaltFile file, Background& background) {
  std::unique_ptr<HaltWatch> watch(new HaltWatch(std::move(file)));
  watch->thread_ = background.keep_stepping([&watched = *watch] {
    watched.look();
    return look_every_us;
  });
  return watch->thread_ ? std::move(watch) : nullptr;
}

Result<HaltRecord> HaltWatch::last() const {
  const std::scoped_lock lock(mutex_);
  return last_;
}

void HaltWatch::note(const HaltRecord& record) {
  const std::scoped_lock lock(mutex_);
  last_ = record;
  ++changes_;
}

void HaltWatch::look() {
  std::uint64_t before = 0;
  {
    const std::scoped_lock lock(mutex_);
    before = changes_;
  }
  auto record = file_.read();
  const std::scoped_lock lock(mutex_);
  if (changes_ == before) last_ = std::move(record);
}

}  // namespace cairn
