#include "tools/advice.hpp"

#include <algorithm>

#include "prefix/fetch_order.hpp"

namespace cairn {
namespace {

/// A name as a word of a shell's command line.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+:,@%=").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string with_caches(std::string command, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) command += " --cache " + quoted(folder);
  return command;
}

}  // namespace

std::string Advice::word_for(const DatasetInfo& dataset) const {
  const DatasetRecord* named = find_named(listing_, dataset.name);
  const bool by_name =
      !dataset.name.empty() && (named == nullptr || named->info.uuid == dataset.uuid);
  return quoted(by_name ? dataset.name : text_of(dataset.uuid));
}

std::string Advice::with_prefix(const std::string& command) const {
  return fmt::format("cairn {} --prefix {}", command, quoted(prefix_));
}

std::string Advice::index(const std::string& words, const DatasetInfo& dataset) const {
  return with_prefix(fmt::format("index {} {}", words, word_for(dataset)));
}

std::string Advice::index_delete(const DatasetInfo& dataset) const {
  return with_prefix("index delete " + text_of(dataset.uuid));
}

std::string Advice::index_import() const { return with_prefix("index import"); }

std::string Advice::scavenge() const { return with_prefix("scavenge"); }

std::string Advice::scavenge_nodes() const {
  return fmt::format("save what the nodes hold by {} while they are up", scavenge());
}

std::string Advice::rebuild() const { return with_prefix("rebuild"); }

std::string Advice::rebuild(const DatasetInfo& dataset) const {
  return with_prefix("rebuild " + text_of(dataset.uuid));
}

std::string Advice::verify(const DatasetInfo& dataset) const {
  return with_caches(with_prefix("verify " + word_for(dataset)), folders_);
}

std::string Advice::verify_and_repair(const DatasetInfo& dataset) const {
  return with_caches(with_prefix("verify --repair " + word_for(dataset)), folders_);
}

std::string Advice::verify_caches(const std::vector<std::string>& caches,
                                  const DatasetInfo& dataset) const {
  return with_caches("cairn verify " + word_for(dataset), folders_.empty() ? caches : folders_);
}

std::string verification_of(const std::vector<std::string>& caches) {
  return with_caches("cairn verify", caches);
}

}  // namespace cairn
