#include "wrapped_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace cairn::sim {
namespace {

constexpr std::uint32_t file_mode = 0640;
constexpr std::uint32_t folder_mode = 0700;
constexpr std::uint64_t largest_file = 1 << 20;

void must(const Status& status) {
  if (!status) throw Violation(fmt::format("the program fails: {}", status.error().text));
}

template <class T>
T must(Result<T> result) {
  if (!result) throw Violation(fmt::format("the program fails: {}", result.error().text));
  return *std::move(result);
}

}  // namespace

std::string name_of_file(Naming naming, int file, int index, int rank) {
  switch (naming) {
    case Naming::numbers:
      return fmt::format("state{}.{}.{}", file, index, rank);
    case Naming::directories:
      return fmt::format("rank{}/{}/state{}", rank, index, file);
    case Naming::one_name:
      return fmt::format("one{}-{}", file, rank);
    case Naming::two_names:
      return fmt::format("two{}.{}.{}", file, index % 2 == 0 ? "a" : "b", rank);
  }
  return "";
}

std::string_view step_in_name(std::string_view name) {
  if (name.starts_with("one")) return {};
  const char mark = name.starts_with("rank") ? '/' : '.';
  const std::size_t begin = name.find(mark) + 1;
  return name.substr(begin, name.find(mark, begin) - begin);
}

int rank_in_name(std::string_view name) {
  constexpr std::string_view temporary = ".tmp";
  if (name.ends_with(temporary)) name.remove_suffix(temporary.size());
  const bool has_directory = name.starts_with("rank");
  const std::size_t begin = has_directory ? 4 : name.find_last_of(".-") + 1;
  const std::size_t end = has_directory ? name.find('/') : name.size();
  return std::stoi(std::string(name.substr(begin, end - begin)));
}

int index_of_step(Naming naming, std::int64_t step) {
  return static_cast<int>(has_numbers(naming) ? std::bit_cast<double>(step)
                                              : static_cast<double>(step));
}

void Gate::wait() {
  const int before = opened_;
  waiting_.push_back(scheduler_.current_thread());
  if (static_cast<int>(waiting_.size()) < ranks_) {
    while (opened_ == before) scheduler_.block();
    return;
  }
  ++opened_;
  for (const int thread : std::exchange(waiting_, {})) scheduler_.wake_thread(thread);
}

void WrappedProgram::carry_out() {
  const auto& actions = env_.plan.actions[static_cast<std::size_t>(env_.rank)];
  int first = 0;
  int last = 0;
  for (const auto& of_rank : env_.plan.actions)
    for (const Action& action : of_rank) {
      if (!is_of_step(action)) continue;
      first = first == 0 ? action.index : std::min(first, action.index);
      last = std::max(last, action.index);
    }
  std::size_t next = 0;
  for (int index = first; index <= last; ++index) {
    // An action of an older step keeps its place in the order.
    while (next < actions.size() && actions[next].index <= index) act(actions[next++]);
    if (env_.plan.waits_for_each || (env_.plan.waits_for_first && index == first)) env_.gate.wait();
  }
  if (env_.plan.ends_together) env_.gate.wait();
  env_.books.ends(env_.rank);
  env_.job.ended();
}

void WrappedProgram::act(const Action& action) {
  const std::string name = name_of_file(env_.plan.naming, action.file, action.index, env_.rank);
  env_.seam.pass("program", name);
  if (action.waits_us > 0) env_.seam.scheduler().sleep_us(action.waits_us);
  switch (action.kind) {
    case Action::Kind::write:
    case Action::Kind::leave_open:
      write(action, name);
      break;
    case Action::Kind::rename:
      rename(action, name);
      break;
    case Action::Kind::append:
    case Action::Kind::touch:
      change(action, name);
      break;
    case Action::Kind::remove:
      remove(name);
      break;
    case Action::Kind::refused:
      refused(action, name);
      break;
  }
  if (is_of_step(action) && action.kind != Action::Kind::leave_open)
    env_.books.action_done(env_.rank, action.index);
}

bool WrappedProgram::is_redirected(const std::string& name) const {
  return is_there(place_of(name));
}

std::optional<Blob> WrappedProgram::read(const std::string& name) const {
  const std::string path = is_redirected(name) ? place_of(name) : plain_place_of(name);
  const auto bytes = read_file(env_.files, path, largest_file);
  return bytes ? std::optional(*bytes) : std::nullopt;
}

// --- opening ---

