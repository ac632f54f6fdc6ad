#include "interpose/rules.hpp"

#include <algorithm>

namespace cairn::interpose {
namespace {

/// Such a name can only be a directory.
bool names_directory(std::string_view path) {
  return path.ends_with("/") || path.ends_with("/.") || path.ends_with("/..") || path == "." ||
         path == "..";
}

}  // namespace

void Rules::add_prefix(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (std::find(prefixes_.begin(), prefixes_.end(), path) == prefixes_.end())
    prefixes_.emplace_back(path);
}

bool Rules::is_below(std::string_view clean, std::string_view& relative) const {
  for (const std::string& prefix : prefixes_) {
    if (!clean.starts_with(prefix) || (clean.size() > prefix.size() && clean[prefix.size()] != '/'))
      continue;
    relative = clean.substr(std::min(clean.size(), prefix.size() + 1));
    return true;
  }
  return false;
}

Decision Rules::decide_clean(std::string_view clean, std::string_view path) const {
  Decision decision;
  if (!is_below(clean, decision.relative)) return decision;
  decision.names_directory = names_directory(path);
  decision.match = patterns.find(decision.relative);
  decision.kind = decision.match && !decision.match.is_shared ? Kind::matched : Kind::unmatched;
  return decision;
}

Decision Rules::decide(std::string_view path, WorkingDirectory& working_directory,
                       PathText& scratch) const {
  const bool is_absolute = path.starts_with('/');
  if (is_absolute && is_surely_clean(path)) return decide_clean(path, path);
  if (is_absolute) return decide_in("/", path, scratch);
  Decision decision;
  if (path.empty()) return decision;
  if (!working_directory.read(scratch)) return decision;
  if (is_surely_clean(path)) {
    if (!scratch.append("/") || !scratch.append(path)) decision.kind = Kind::too_long;
    return decision.kind == Kind::too_long
               ? decision
               : decide_clean(scratch.view().substr(scratch.view().starts_with("//")), path);
  }
  // The path is cleaned onto the working directory, in the same memory.
  if (!clean_path(scratch.view(), path, scratch)) {
    decision.kind = Kind::too_long;
    return decision;
  }
  return decide_clean(scratch.view(), path);
}

Decision Rules::decide_in(std::string_view directory, std::string_view path,
                          PathText& scratch) const {
  Decision decision;
  if (path.empty()) return decision;
  if (!clean_path(directory, path, scratch)) {
    decision.kind = Kind::too_long;
    return decision;
  }
  return decide_clean(scratch.view(), path);
}

bool place_of(std::string_view cache_files, std::string_view relative, PathText& out) {
  return out.assign(cache_files) && (relative.empty() || (out.append("/") && out.append(relative)));
}

}  // namespace cairn::interpose
