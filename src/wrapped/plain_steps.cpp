#include "wrapped/plain_steps.hpp"

#include <algorithm>

#include "agreement/step_order.hpp"

namespace cairn {
namespace {

/// Empty if there is none.
std::string newest_after(Files& files, const std::string& prefix, const std::string& name,
                         const std::function<std::string_view(std::string_view name)>& find_step) {
  const std::string_view step = find_step(name);
  auto newest_number = number_in(step);
  if (!newest_number) return {};
  // The part of the path that has the step in it is another one in each step.
  const auto begin = static_cast<std::size_t>(step.data() - name.data());
  const std::size_t from = begin == 0 ? 0 : name.rfind('/', begin - 1) + 1;  // 0 if there is none
  const std::size_t to = std::min(name.find('/', begin), name.size());
  const auto beside = files.list(prefix + "/" + name.substr(0, from));
  if (!beside) return {};
  std::string newest;
  for (const std::string& part : *beside) {
    const std::string other = name.substr(0, from) + part + name.substr(to);
    const std::string_view its_step = find_step(other);
    const auto number = number_in(its_step);
    if (!number || *number <= *newest_number) continue;
    std::string same = name;
    same.replace(begin, step.size(), its_step);
    if (same != other || !files.info(prefix + "/" + other)) continue;
    newest_number = number;
    newest = other;
  }
  return newest;
}

}  // namespace

LaterSteps later_steps(Files& files, const std::string& prefix,
                       const std::vector<std::string>& names,
                       const std::function<std::string_view(std::string_view name)>& find_step) {
  LaterSteps later;
  for (const std::string& name : names) {
    if (!number_in(find_step(name))) continue;
    const std::string file = newest_after(files, prefix, name, find_step);
    const std::int64_t step = number_in(find_step(file)).value_or(LaterSteps::none);
    later.oldest = std::min(later.oldest, step);
    if (step <= later.newest) continue;
    later.newest = step;
    later.file = file;
  }
  return later;
}

}  // namespace cairn
