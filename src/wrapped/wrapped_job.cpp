#include "wrapped/wrapped_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "wrapped/plain_steps.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t private_folder = 0700;
/// Of the names of datasets.
constexpr std::string_view step_word = "step.";
/// In place of the number of the step from which the program starts: it goes once a newer one is
/// certain.
constexpr std::int64_t before_all_steps = -1;
/// Numbers in names are stored as the bits of a floating-point number; counts are small.
constexpr std::int64_t largest_count = 1LL << 32;

/// Calls `visit` with the name of each file below a folder, relative to it. Success if there is no
/// such folder.
Status visit_files(Files& files, const std::string& folder, const std::string& below,
                   const std::function<Status(const std::string& name)>& visit) {
  const std::string here = below.empty() ? folder : folder + "/" + below;
  const auto names = files.list(here);
  if (!names)
    return names.error().code == Code::not_found ? Status{} : tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const std::string path = below.empty() ? name : below + "/" + name;
    CAIRN_ASSIGN(const FileInfo info, files.info(folder + "/" + path));
    CAIRN_TRY(info.kind == Kind::folder ? visit_files(files, folder, path, visit) : visit(path));
  }
  return {};
}

/// Gives a file a second name, in place of what is there.
Status link_over(Files& files, const std::string& from, const std::string& to) {
  CAIRN_TRY(make_folders(files, to.substr(0, to.rfind('/')), private_folder));
  CAIRN_TRY(files.remove_file(to));
  return files.link(from, to);
}

/// A directory in which there are no files, on any level.
void remove_if_empty(Files& files, const std::string& folder) {
  const auto info = files.info(folder);
  const auto names = files.list(folder);
  if (!info || info->kind != Kind::folder || !names) return;
  for (const std::string& name : *names) remove_if_empty(files, folder + "/" + name);
  static_cast<void>(files.remove_folder(folder));  // an error if there is a file
}

}  // namespace

void keep_two_checkpoints(Settings& settings) {
  constexpr int at_least = 2;
  for (StoreSettings& store : settings.stores) store.count = std::max(store.count, at_least);
}

std::string dataset_name(std::int64_t step) {
  if (step <= largest_count) return fmt::format("{}{}", step_word, step);
  return fmt::format("{}{}", step_word, std::bit_cast<double>(step));
}

std::optional<std::int64_t> count_in(std::string_view dataset_name) {
  if (!dataset_name.starts_with(step_word)) return std::nullopt;
  const char* const end = dataset_name.data() + dataset_name.size();
  std::int64_t count = 0;
  const auto [stopped, error] = std::from_chars(dataset_name.data() + step_word.size(), end, count);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return count;
}

// --- what the program does ---

/// Called with the mutex held.
WrappedJob::Writing WrappedJob::place_in_step(std::string_view name, std::string_view step,
                                              bool empties) {
  Writing file;
  file.name = name;
  file.shape = name;
  if (!step.empty())
    file.shape.replace(static_cast<std::size_t>(step.data() - name.data()), step.size(), "*");
  const bool begins_anew = empties && names_of_newest_.contains(file.name);
  file.step = order_.step_of(step, begins_anew);
  if (file.step.number > newest_) {
    newest_ = file.step.number;
    names_of_newest_.clear();
  }
  if (file.step.number == newest_) names_of_newest_.insert(file.name);
  return file;
}

/// Called with the mutex held. Steps that have the file, and are no datasets that have kept it.
void WrappedJob::fail_steps_that_lose(const std::string& name, std::int64_t before, Loss loss) {
  for (auto one = names_.upper_bound(before_all_steps); one != names_.lower_bound(before); ++one) {
    const bool is_kept =
        datasets_.contains(one->first) || (being_made_ == one->first && is_linked(name));
    if (is_kept || one->second.erase(name) == 0) continue;
    incomplete_.insert(one->first);
    tracker_.lost(one->first, loss);
  }
}

/// Called with the mutex held.
void WrappedJob::note_open(std::string_view name, std::string_view step, bool empties,
                           pid_t process) {
  Writing file = place_in_step(name, step, empties);
  file.is_after_link = is_linked(file.name);
  if (empties) fail_steps_that_lose(file.name, file.step.number, Loss::overwritten);
  names_[file.step.number].insert(file.name);
  tracker_.opened(file.step, file.shape);
  note_writer(file, step, process);
  open_.push_back(std::move(file));
}

