#include "config/app_settings.hpp"

#include <algorithm>
#include <utility>

#include "config/options.hpp"

namespace cairn {
namespace {

bool settable(const std::string& key) {
  if (const Option* option = find_option(key)) return !option->flags.not_by_app;
  const DescriptorKey* descriptor = find_descriptor_key(key);
  return !descriptor || !descriptor->not_by_app;
}

void put(std::vector<Pair>& children, const Pair& child) {
  std::erase_if(children, [&](const Pair& old) { return old.key == child.key; });
  if (!child.value.empty()) children.push_back(child);
}

Result<ConfigRequest> query_of(std::vector<Word> words, const std::string& text) {
  ConfigRequest request;
  request.entry.key = std::move(words[0].key);
  if (words.size() == 1 && !words[0].value) return request;
  if (words.size() == 2 && words[0].value && !words[1].value) {
    request.entry.value = *std::move(words[0].value);
    request.leaf = std::move(words[1].key);
    return request;
  }
  return fail(Code::bad_setting,
              "SCR_Config(\"{}\"): query one setting at a time, as \"KEY\" or \"CKPT=0 TYPE\"",
              text);
}

}  // namespace

Result<ConfigRequest> parse_request(const std::string& text, const Lookup& variable) {
  auto words = parse_words(text, variable);
  if (!words) return fail(Code::bad_setting, "SCR_Config(\"{}\"): {}", text, words.error().text);
  if (words->empty())
    return fail(Code::bad_setting, "SCR_Config(\"{}\"): the text is empty; write KEY=VALUE", text);
  const bool asks =
      std::any_of(words->begin(), words->end(), [](const Word& w) { return !w.value; });
  if (asks) return query_of(*std::move(words), text);
  if (words->size() > 1 && words->front().value->empty())
    return fail(
        Code::bad_setting,
        "SCR_Config(\"{}\"): the value of {} is missing; write {}=VALUE before its other keys",
        text, words->front().key, words->front().key);
  ConfigRequest request{ConfigRequest::Kind::change, {}, ""};
  request.entry.key = std::move(words->front().key);
  request.entry.value = *std::move(words->front().value);
  for (auto word = words->begin() + 1; word != words->end(); ++word)
    request.entry.children.push_back({std::move(word->key), *std::move(word->value)});
  return request;
}

Entry& AppSettings::entry_for(const Entry& request, bool is_descriptor) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.key == request.key && (!is_descriptor || entry.value == request.value);
  });
  if (found != entries_.end()) return *found;
  entries_.push_back({request.key, request.value, {}, 0});
  return entries_.back();
}

ConfigAnswer AppSettings::change(const Entry& request) {
  if (!settable(request.key))
    return {std::nullopt,
            {fmt::format("{} is ignored, because SCR_Config cannot set it; set it in the "
                         "environment or in a file",
                         request.key)}};
  if (request.value.empty()) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.key == request.key; });
    return {};
  }
  const bool is_descriptor =
      find_descriptor_key(request.key) != nullptr || !request.children.empty();
  Entry& entry = entry_for(request, is_descriptor);
  entry.value = request.value;
  for (const Pair& child : request.children) put(entry.children, child);
  return {};
}

ConfigAnswer AppSettings::query(const ConfigRequest& request, const Lookup& resolved) const {
  const std::string& key = request.entry.key;
  const std::string full =
      request.leaf.empty() ? key : fmt::format("{}={} {}", key, request.entry.value, request.leaf);
  if (auto value = resolved(full)) return {std::move(value), {}};
  std::vector<std::string> values;
  for (const Entry& entry : entries_) {
    if (entry.key != key) continue;
    if (request.leaf.empty()) values.push_back(entry.value);
    if (request.leaf.empty() || entry.value != request.entry.value) continue;
    for (const Pair& child : entry.children)
      if (child.key == request.leaf) values.push_back(child.value);
  }
  if (values.size() > 1)
    return {std::nullopt,
            {fmt::format("{} has the values {}; query a key of one of them, as \"{}={} KEY\"", key,
                         fmt::join(values, ", "), key, values[0])}};
  if (values.empty()) return {};
  return {values[0], {}};
}

}  // namespace cairn
