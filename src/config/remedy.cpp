#include "config/remedy.hpp"

#include <algorithm>

namespace cairn {
namespace {

/// Behind the last "cannot", where a path begins: the innermost error is the one of a file.
std::string_view from_path(std::string_view text) {
  const std::size_t cannot = text.rfind("cannot ");
  const std::size_t path = cannot == text.npos ? text.npos : text.find('/', cannot);
  return path == text.npos ? "" : text.substr(path);
}

/// It names that folder, or something in it.
bool begins_with(std::string_view path, std::string_view folder) {
  if (folder.empty() || !path.starts_with(folder)) return false;
  const std::string_view rest = path.substr(folder.size());
  return folder == "/" || rest.empty() || rest[0] == '/' || rest[0] == ':' || rest[0] == ' ';
}

Storage storage_of(std::string_view path, const Settings& settings, Storage unknown) {
  if (path.empty()) return unknown;
  if (!begins_with(path, settings.prefix)) return Storage::cache;
  // A cache may lie in the prefix directory; that it is the prefix that lies in a cache is rare.
  const auto holds = [&](const std::string& base) {
    const std::string of_all_nodes = base.substr(0, base.find("%n"));
    return of_all_nodes.size() > settings.prefix.size() && path.starts_with(of_all_nodes);
  };
  const bool cached = holds(settings.control_base) ||
                      std::any_of(settings.stores.begin(), settings.stores.end(),
                                  [&](const StoreSettings& store) { return holds(store.path); });
  return cached ? Storage::cache : Storage::prefix;
}

}  // namespace

std::string with_remedy(const Error& error, const Settings& settings, Storage unknown) {
  const Storage storage = storage_of(from_path(error.text), settings, unknown);
  const std::string_view remedy = remedy_for(error, storage);
  return remedy.empty() ? error.text : fmt::format("{}; {}", error.text, remedy);
}

}  // namespace cairn