/// A file that is there is emptied, but not where a checkpoint has it.
std::unique_ptr<File> WrappedProgram::open_new(const std::string& name) {
  const std::string place = place_of(name);
  const std::string_view step = step_in_name(name);
  if (is_there(place)) {
    env_.job.changes(name, step, true);
    auto file = must(env_.files.create(place, file_mode));
    env_.job.changed(name);
    return file;
  }
  must(make_folders(env_.files, folder_of(place), folder_mode));
  auto file = must(env_.files.create(place, file_mode));
  env_.job.opened(name, step, true);
  return file;
}

/// Null if it is in its plain place.
std::unique_ptr<File> WrappedProgram::open_there(const std::string& name) {
  const std::string place = place_of(name);
  while (is_there(place)) {
    env_.job.changes(name, step_in_name(name), false);
    const Status own = make_own(env_.files, place);
    auto file = env_.files.open_for_update(place);
    const auto info = env_.files.info(place);
    env_.job.changed(name);
    // It was moved meanwhile, or another process has made it a part of a checkpoint.
    if (!file) env_.job.removed(name);
    if (own && file && info && info->names == 1) return *std::move(file);
  }
  return nullptr;
}

void WrappedProgram::fill(File& file, const std::string& name, const Blob& bytes,
                          const Action& action) {
  const std::size_t half = bytes.size() / 2;
  must(file.write_at(0, Bytes(bytes).first(half)));
  if (action.open_us > 0) env_.seam.scheduler().sleep_us(action.open_us);
  must(file.write_at(half, Bytes(bytes).subspan(half)));
  env_.books.finish_writing(name, bytes);
}

// --- actions ---

void WrappedProgram::write(const Action& action, const std::string& name) {
  env_.books.begins(env_.rank, action.index);
  const Blob bytes = env_.books.begin_writing(env_.rank, name, action.index, {}, chance_);
  auto file = open_new(name);
  env_.books.opened(env_.rank, name, action.index);
  fill(*file, name, bytes, action);
  if (action.kind == Action::Kind::leave_open) {
    env_.books.left_open(name);
    left_open_.push_back(std::move(file));
    return;
  }
  file.reset();
  env_.books.closed(env_.rank, name);
}

void WrappedProgram::rename(const Action& action, const std::string& name) {
  const std::string temporary = name + ".tmp";
  write(action, temporary);
  env_.job.changes(name, step_in_name(name), true);
  const bool is_renamed = env_.files.rename(place_of(temporary), place_of(name)).has_value();
  env_.seam.pass("renamed", name);
  if (is_renamed) {
    env_.job.removed(temporary);
  } else {  // its step was given up meanwhile
    must(env_.files.rename(plain_place_of(temporary), plain_place_of(name)));
    env_.job.not_redirected(name, step_in_name(name), false);
  }
  env_.job.changed(name);
  env_.books.renamed(temporary, name);
}

void WrappedProgram::change(const Action& action, const std::string& name) {
  env_.books.begins(env_.rank, action.index);
  auto file = open_there(name);
  if (!file) {
    if (!is_there(plain_place_of(name))) return;  // an old step that the cache has no more
    file = must(env_.files.open_for_update(plain_place_of(name)));
    env_.job.not_redirected(name, step_in_name(name), false);
  }
  env_.books.opened(env_.rank, name, action.index);
  if (action.kind == Action::Kind::append) {
    const Blob kept = must(read_whole(*file, name, largest_file));
    const Blob bytes = env_.books.begin_writing(env_.rank, name, action.index, kept, chance_);
    fill(*file, name, bytes, action);
  } else if (action.open_us > 0) {
    env_.seam.scheduler().sleep_us(action.open_us);
  }
  file.reset();
  env_.books.closed(env_.rank, name);
}

void WrappedProgram::remove(const std::string& name) {
  env_.books.removed(name);
  must(env_.files.remove_file(place_of(name)));
  must(env_.files.remove_file(plain_place_of(name)));
  env_.job.removed(name);
}

/// The cache takes no new file.
void WrappedProgram::refused(const Action& action, const std::string& name) {
  if (is_redirected(name)) return write(action, name);
  env_.books.begins(env_.rank, action.index);
  const Blob bytes = env_.books.begin_writing(env_.rank, name, action.index, {}, chance_);
  must(make_folders(env_.files, folder_of(plain_place_of(name)), folder_mode));
  auto file = must(env_.files.create(plain_place_of(name), file_mode));
  env_.job.not_redirected(name, step_in_name(name), true);
  env_.books.opened(env_.rank, name, action.index);
  fill(*file, name, bytes, action);
  file.reset();
  env_.books.closed(env_.rank, name);
}

}  // namespace cairn::sim
