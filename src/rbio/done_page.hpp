// What a writer shows its group of the steps that it has done with, in memory that processes share.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "rbio/shared_memory.hpp"

namespace cairn::rbio {

/// Of a segment that is used so; it holds zeros at first.
constexpr std::uint64_t done_page_bytes = 4096;

/// By the writer, with 1, 2 and so on: it has done with this step.
void note_done(Segment& page, std::uint64_t number, Code outcome);

/// The last one.
std::uint64_t last_done(Segment& page);

/// ok if the writer has done with the step and it has not failed; also if that is not known any
/// more, or not yet.
Code outcome_in(Segment& page, std::uint64_t number);

}  // namespace cairn::rbio
