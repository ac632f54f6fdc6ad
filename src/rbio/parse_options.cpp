#include "rbio/parse_options.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "config/value.hpp"

namespace cairn::rbio {
namespace {

using namespace std::string_view_literals;

struct Row {
  std::string_view key;
  Rule rule;
  void (*set)(SeriesOptions&, const Value&);
};

struct NamedMode {
  std::string_view name;
  Mode mode;
};

constexpr std::array modes = {NamedMode{"threaded", Mode::threaded},
                              NamedMode{"split", Mode::split}, NamedMode{"sync", Mode::sync},
                              NamedMode{"collective", Mode::collective}};

constexpr auto mode_names = [] {
  std::array<std::string_view, modes.size()> names;
  for (std::size_t i = 0; i < modes.size(); ++i) names[i] = modes[i].name;
  return names;
}();

constexpr Rule any_number{ValueType::integer, 0, std::numeric_limits<int>::max()};

constexpr std::array rows = {
    Row{"mode", Rule{ValueType::word, 0, 0, false, mode_names},
        [](SeriesOptions& o, const Value& v) { o.mode = modes.at(v.number).mode; }},
    Row{"group", any_number,
        [](SeriesOptions& o, const Value& v) { o.group_size = static_cast<int>(v.number); }},
    Row{"files", any_number,
        [](SeriesOptions& o, const Value& v) { o.files = static_cast<int>(v.number); }},
    Row{"keep", any_number, [](SeriesOptions& o, const Value& v) { o.keep = v.number; }},
    Row{"memory", Rule{ValueType::bytes},
        [](SeriesOptions& o, const Value& v) { o.memory_bytes = v.number; }},
    Row{"timeout", Rule{ValueType::integer, 1, std::numeric_limits<int>::max()},
        [](SeriesOptions& o, const Value& v) { o.timeout_s = static_cast<double>(v.number); }},
    Row{"pace", Rule{ValueType::fraction},
        [](SeriesOptions& o, const Value& v) { o.pace = v.real; }},
    Row{"direct", Rule{ValueType::boolean},
        [](SeriesOptions& o, const Value& v) { o.is_direct = v.number != 0; }},
};

std::vector<std::string_view> keys() {
  std::vector<std::string_view> all;
  for (const Row& row : rows) all.push_back(row.key);
  return all;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

tl::unexpected<Error> fail_on_key(const std::string& key, std::string_view source) {
  const std::string_view nearest = nearest_name(key, keys());
  const std::string proposal = nearest.empty()
                                   ? fmt::format("the keys are {}", fmt::join(keys(), ", "))
                                   : fmt::format("did you mean {}?", nearest);
  return fail(Code::bad_setting, "unknown key {} ({}); {}", key, source, proposal);
}

Status apply_word(SeriesOptions& options, const Word& word, std::string_view source) {
  const std::string key = lower_case(word.key);
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.key == key; });
  if (row == rows.end()) return fail_on_key(key, source);
  if (!word.value)
    return fail(Code::bad_setting, "{} ({}) has no value; write {}=VALUE", key, source, key);
  CAIRN_ASSIGN(const Value value, read_value(row->rule, key, {*word.value, std::string(source)}));
  row->set(options, value);
  return {};
}

}  // namespace

Status apply_options(SeriesOptions& options, std::string_view text, std::string_view source,
                     const Lookup& variable) {
  auto words = parse_words(text, variable);
  if (!words) return fail(Code::bad_setting, "\"{}\" ({}): {}", text, source, words.error().text);
  for (const Word& word : *words) CAIRN_TRY(apply_word(options, word, source));
  return {};
}

}  // namespace cairn::rbio
