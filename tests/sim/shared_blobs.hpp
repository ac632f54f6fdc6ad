// Memory that the ranks of a simulated node share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rbio/shared_memory.hpp"

namespace cairn::sim {

/// As after a death in a job, those that map a segment still have it.
class SharedBlobs final : public rbio::SharedMemory {
 public:
  Result<std::unique_ptr<rbio::Segment>> create(std::uint64_t bytes) override {
    const std::string name = fmt::format("memory {}", ++last_number_);
    auto content = std::make_shared<Blob>(bytes);
    contents_[name] = content;
    return std::make_unique<Mapped>(name, std::move(content));
  }
  Result<std::unique_ptr<rbio::Segment>> attach(const std::string& name,
                                                std::uint64_t bytes) override {
    auto content = contents_[name].lock();
    if (!content || content->size() != bytes) return fail(Code::io, "there is no {}", name);
    return std::make_unique<Mapped>(name, std::move(content));
  }

 private:
  class Mapped final : public rbio::Segment {
   public:
    Mapped(std::string name, std::shared_ptr<Blob> content)
        : name_(std::move(name)), content_(std::move(content)) {}
    MutableBytes bytes() override { return *content_; }
    const std::string& name() const override { return name_; }

   private:
    const std::string name_;
    const std::shared_ptr<Blob> content_;
  };

  std::map<std::string, std::weak_ptr<Blob>> contents_;
  int last_number_ = 0;
};

}  // namespace cairn::sim
