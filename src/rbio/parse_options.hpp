// The options of a series as programs and users write them: "mode=sync group=64 files=1".
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "config/parser.hpp"
#include "rbio/series.hpp"

namespace cairn::rbio {

/// Sets what `text` says; the other options keep their values. `source` says in messages where the
/// text comes from; $NAME in a value is looked up by `variable`. bad_setting for an unknown key or
/// a value that is not allowed.
Status apply_options(SeriesOptions& options, std::string_view text, std::string_view source,
                     const Lookup& variable);

}  // namespace cairn::rbio
