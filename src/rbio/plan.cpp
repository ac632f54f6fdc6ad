#include "rbio/plan.hpp"

#include <algorithm>
#include <span>

namespace cairn::rbio {
namespace {

constexpr int share_tag = 1;
constexpr int data_tag = 2;

/// Calls `send_or_receive` for each message that the bytes make.
template <class Span, class Each>
void for_each_message(Span bytes, Each each) {
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), Communicator::max_message_bytes);
    each(bytes.first(length));
    bytes = bytes.subspan(length);
  }
}

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
    for (std::size_t member = 0; member < shares.size(); ++member) {
      offsets_[member].push_back(bytes_);
      bytes_ += shares[member].bytes[field];
    }
  }
}

void gather_data(Communicator& group, const std::vector<Field>& fields,
                 const std::vector<Share>& shares, MutableBytes buffer) {
  std::vector<Request> requests;
  if (group.rank() != 0) {
    for (const Field& field : fields)
      for_each_message(field.content(),
                       [&](Bytes piece) { requests.push_back(group.isend(piece, 0, data_tag)); });
    return wait_all(group, requests);
  }
  const BufferLayout layout(shares);
  for (std::size_t member = 1; member < shares.size(); ++member)
    for (std::size_t field = 0; field < fields.size(); ++field)
      for_each_message(buffer.subspan(layout.offset(member, field), shares[member].bytes[field]),
                       [&](MutableBytes piece) {
                         requests.push_back(group.irecv(piece, static_cast<int>(member), data_tag));
                       });
  for (std::size_t field = 0; field < fields.size(); ++field)
    std::copy_n(fields[field].data, fields[field].bytes(),
                buffer.begin() + static_cast<std::ptrdiff_t>(layout.offset(0, field)));
  wait_all(group, requests);
}

}  // namespace cairn::rbio
