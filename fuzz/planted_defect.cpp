// A decoder with a defect, which tests/fuzz expects to be found.
#include "decoder.hpp"

namespace cairn::fuzz {

void check(Bytes input) {
  const std::string_view text = text_of(input);
  if (text.size() > 2 && text[0] == 'b' && text[1] == 'a') expect(text[2] != 'd', "it is not bad");
}

std::vector<Blob> seeds() { return {blob_of("good")}; }

}  // namespace cairn::fuzz