/// Called with the mutex held, after the tracker has the file. From the moment that steps may mix,
/// all steps of such names are given up.
void WrappedJob::note_writer(const Writing& file, std::string_view step, pid_t process) {
  if (number_in(step)) return;
  const auto before = sole_writer_.step();
  const bool was_mixed = sole_writer_.is_mixed();
  sole_writer_.note(file.name, process, file.step.number);
  if (!sole_writer_.is_mixed()) return;
  takes_repeated_names_ = false;
  tracker_.lost(file.step.number, Loss::mixed);
  if (was_mixed) return;
  tracker_.lost(*before, Loss::mixed);
  mixed_file_ = file.name;
}

void WrappedJob::opened(std::string_view name, std::string_view step, bool empties, pid_t process) {
  const std::scoped_lock lock(mutex_);
  note_open(name, step, empties, process);
}

void WrappedJob::changes(std::string_view name, std::string_view step, bool empties,
                         pid_t process) {
  const std::scoped_lock lock(mutex_);
  note_open(name, step, empties, process);
  changing_.emplace(name);
}

void WrappedJob::changed(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto one = changing_.find(name);  // it needs no memory
  if (one != changing_.end()) changing_.erase(one);
}

void WrappedJob::not_redirected(std::string_view name, std::string_view step, bool empties,
                                pid_t process) {
  const std::scoped_lock lock(mutex_);
  const Writing file = place_in_step(name, step, empties);
  tracker_.left_out(file.step, file.shape);
  note_writer(file, step, process);
}

void WrappedJob::removed(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  for (auto& [step, names] : names_) names.erase(std::string(name));
}

void WrappedJob::moved_out(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  fail_steps_that_lose(std::string(name), std::numeric_limits<std::int64_t>::max(), Loss::left_out);
}

void WrappedJob::ended() {
  look_for_closed();
  const std::scoped_lock lock(mutex_);
  for (const Writing& file : open_) tracker_.lost(file.step.number, Loss::left_out);
  tracker_.ended();
}

// --- what follows ---

/// The lease that shows whether a file is open counts whatever way it was opened, duplicated or
/// inherited; the program's calls would not show all of that. The program's last call and the
/// rounds may look at the same time, so what is looked at stays in the list.
void WrappedJob::look_for_closed() {
  std::vector<Writing> looked_at;
  {
    const std::scoped_lock lock(mutex_);
    for (const Writing& file : open_)
      if (!changing_.contains(file.name)) looked_at.push_back(file);
  }
  std::erase_if(looked_at, [this](const Writing& file) {
    const auto writer = env_.files.find_writer(place_of(file.name));
    const bool is_gone = !writer && writer.error().code == Code::not_found;
    return !is_gone && !(writer && *writer == Writer::none);
  });
  const std::scoped_lock lock(mutex_);
  for (const Writing& closed : looked_at) {
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const Writing& file) {
      return file.name == closed.name && file.step == closed.step;
    });
    if (found == open_.end()) continue;
    tracker_.closed(closed.step, closed.shape);
    open_.erase(found);
  }
}

bool WrappedJob::round(Communicator& comm) {
  look_for_closed();
  move_given_up();
  const Round round = agreement_.round(comm, tracker_, mutex_);
  if (has_missed_) return false;
  for (const StepNews& news : round.news) act_on(news);
  return round.is_last;
}

void WrappedJob::act_on(const StepNews& news) {
  switch (news.what) {
    case StepNews::What::provisional:
      return make_dataset(news.step);
    case StepNews::What::withdrawn:
      return remove_dataset(news.step);
    case StepNews::What::given_up:
      return news.is_mixed ? give_up_repeated_names(news.step)
                           : give_up(news.step, news.is_overwritten);
    case StepNews::What::certain:
      make_dataset(news.step);
      if (is_dataset(news.step)) newest_certain_ = news.step;
      release_overwritten();
      return drop_superseded();
  }
}

void WrappedJob::make_dataset(std::int64_t step) {
  if (is_dataset(step)) return;
  // Files of it are in their plain places already.
  if (has_reported_.contains(step)) return give_up(step);
  Status made = env_.session.start_output(name_of(step), flag_checkpoint);
  bool is_made = false;
  if (made) {
    begin_links(step);
    const Status added = add_files(step, names_of(step));
    report(env_.log, added);
    made = env_.session.complete_output(added.has_value());
    // An error may be about an earlier step only.
    is_made = env_.session.safety().of_completed() != Safety::none;
  }
  report(env_.shared_log, made);
  {
    const std::scoped_lock lock(mutex_);
    if (is_made) datasets_.insert(step);
  }
  if (is_made) overwritten_in_a_row_ = 0;
  begin_links(std::nullopt);
  if (!is_made) give_up(step);
}

