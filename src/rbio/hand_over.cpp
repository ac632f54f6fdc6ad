#include "rbio/hand_over.hpp"

#include <algorithm>
#include <span>

#include "base/stream_copy.hpp"
#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

constexpr int mapped_tag = 3;
constexpr int copied_tag = 4;
constexpr int data_tag = HandOver::data_tag;

/// Calls `each` for each message that the bytes make.
template <class Span, class Each>
void for_each_message(Span bytes, Each each) {
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), Communicator::max_message_bytes);
    each(bytes.first(length));
    bytes = bytes.subspan(length);
  }
}

/// Where this rank's pieces begin in the buffer: as BufferLayout says, without the shares of all.
std::vector<std::uint64_t> places_of(Communicator& group, const Share& mine) {
  const std::size_t fields = mine.bytes.size();
  std::vector<std::int64_t> numbers(mine.bytes.begin(), mine.bytes.end());
  // The sum over all is what the writer, whose piece is the first in the buffer, gives.
  for (const std::uint64_t offset : mine.offsets)
    numbers.push_back(group.rank() == 0 ? static_cast<std::int64_t>(offset % part_alignment) : 0);
  const Scan scan = exclusive_scan(group, numbers);
  std::vector<std::uint64_t> places;
  std::uint64_t field_begin = 0;
  for (std::size_t i = 0; i < fields; ++i) {
    const auto field_bytes = static_cast<std::uint64_t>(scan.total[i]);
    const auto offset_in_page = static_cast<std::uint64_t>(scan.total[fields + i]);
    field_begin = begin_of_field(field_begin, offset_in_page, field_bytes);
    places.push_back(field_begin + static_cast<std::uint64_t>(scan.before[i]));
    field_begin += field_bytes;
  }
  return places;
}

void copy_fields(const std::vector<Field>& fields, const std::vector<std::uint64_t>& places,
                 MutableBytes buffer) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Bytes content = fields[i].content();
    const MutableBytes place = buffer.subspan(places[i], content.size());
    stream_copy(place, content);
  }
}

std::vector<Request> post_sends(Communicator& group, const std::vector<Bytes>& contents) {
  std::vector<Request> requests;
  for (const Bytes content : contents)
    for_each_message(content,
                     [&](Bytes piece) { requests.push_back(group.isend(piece, 0, data_tag)); });
  return requests;
}

std::vector<Bytes> contents_of(const std::vector<Field>& fields) {
  std::vector<Bytes> contents;
  for (const Field& field : fields) contents.push_back(field.content());
  return contents;
}

/// One field after the other; returns the copies.
std::vector<Bytes> copy_of(const std::vector<Field>& fields, MutableBytes buffer) {
  std::vector<std::uint64_t> places;
  std::vector<Bytes> copies;
  std::uint64_t end = 0;
  for (const Field& field : fields) {
    places.push_back(end);
    copies.push_back(buffer.subspan(end, field.bytes()));
    end += field.bytes();
  }
  copy_fields(fields, places, buffer);
  return copies;
}

std::vector<Request> send_fields(Communicator& group, const std::vector<Field>& fields,
                                 StepBuffer* staging) {
  if (staging != nullptr) return post_sends(group, copy_of(fields, staging->segment->bytes()));
  std::vector<Request> requests = post_sends(group, contents_of(fields));
  wait_all(group, requests);
  return {};
}

/// What the writer gets.
struct Incoming {
  std::vector<Request> copied;  ///< from those that copy: that they have
  std::vector<Request> data;    ///< of the others
};

Incoming post_receives(Communicator& group, const std::vector<Share>& shares, StepBuffer& buffer) {
  Incoming incoming;
  const BufferLayout layout(shares);
  for (std::size_t member = 1; member < shares.size(); ++member) {
    const int from = static_cast<int>(member);
    if (buffer.is_mapped_by[member]) {
      incoming.copied.push_back(group.irecv({}, from, copied_tag));
      continue;
    }
    for (std::size_t field = 0; field < shares[member].bytes.size(); ++field)
      for_each_message(
          buffer.segment->bytes().subspan(layout.offset(member, field),
                                          shares[member].bytes[field]),
          [&](MutableBytes piece) { incoming.data.push_back(group.irecv(piece, from, data_tag)); });
  }
  return incoming;
}

