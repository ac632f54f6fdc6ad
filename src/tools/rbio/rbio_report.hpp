// The reports of cairn rbio, made from facts.
#pragma once

#include "tools/rbio/rbio_extract.hpp"
#include "tools/rbio/rbio_facts.hpp"
#include "tools/report.hpp"

namespace cairn {

Report report_of(const SeriesFacts& facts);
Report report_of(const CheckedFacts& facts);
/// `with_ranks`: also what each rank wrote.
Report report_of(const ShownFacts& facts, bool with_ranks);
Report report_of(const ExtractedFacts& facts);

}  // namespace cairn