void WrappedJob::begin_links(std::optional<std::int64_t> step) {
  const std::scoped_lock lock(mutex_);
  being_made_ = step;
  linked_.clear();
}

Status WrappedJob::add_files(std::int64_t step, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    CAIRN_ASSIGN(const std::string path, env_.session.route_file(env_.prefix + "/" + name));
    CAIRN_TRY(env_.files.link(place_of(name), path));
    // A process of another rank has announced nothing. It opens the file first, and then looks for
    // second names.
    CAIRN_ASSIGN(const Writer writer, env_.files.find_writer(path));
    if (writer != Writer::none)
      return fail(Code::invalid, "another process has {} open for writing", name);
    const std::scoped_lock lock(mutex_);
    linked_.insert(name);
  }
  // A call of the program that begins later finds the second names, and leaves these files alone.
  if (has_changed(step, names))
    return fail(Code::invalid, "the program has opened or replaced a file of the step again");
  return {};
}

void WrappedJob::remove_dataset(std::int64_t step) {
  {
    const std::scoped_lock lock(mutex_);
    if (datasets_.erase(step) == 0) return;
  }
  env_.shared_log.info("{} is no checkpoint any more: the program writes to its files again",
                       dataset_name(step));
  report(env_.shared_log, env_.session.datasets().remove(name_of(step)));
}

std::string WrappedJob::name_of(std::int64_t step) const {
  std::string name = dataset_name(step);
  return name == started_from_ ? name + ".again" : name;
}

/// A program that writes too fast would fill the log, so from the third of such steps on there is
/// no line.
void WrappedJob::report_given_up(std::int64_t step, bool is_overwritten) {
  const std::string name = dataset_name(step);
  if (!is_overwritten)
    return env_.shared_log.warning(
        "{} cannot become a checkpoint of Cairn; its files are in the places that the program gave "
        "them",
        name);
  ++overwritten_in_a_row_;
  if (overwritten_in_a_row_ == 1)
    env_.shared_log.warning(
        "{} cannot become a checkpoint of Cairn: the program has written a file of it again before "
        "Cairn knew that the step was whole. Where the names of steps repeat, this happens to the "
        "first step; the next ones become checkpoints if the program does not overwrite them "
        "within about a second",
        name);
  if (overwritten_in_a_row_ == 2)
    env_.shared_log.warning(
        "{} cannot become a checkpoint of Cairn either: the program overwrites its files too soon. "
        "Let it write less often, or give each step names of its own. No line follows for such "
        "steps until one becomes a checkpoint",
        name);
}

void WrappedJob::give_up(std::int64_t step, bool is_overwritten) {
  remove_dataset(step);
  if (has_reported_.insert(step).second) report_given_up(step, is_overwritten);
  release_overwritten();
  auto& moves = is_overwritten ? overwritten_ : given_up_;
  for (const std::string& name : forget(step)) moves[name] = step;
  move_given_up();
}

/// The line is on the rank that has found it. Rank 0 knows of another one without its file.
void WrappedJob::give_up_repeated_names(std::int64_t step) {
  std::string file;
  {
    const std::scoped_lock lock(mutex_);
    file = mixed_file_;
  }
  takes_repeated_names_ = false;
  has_reported_.insert(step);
  const bool is_first = !std::exchange(has_reported_mixed_, true);
  if (is_first)
    (file.empty() ? env_.shared_log : env_.log)
        .warning(
            "several processes write checkpoint files whose names repeat, {}, so Cairn cannot know "
            "which files belong to one step. Steps with such names become no checkpoints any more; "
            "their files are in the places that the program gave them. Use names with the "
            "step in them ((?<step>...)), cairn wrap, or one mount for each process (--nodes)",
            file.empty() ? "on another node" : "such as " + file);
  if (is_first) drop_repeated_names(step);
  give_up(step);
}

/// A checkpoint in a cache would be restored in the next run, and hide newer files of the program.
/// Of one in the prefix directory the program overwrites files from now on, which would count as
/// damaged.
void WrappedJob::drop_repeated_names(std::int64_t before) {
  const auto repeats = [this](const std::string& name) { return !number_in(env_.find_step(name)); };
  const auto removed = env_.session.datasets().remove_from_caches(repeats);
  if (!removed) return report(env_.shared_log, tl::unexpected(removed.error()));
  std::set<std::string> names = *removed;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(datasets_, [&](std::int64_t step) {
      const bool is_counted = step <= largest_count;
      if (is_counted) names.insert(name_of(step));
      return is_counted || names.contains(name_of(step));
    });
  }
  for (const std::string& name : names) report(env_.shared_log, env_.session.datasets().drop(name));
  {
    const std::scoped_lock lock(mutex_);
    for (auto one = names_.begin(); one != names_.lower_bound(before); ++one)
      std::erase_if(one->second, [&, step = one->first](const std::string& name) {
        if (repeats(name)) given_up_[name] = step;
        return repeats(name);
      });
  }
  move_given_up();
}

