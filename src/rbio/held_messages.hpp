// A slow network between nodes, for tests: messages with data leave late, or not at all.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "comm/communicator.hpp"
#include "rbio/hand_over.hpp"

namespace cairn::rbio {

/// Of one rank, over a Team. While `is_held` returns true, sends of data do not begin. Later they
/// begin as the rank makes calls, as with an MPI that has no thread of its own. All calls must come
/// from one thread, as such an MPI demands.
class HeldMessages final : public Communicator {
 public:
  HeldMessages(Communicator& inner, std::function<bool()> is_held)
      : inner_(inner), is_held_(std::move(is_held)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Request isend(Bytes data, int to, int tag) override {
    check_thread();
    if (tag != HandOver::data_tag) return inner_.isend(data, to, tag);
    auto send = std::make_shared<Send>(Send{data, to, nullptr});
    held_.push_back(send);
    return std::make_unique<HeldSend>(*this, std::move(send));
  }
  Request irecv(MutableBytes buffer, int from, int tag) override {
    check_thread();
    return inner_.irecv(buffer, from, tag);
  }
  /// Never sleeps for long: a rank may wait for a time.
  void idle() override {
    move_on();
    ::usleep(100);
  }

 private:
  struct Send {
    Bytes data;
    int to;
    Request begun;
  };

  class HeldSend final : public PendingMessage {
   public:
    HeldSend(HeldMessages& all, std::shared_ptr<Send> send) : all_(all), send_(std::move(send)) {}
    ~HeldSend() override {
      std::erase_if(all_.held_, [&](const auto& one) { return one == send_; });
    }
    bool test() override {
      all_.move_on();
      return send_->begun && send_->begun->test();
    }

   private:
    HeldMessages& all_;
    const std::shared_ptr<Send> send_;
  };

  void check_thread() const { EXPECT_EQ(std::this_thread::get_id(), thread_); }

  void move_on() {
    check_thread();
    while (!held_.empty() && !is_held_()) {
      Send& send = *held_.front();
      send.begun = inner_.isend(send.data, send.to, HandOver::data_tag);
      held_.pop_front();
    }
  }

  Communicator& inner_;
  const std::function<bool()> is_held_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::deque<std::shared_ptr<Send>> held_;
};

}  // namespace cairn::rbio
