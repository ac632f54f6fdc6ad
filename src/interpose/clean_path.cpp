#include "interpose/clean_path.hpp"

#include <cstring>

namespace cairn::interpose {
namespace {

/// Adds one component to an absolute clean path.
bool add_component(std::string_view component, PathText& out) {
  if (component.empty() || component == ".") return true;
  if (component == "..") {
    const std::size_t slash = out.view().rfind('/');
    out.length = slash == std::string_view::npos || slash == 0 ? 1 : slash;
    out.text[out.length] = '\0';
    return true;
  }
  return (out.view() == "/" || out.append("/")) && out.append(component);
}

}  // namespace

bool PathText::assign(std::string_view whole) {
  length = 0;
  return append(whole);
}

bool PathText::append(std::string_view more) {
  if (length + more.size() >= capacity) return false;
  std::memmove(text + length, more.data(), more.size());
  length += more.size();
  text[length] = '\0';
  return true;
}

bool is_surely_clean(std::string_view path) {
  if (path.empty() || path.front() == '.' || path.back() == '/') return false;
  const void* found = memmem(path.data(), path.size(), "/.", 2);
  return found == nullptr && memmem(path.data(), path.size(), "//", 2) == nullptr;
}

bool clean_path(std::string_view directory, std::string_view path, PathText& out) {
  const bool is_absolute = !path.empty() && path.front() == '/';
  if (!out.assign(is_absolute ? "/" : directory)) return false;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (!add_component(path.substr(0, slash), out)) return false;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return true;
}

}  // namespace cairn::interpose