/// The program was writing these names again when their step was given up. By now it has, or it
/// does not.
void WrappedJob::release_overwritten() {
  for (const auto& [name, step] : std::exchange(overwritten_, {})) given_up_[name] = step;
}

/// A file that the program has open still is tried again.
void WrappedJob::move_given_up() {
  std::erase_if(given_up_, [this](const auto& file) {
    const auto& [name, step] = file;
    if (is_changing(name)) return false;  // a rename may be about to make it
    if (is_written_again(name, step)) return true;
    const Status moved = env_.move_to_plain_place(name);
    if (!moved && moved.error().code != Code::busy && has_failed_.insert(name).second)
      report(env_.log, moved);
    return moved.has_value();
  });
}

bool WrappedJob::is_written_again(const std::string& name, std::int64_t since) {
  const std::scoped_lock lock(mutex_);
  return std::any_of(names_.upper_bound(since), names_.end(),
                     [&](const auto& later) { return later.second.contains(name); });
}

bool WrappedJob::is_dataset(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  return datasets_.contains(step);
}

bool WrappedJob::is_open(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  return std::any_of(open_.begin(), open_.end(),
                     [&](const Writing& file) { return file.name == name; });
}

/// A file that a later step writes under the same name does not count, once the dataset has the old
/// one.
bool WrappedJob::has_changed(std::int64_t step, const std::set<std::string>& names) {
  const std::scoped_lock lock(mutex_);
  return incomplete_.contains(step) ||
         std::any_of(open_.begin(), open_.end(), [&](const Writing& file) {
           return names.contains(file.name) && !(file.is_after_link && file.step.number > step);
         });
}

bool WrappedJob::is_step_under_way() {
  const std::scoped_lock lock(mutex_);
  return tracker_.undecided() > 0;
}

std::set<std::int64_t> WrappedJob::checkpoints() {
  const std::scoped_lock lock(mutex_);
  return datasets_;
}

std::optional<std::int64_t> WrappedJob::newest_certain() {
  return is_dataset(newest_certain_) ? std::optional(newest_certain_) : std::nullopt;
}

void WrappedJob::clean_up() {
  release_overwritten();
  drop_superseded();
  move_given_up();
}

/// A file of an older step that has one name left is in no dataset any more.
void WrappedJob::drop_superseded() {
  for (const std::string& name : names_before(newest_certain_)) {
    const auto info = env_.files.info(place_of(name));
    if ((info && info->names > 1) || is_open(name)) continue;
    if (info) report(env_.log, env_.files.remove_file(place_of(name)));
    forget_name(name, newest_certain_);
  }
}

// --- its beginning ---

Result<std::optional<std::string>> WrappedJob::restore(Communicator& comm) {
  while (true) {
    CAIRN_ASSIGN(const auto name, env_.session.have_restart());
    if (!name) {
      CAIRN_TRY(agree(comm, for_each_redirected(comm.rank(), env_.move_to_plain_place)));
      return name;
    }
    const auto started = env_.session.start_restart();
    report(env_.shared_log, started.map([](const std::string&) {}));
    if (!started) continue;  // the session names the next older one now
    const Status offered = offer_files(comm);
    CAIRN_TRY(env_.session.complete_restart(true));
    CAIRN_TRY(offered);
    started_from_ = *name;
    const std::scoped_lock lock(mutex_);
    order_.count_from(count_in(*name).value_or(0));
    return name;
  }
}

/// Steps that did not become datasets are not whole: a program that finds their files would take
/// them. So what an earlier run has left goes first.
Status WrappedJob::offer_files(Communicator& comm) {
  CAIRN_TRY(agree(comm, for_each_redirected(comm.rank(), [this](const std::string& name) {
                    return env_.files.remove_file(place_of(name));
                  })));
  CAIRN_TRY(agree(comm, place_files()));
  warn_of_mixed_steps(comm);
  return {};
}

