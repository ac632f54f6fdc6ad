// For tests of commands: the text and the JSON of a report say the same.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cairn {

/// Removes the errors from the JSON of a report; `logged` must have each of them. The text must
/// have what is left: nothing if there is no report.
void take_errors(nlohmann::json& json, const std::string& logged);

/// A fact of the text must be in the JSON, and a sentence of the JSON in the text.
void expect_same(const std::string& text, const nlohmann::json& json);

}  // namespace cairn
