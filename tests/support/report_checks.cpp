#include "support/report_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace cairn {
namespace {

/// What a text names by a number or a path. Not sizes and times, which JSON has in another unit.
std::vector<std::string> facts_in(const std::string& text) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "us", "ms", "s", "min", "h", "d"};
  std::istringstream in(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  std::vector<std::string> facts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto first = words[i].find_first_not_of("\"'(*");
    const auto last = words[i].find_last_not_of(".,:;)\"'");
    if (first == std::string::npos || last == std::string::npos) continue;
    const std::string word = words[i].substr(first, last + 1 - first);
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    const bool is_measure = std::any_of(units.begin(), units.end(), [&](const std::string& unit) {
      return next.substr(0, next.find_last_not_of(".,:;)") + 1) == unit;
    });
    const bool is_fact = word.find_first_of("0123456789/") != std::string::npos;
    if (is_fact && !is_measure) facts.push_back(word);
  }
  return facts;
}

/// All strings in it that are sentences, at any depth.
void add_sentences(const nlohmann::json& json, std::vector<std::string>& sentences) {
  if (json.is_structured())
    for (const auto& one : json) add_sentences(one, sentences);
  else if (json.is_string() && json.get<std::string>().find(' ') != std::string::npos)
    sentences.push_back(json.get<std::string>());
}

}  // namespace

void take_errors(nlohmann::json& json, const std::string& logged) {
  for (const auto& error : json.value("errors", nlohmann::json::array()))
    EXPECT_NE(logged.find(error.get<std::string>()), std::string::npos) << logged;
  json.erase("errors");
}

void expect_same(const std::string& text, const nlohmann::json& json) {
  const std::string all = json.dump();
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (const std::string& fact : facts_in(text)) {
    bool is_found = false;
    for (auto at = all.find(fact); at != std::string::npos && !is_found;
         at = all.find(fact, at + 1)) {
      const std::size_t end = at + fact.size();
      is_found = !(is_part(all[at - 1]) && is_part(fact.front())) &&
                 !(is_part(all[end]) && is_part(fact.back()));
    }
    EXPECT_TRUE(is_found) << "JSON does not have " << fact << " of\n" << text << json.dump(1);
  }
  std::vector<std::string> sentences;
  add_sentences(json, sentences);
  for (const std::string& sentence : sentences)
    EXPECT_NE(text.find(sentence), std::string::npos)
        << "the text does not say: " << sentence << "\n"
        << text;
}

}  // namespace cairn
