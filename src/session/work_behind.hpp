// Work of all ranks behind the program, with messages that are not the program's.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "comm/communicator.hpp"
#include "files/background.hpp"
#include "files/idle_cores.hpp"

namespace cairn {

/// The third part of the seam among ranks: so that a test or a simulation decides when it is done.
class WorkBehind {
 public:
  /// The token asks it to end soon, with whatever error: the process ends.
  using Task = std::function<void(Communicator&, const std::stop_token&)>;

  virtual ~WorkBehind() = default;
  /// By all ranks, in collective calls only: so the tasks have one order. The communicator has the
  /// same ranks. Where ranks cannot reach each other, or the task of one ends with an exception,
  /// the tasks of all are unwound by one. `bytes`: how much the task reads and writes, about.
  virtual void post(std::uint64_t bytes, Task task) = 0;
  /// Local. Until all that was posted has ended on this rank: true; or false after so long. It may
  /// take longer where no other process can hang.
  virtual bool wait(std::chrono::milliseconds at_most) = 0;
  /// Local. The program has waited so long for what runs on this rank: a line says for which rank.
  virtual void report_awaited(std::chrono::milliseconds /*waited*/) {}
  /// Local. The same on each rank that has waited so, before they agree which one reports it: one
  /// that is stopped takes no part in that. One line at most.
  virtual void report_late(std::chrono::milliseconds /*waited*/) {}
  /// Local. Why the ranks cannot reach each other, if they cannot.
  virtual Status failure() const { return {}; }
  /// By which the tasks let the program go first. Null: they need not.
  virtual std::shared_ptr<IdleCores> idle_cores() { return nullptr; }
};

/// What is left where the ranks could not be connected. Nothing may be posted.
class NoWorkBehind final : public WorkBehind {
 public:
  explicit NoWorkBehind(Error why) : why_(std::move(why)) {}

  void post(std::uint64_t /*bytes*/, Task /*task*/) override {}
  bool wait(std::chrono::milliseconds /*at_most*/) override { return true; }
  Status failure() const override { return tl::unexpected(why_); }

 private:
  const Error why_;
};

/// By the thread of `background` and over `comm`, which is used for nothing else.
class WorkOfBackground final : public WorkBehind {
 public:
  WorkOfBackground(Background& background, Communicator& comm, std::stop_token stop = {})
      : background_(background), comm_(comm), stop_(std::move(stop)) {}

  void post(std::uint64_t bytes, Task task) override {
    background_.post(bytes, [&comm = comm_, stop = stop_, task = std::move(task)] {
      try {
        task(comm, stop);
      } catch (const std::exception&) {
        return;  // the task knows
      }
    });
  }
  bool wait(std::chrono::milliseconds /*at_most*/) override {
    background_.wait();
    return true;
  }

 private:
  Background& background_;
  Communicator& comm_;
  std::stop_token stop_;
};

}  // namespace cairn
