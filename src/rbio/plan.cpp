#include "rbio/plan.hpp"

#include <algorithm>
#include <span>

namespace cairn::rbio {
namespace {

constexpr int share_tag = 1;

std::vector<std::uint64_t> packed(const Share& share) {
  std::vector<std::uint64_t> numbers = {share.rank, share.entry_offset};
  numbers.insert(numbers.end(), share.offsets.begin(), share.offsets.end());
  numbers.insert(numbers.end(), share.bytes.begin(), share.bytes.end());
  return numbers;
}

Share unpacked(const std::vector<std::uint64_t>& numbers) {
  const auto begin = numbers.begin() + 2;
  const auto middle = begin + (numbers.end() - begin) / 2;
  return {
      static_cast<std::uint32_t>(numbers[0]), {begin, middle}, {middle, numbers.end()}, numbers[1]};
}

}  // namespace

StepPlan plan_step(Communicator& part, const std::vector<Field>& fields, std::uint32_t rank) {
  StepPlan plan;
  std::vector<std::int64_t> mine;
  for (const Field& field : fields) {
    plan.mine.bytes.push_back(field.bytes());
    mine.push_back(static_cast<std::int64_t>(field.count));
  }
  mine.push_back(static_cast<std::int64_t>(entry_bytes(plan.mine.bytes)));
  const Scan scan = exclusive_scan(part, mine);
  const std::vector<std::uint64_t> elements(scan.total.begin(), scan.total.end() - 1);
  plan.header = lay_out(shapes_of(fields), elements, static_cast<std::uint64_t>(scan.total.back()));
  for (std::size_t i = 0; i < fields.size(); ++i)
    plan.mine.offsets.push_back(plan.header.fields[i].offset +
                                static_cast<std::uint64_t>(scan.before[i]) *
                                    fields[i].shape.element_bytes());
  plan.mine.entry_offset =
      plan.header.table_offset + static_cast<std::uint64_t>(scan.before.back());
  plan.mine.rank = rank;
  return plan;
}

std::vector<Share> gather_shares(Communicator& group, const Share& mine) {
  const std::vector<std::uint64_t> sent = packed(mine);
  if (group.rank() != 0) {
    send(group, std::as_bytes(std::span(sent)), 0, share_tag);
    return {};
  }
  const auto others = static_cast<std::size_t>(group.size() - 1);
  std::vector<std::vector<std::uint64_t>> received(others, std::vector<std::uint64_t>(sent.size()));
  std::vector<Request> requests;
  for (std::size_t i = 0; i < others; ++i)
    requests.push_back(group.irecv(std::as_writable_bytes(std::span(received[i])),
                                   static_cast<int>(i) + 1, share_tag));
  wait_all(group, requests);
  std::vector<Share> shares = {mine};
  for (const auto& numbers : received) shares.push_back(unpacked(numbers));
  return shares;
}

BufferLayout::BufferLayout(const std::vector<Share>& shares) : offsets_(shares.size()) {
  const std::size_t fields = shares.empty() ? 0 : shares[0].bytes.size();
  for (std::size_t field = 0; field < fields; ++field) {
    std::uint64_t field_bytes = 0;
    for (const Share& share : shares) field_bytes += share.bytes[field];
    bytes_ = begin_of_field(bytes_, shares[0].offsets[field], field_bytes);
    for (std::size_t member = 0; member < shares.size(); ++member) {
      offsets_[member].push_back(bytes_);
      bytes_ += shares[member].bytes[field];
    }
  }
}

}  // namespace cairn::rbio
