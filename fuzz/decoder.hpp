// What a target of the fuzzer is: one file that defines check() and seeds() for one decoder.
// entry.cpp is the rest of the program.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace cairn::fuzz {

/// Gives any bytes to the decoder, and expects what must hold for whatever it makes of them.
void check(Bytes input);

/// Inputs to start from: real ones, made by the encoders of production.
std::vector<Blob> seeds();

// --- what entry.cpp has for the targets ---

/// Ends the process if a promise does not hold, so that the fuzzer keeps the input.
void expect(bool holds, const char* promise);

std::string_view text_of(Bytes input);
Blob blob_of(std::string_view text);

/// The parts of a text that `separator` stands between; there is at least one.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace cairn::fuzz
