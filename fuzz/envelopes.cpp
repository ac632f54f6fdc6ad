// The search for envelopes in the content of a file.
#include "checksums.hpp"
#include "decoder.hpp"
#include "records/wire.hpp"

namespace cairn::fuzz {
namespace {

bool same(Bytes a, Bytes b) { return text_of(a) == text_of(b); }

/// Sealing the payload again gives the same bytes, and the envelopes follow each other.
void check_search(Bytes content) {
  const std::byte* end_of_last = content.data();
  for (const Envelope& envelope : find_envelopes(content)) {
    expect(envelope.whole.data() >= end_of_last, "envelopes do not overlap");
    end_of_last = envelope.whole.data() + envelope.whole.size();
    expect(end_of_last <= content.data() + content.size(), "an envelope lies in the content");
    expect(same(seal(envelope.type, envelope.version, envelope.payload), envelope.whole),
           "an intact envelope is as seal() made it");
  }
}

Blob joined(const Blob& first, const Blob& second) {
  Blob all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

}  // namespace

void check(Bytes input) {
  check_search(input);
  check_search(with_checksums_mended(input));
}

std::vector<Blob> seeds() {
  const Blob one = seal(RecordType::rank, 1, blob_of("payload"));
  const Blob empty = seal(RecordType::halt, 2, {});
  const Blob within = seal(RecordType::index, 1, one);
  const Blob cut(one.begin(), one.end() - 1);
  return {one, joined(one, empty), joined(cut, one), joined(blob_of("CAIRNREC"), within)};
}

}  // namespace cairn::fuzz