/// Of all members whether they have mapped a segment.
std::vector<bool> collect_answers(Communicator& group) {
  std::vector<std::uint8_t> answers(static_cast<std::size_t>(group.size()), 1);
  std::vector<Request> requests;
  for (int member = 1; member < group.size(); ++member)
    requests.push_back(group.irecv(mutable_bytes_of(answers[static_cast<std::size_t>(member)]),
                                   member, mapped_tag));
  wait_all(group, requests);
  return {answers.begin(), answers.end()};
}

/// What the writer says of the buffer of a step.
struct Offer {
  std::uint64_t id = 0;  ///< 0: it has none
  std::vector<std::uint64_t> buffers;
};

Offer bcast_offer(Communicator& group, const StepBuffer* buffer,
                  const std::vector<std::uint64_t>& buffers) {
  Encoder out;
  out.u64(buffer != nullptr ? buffer->id : 0);
  for (const std::uint64_t id : buffers) out.u64(id);
  Blob blob = out.take();
  bcast_blob(group, blob, 0);
  Decoder in(blob);
  Offer offer{in.u64(), {}};
  while (!in.at_end()) offer.buffers.push_back(in.u64());
  return offer;
}

}  // namespace

std::vector<bool> HandOver::share(Communicator& group, Segment* of_writer,
                                  std::unique_ptr<Segment>& mine) {
  Encoder out;
  out.text(of_writer != nullptr ? of_writer->name() : "");
  out.u64(of_writer != nullptr ? of_writer->bytes().size() : 0);
  Blob blob = out.take();
  bcast_blob(group, blob, 0);
  if (group.rank() == 0) return collect_answers(group);
  Decoder in(blob);
  const std::string name = in.text();
  const std::uint64_t bytes = in.u64();
  if (is_near_ && memory_ && !name.empty()) {
    auto attached = memory_->attach(name, bytes);
    if (attached)
      mine = *std::move(attached);
    else
      log_.warning("{}; this rank sends its data by messages, which is slower",
                   attached.error().text);
  }
  const std::uint8_t answer = mine ? 1 : 0;
  send(group, bytes_of(answer), 0, mapped_tag);
  return {};
}

OfferedBuffer HandOver::map(Communicator& group, StepBuffer* buffer,
                            const std::vector<std::uint64_t>& buffers) {
  const Offer offer = bcast_offer(group, buffer, buffers);
  std::erase_if(mapped_, [&](const auto& entry) {
    return std::find(offer.buffers.begin(), offer.buffers.end(), entry.first) ==
           offer.buffers.end();
  });
  if (offer.id == 0) return {};
  const bool is_new = !mapped_.contains(offer.id);
  std::unique_ptr<Segment>& mine = mapped_[offer.id];
  if (is_new) {
    std::vector<bool> by = share(group, buffer ? buffer->segment.get() : nullptr, mine);
    if (buffer != nullptr) buffer->is_mapped_by = std::move(by);
  }
  return {true, buffer != nullptr ? buffer->segment.get() : mine.get()};
}

std::vector<Request> HandOver::bring(Communicator& group, const std::vector<Field>& fields,
                                     const Share& mine, const std::vector<Share>& shares,
                                     const StepMemory& memory) {
  const std::vector<std::uint64_t> places = places_of(group, mine);
  if (memory.mapped == nullptr) return send_fields(group, fields, memory.buffer.get());
  Incoming incoming;
  if (group.rank() == 0) incoming = post_receives(group, shares, *memory.buffer);
  copy_fields(fields, places, memory.mapped->bytes());
  if (group.rank() != 0) incoming.copied.push_back(group.isend({}, 0, copied_tag));
  wait_all(group, incoming.copied);
  return std::move(incoming.data);
}

}  // namespace cairn::rbio