/// Ranks that write on after another one has died, and older runs of other programs, leave steps
/// in the plain places. Files there are never removed: they may be all that there is.
void WrappedJob::warn_of_mixed_steps(Communicator& comm) {
  const LaterSteps later =
      later_steps(env_.files, env_.prefix, env_.session.restart_names(), env_.find_step);
  const std::int64_t oldest = allreduce(comm, later.oldest, Reduce::min);
  const std::int64_t newest = allreduce(comm, later.newest, Reduce::max);
  if (newest == LaterSteps::none || newest == oldest) return;
  const std::string lacking = lacking_of_all(comm, later, oldest);
  const std::int64_t has = later.newest == newest ? comm.rank() : comm.size();
  if (allreduce(comm, has, Reduce::min) != comm.rank()) return;
  env_.log.warning(
      "{0}/{1} is of a later step than the checkpoint that is restored, and that step has no file "
      "in place of {2}: a job may have died while it wrote the step, or a run with other files or "
      "fewer ranks has left it. A program that looks for its newest files by itself may mix steps. "
      "If the step is not whole, move the files of all later steps elsewhere, and start the "
      "program again",
      env_.prefix, later.file, lacking);
}

Status WrappedJob::place_files() {
  for (const std::string& name : env_.session.restart_names()) {
    const std::string plain = env_.prefix + "/" + name;
    CAIRN_ASSIGN(const std::string path, env_.session.route_file(plain));
    // What is read in the prefix directory is where the program looks for it.
    if (path == plain) continue;
    CAIRN_TRY(link_over(env_.files, path, place_of(name)));
    drop_empty_steps(name);
    const std::scoped_lock lock(mutex_);
    names_[before_all_steps].insert(name);
  }
  return {};
}

/// Directories are made in the prefix directory. Those of a later step than that of `name`, which
/// are beside it, are there still, and a program that looks for the latest one would take them.
void WrappedJob::drop_empty_steps(const std::string& name) {
  const std::string_view step = env_.find_step(name);
  if (step.empty()) return;
  const auto begin = static_cast<std::size_t>(step.data() - name.data());
  const bool is_directory =
      name.substr(begin + step.size()).starts_with('/') && (begin == 0 || name[begin - 1] == '/');
  const auto number = number_in(step);
  if (!is_directory || !number) return;
  const std::string parent = env_.prefix + "/" + name.substr(0, begin);
  const auto beside = env_.files.list(parent);
  if (!beside) return;
  for (const std::string& other : *beside)
    if (number_in(other).value_or(0) > *number) remove_if_empty(env_.files, parent + other);
}

/// One rank of each node does it for all.
Status WrappedJob::for_each_redirected(
    int rank, const std::function<Status(const std::string& name)>& action) {
  if (env_.session.placement().beside(rank).front() != rank) return {};
  return visit_files(env_.files, env_.redirected, "", action);
}

// --- names ---

std::set<std::string> WrappedJob::names_of(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  const auto found = names_.find(step);
  std::set<std::string> names;
  if (found != names_.end()) names = found->second;
  // A program may write on to the step from which it started: files that it leaves alone belong to
  // that too.
  const auto restored = names_.find(before_all_steps);
  if (restored == names_.end()) return names;
  for (const std::string& name : restored->second)
    if (number_in(env_.find_step(name)) == step) names.insert(name);
  return names;
}

/// Those that no later step has, and no late one: that is given up first, so that its file is not
/// lost.
std::set<std::string> WrappedJob::names_before(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  std::set<std::string> before;
  for (auto one = names_.begin(); one != names_.lower_bound(step); ++one)
    before.insert(one->second.begin(), one->second.end());
  for (const auto& [other, names] : names_)
    if (other >= step || tracker_.is_late(other))
      for (const std::string& name : names) before.erase(name);
  return before;
}

void WrappedJob::forget_name(const std::string& name, std::int64_t before) {
  const std::scoped_lock lock(mutex_);
  for (auto one = names_.begin(); one != names_.lower_bound(before);) {
    one->second.erase(name);
    one = one->second.empty() ? names_.erase(one) : std::next(one);
  }
}

/// The names that were of this step, and of no later one.
std::set<std::string> WrappedJob::forget(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  auto node = names_.extract(step);
  if (!node) return {};
  for (auto later = names_.upper_bound(step); later != names_.end(); ++later)
    for (const std::string& name : later->second) node.mapped().erase(name);
  return std::move(node.mapped());
}

void WrappedJob::report(const Log& log, const Status& status) {
  if (!status && !status.error().is_reported) log.warning("{}", status.error().text);
}

}  // namespace cairn
