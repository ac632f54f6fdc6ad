// The facts of cairn rbio, as text or as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/rbio/rbio_facts.hpp"

namespace cairn {

nlohmann::ordered_json json_of(const SeriesFacts& facts);
nlohmann::ordered_json json_of(const ShownFacts& facts, bool with_ranks);
nlohmann::ordered_json json_of(const CheckedFacts& facts);

void print(std::ostream& out, const SeriesFacts& facts);
void print(std::ostream& out, const ShownFacts& facts, bool with_ranks);
void print(std::ostream& out, const CheckedFacts& facts);

}  // namespace cairn
