#include "config/remedy.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace cairn {
namespace {

/// The text from the first path after the last "cannot" on: the innermost error names the file.
std::string_view from_path(std::string_view text) {
  const std::size_t cannot = text.rfind("cannot ");
  const std::size_t path = cannot == text.npos ? text.npos : text.find('/', cannot);
  return path == text.npos ? "" : text.substr(path);
}

/// True if `path` is the directory, or below it.
bool begins_with(std::string_view path, std::string_view directory) {
  if (directory.empty() || !path.starts_with(directory)) return false;
  const std::string_view rest = path.substr(directory.size());
  return directory == "/" || rest.empty() || rest[0] == '/' || rest[0] == ':' || rest[0] == ' ';
}

Storage storage_of(std::string_view path, const Settings& settings, Storage unknown) {
  if (path.empty()) return unknown;
  if (!begins_with(path, settings.prefix)) return Storage::cache;
  // The caches may be below the prefix directory; a prefix directory below a cache is rare.
  const auto holds = [&](const std::string& base) {
    const std::string of_all_nodes = base.substr(0, base.find("%n"));
    return of_all_nodes.size() > settings.prefix.size() && path.starts_with(of_all_nodes);
  };
  const bool cached = holds(settings.control_base) ||
                      std::any_of(settings.stores.begin(), settings.stores.end(),
                                  [&](const StoreSettings& store) { return holds(store.path); });
  return cached ? Storage::cache : Storage::prefix;
}

/// A base directory of the caches, and the setting that names it.
struct Base {
  std::string path;  ///< may contain %n, the name of a node
  std::string origin;
};

/// The base that contains `path`, or that is below it.
std::optional<Base> base_of(std::string_view path, const Settings& settings) {
  std::vector<Base> bases;
  for (const StoreSettings& store : settings.stores) bases.push_back({store.path, store.origin});
  bases.push_back({settings.control_base, settings.control_origin});
  const auto is_of = [&](const Base& base) {
    const std::string of_all_nodes = base.path.substr(0, base.path.find("%n"));
    const bool has_it =
        of_all_nodes == base.path ? begins_with(path, base.path) : path.starts_with(of_all_nodes);
    return has_it || begins_with(base.path, path.substr(0, path.find(": ")));
  };
  const auto found = std::find_if(bases.begin(), bases.end(), is_of);
  return path.empty() || found == bases.end() ? std::nullopt : std::optional(*found);
}

/// True if `path` is the base, or one of the two directories in it that Cairn makes for a user and
/// a job.
bool is_at_top_of(const Base& base, std::string_view path) {
  const std::string_view only_path = path.substr(0, path.find(": "));
  return std::count(only_path.begin(), only_path.end(), '/') <=
         std::count(base.path.begin(), base.path.end(), '/') + 2;
}

/// For an error in the caches whose setting is known; otherwise "".
std::string remedy_for_cache(const Error& error, std::string_view path, const Settings& settings) {
  const auto base = base_of(path, settings);
  if (!base || base->origin.empty() || !concerns_files(error)) return "";
  const bool is_absent = error.code == Code::not_found || error.code == Code::io;
  if (error.code == Code::no_space)
    return fmt::format("free space there, or set another store instead of {}", base->origin);
  if (error.code == Code::untrusted)
    return fmt::format("remove it, or set a directory of your own instead of {}", base->origin);
  if (is_absent && is_at_top_of(*base, path))
    return fmt::format(
        "the caches need a directory on every node in which this user may write: create it, or set "
        "another one, such as /dev/shm or /tmp, instead of {}",
        base->origin);
  return "";
}

}  // namespace

std::string with_remedy(const Error& error, const Settings& settings, Storage unknown) {
  const std::string_view path = from_path(error.text);
  const Storage storage = storage_of(path, settings, unknown);
  std::string remedy;
  if (storage == Storage::cache) remedy = remedy_for_cache(error, path, settings);
  if (remedy.empty()) remedy = remedy_for(error, storage);
  return remedy.empty() ? error.text : fmt::format("{}; {}", error.text, remedy);
}

}  // namespace cairn
