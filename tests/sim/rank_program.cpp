#include "rank_program.hpp"

#include <algorithm>

#include "config/remedy.hpp"

namespace cairn::sim {
namespace {

std::string verdict_of(const Status& status) {
  if (status) return "ok";
  return fmt::format("{} from rank {}: {}", name_of(status.error().code), status.error().rank,
                     status.error().text);
}

template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status{} : Status(tl::unexpected(result.error()));
}

int key_of(const std::string& name) { return std::stoi(name.substr(1)); }

}  // namespace

Settings RankProgram::settings_of(const Run& run, int rank) {
  Settings settings = run.world_.shape.settings;
  settings.node_name = run.plan_.nodes[static_cast<std::size_t>(rank)];
  settings.cache_purge = run.plan_.purge;
  settings.distribute = run.plan_.visit != Visit::left_alone;
  if (run.plan_.visit == Visit::other_ranks_fresh) settings.on_mismatch = OnMismatch::fresh;
  return settings;
}

RankProgram::RankProgram(Run& run, int rank)
    : run_(run),
      world_(run.world_),
      process_(
          {world_.seam,
           world_.chance,
           run.boxes_,
           run.helpers_[static_cast<std::size_t>(rank)],
           rank,
           settings_of(run, rank),
           world_.cluster.mounts_of(run.plan_.nodes[static_cast<std::size_t>(rank)]),
           [this](const FileOperation& operation) { return run_.observe(operation, may_fail_); },
           {[this](std::size_t wanted) { return world_.faults.moved(wanted); },
            [this] { return world_.faults.interrupted(); },
            [this](const std::string& path) { world_.faults.refused_room(path); }},
           &run.behind_}) {}

void RankProgram::carry_out() {
  make_calls();
  process_.env.background.finish();
}

void RankProgram::make_calls() {
  if (!init()) return;
  if (run_.plan_.visit != Visit::none) return visit();
  if (run_.plan_.before_restart) write(*run_.plan_.before_restart);
  if (run_.plan_.restart) restart();
  for (std::size_t i = 0; i < run_.plan_.datasets.size(); ++i) {
    make_named_calls(i);
    run_.enter_phase(first_dataset_phase + static_cast<int>(i));
    write(run_.plan_.datasets[i]);
    compute(i);
  }
  make_named_calls(run_.plan_.datasets.size());
  if (run_.plan_.finalize) finalize();
}

/// (g): what failed names the file and the node, and has a remedy.
void RankProgram::check_error(std::string_view call, const Error& error) const {
  if (error.rank < 0 || error.rank >= process_.comm.size())
    throw Violation(fmt::format("(c) {}: the error names no rank: {}", call, error.text));
  const bool injected = error.code == Code::io || error.code == Code::no_space;
  if (injected && !world_.faults.named_in(error.text))
    throw Violation(
        fmt::format("(g) {}: the error names no file that failed: {}", call, error.text));
  const std::string& node = run_.plan_.nodes[static_cast<std::size_t>(error.rank)];
  if (concerns_files(error) && error.text.find(node) == std::string::npos)
    throw Violation(fmt::format("(g) {}: the error does not name {}: {}", call, node, error.text));
  // A text that knows what to do says so behind a semicolon. That a rank declares its part invalid
  // is the program's own affair.
  const bool has_remedy = with_remedy(error, process_.env.settings).find("; ") != std::string::npos;
  if (error.code != Code::invalid && !has_remedy)
    throw Violation(
        fmt::format("(g) {}: no remedy for {}: {}", call, name_of(error.code), error.text));
}

bool RankProgram::init() {
  run_.enter_phase(init_phase);
  const Status begun = process_.init();
  run_.compare("Init", verdict_of(begun));
  const bool disturbed = run_.disturbed_since(0);
  if (!begun) {
    if (!disturbed) throw Violation(fmt::format("(g) Init fails: {}", begun.error().text));
    check_error("Init", begun.error());
    return false;
  }
  if (run_.plan_.purge) run_.purge_returns();
  world_.model.init_done(disturbed);
  return true;
}

// --- restart ---

void RankProgram::restart() {
  run_.enter_phase(restart_phase);
  int below = 1 << 30;
  while (!try_restart(below)) continue;
}

bool RankProgram::try_restart(int& below) {
  const auto offer = process_.session->have_restart();
  note_protection();
  const int key = offer && *offer ? key_of(**offer) : 0;
  run_.compare(fmt::format("Have_restart below d{}", below),
               offer ? fmt::format("d{}", key) : offer.error().text);
  if (!offer) throw Violation(fmt::format("(b) Have_restart fails: {}", offer.error().text));
  world_.model.offered(key, below, run_.disturbed_since(0));
  if (key == 0) return true;
  below = key;

  ++run_.reading_;
  const auto opened = process_.session->start_restart();
  run_.compare(fmt::format("Start_restart of d{}", key), verdict_of(status_of(opened)));
  if (!opened) {
    --run_.reading_;
    if (!run_.disturbed_since(0) && world_.model.must_open(key))
      throw Violation(
          fmt::format("(b) d{} was offered and is refused: {}", key, opened.error().text));
    world_.model.rejected(key);
    return false;
  }
  read_back(key);
  --run_.reading_;
  const bool valid = !run_.plan_.reject_restart || process_.env.rank + 1 != process_.comm.size();
  if (run_.plan_.reject_restart) world_.model.rejected(key);
  const Status completed = process_.session->complete_restart(valid);
  run_.compare(fmt::format("Complete_restart of d{}", key), verdict_of(completed));
  if (completed.has_value() == run_.plan_.reject_restart)
    throw Violation(fmt::format("(c) Complete_restart of d{}: {}", key, verdict_of(completed)));
  if (completed) world_.model.restarted(key, run_.disturbed_since(0));
  return completed.has_value();
}

/// (a) and (d). The application's own reading has no faults: what it cannot read, nobody can help.
void RankProgram::read_back(int key) {
  for (const FileShape& file : files_of(world_.shape, key, process_.env.rank)) {
    world_.seam.pass("read_back", file.name);
    may_fail_ = false;
    const auto path = process_.session->route_file(file.name);
    may_fail_ = true;
    if (!path)
      throw Violation(fmt::format("(a) d{} lacks {}: {}", key, file.name, path.error().text));
    if (process_.read(*path) != content_of(world_.shape, key, process_.env.rank, file))
      throw Violation(fmt::format("(a) d{}: rank {} does not get back the bytes of {}", key,
                                  process_.env.rank, *path));
  }
}

// --- writing ---

/// A fault may excuse what a call on this dataset returns if it came later than this. Where the one
/// before is protected behind the program, that may fail in any call since, and this one says so.
std::uint64_t RankProgram::faults_before(const DatasetPlan& dataset) {
  const std::uint64_t before = run_.faults_before(dataset.key);
  const std::uint64_t before_last = std::exchange(faults_before_last_, before).value_or(before);
  const auto& levels = world_.shape.settings.checkpoints;
  const bool is_behind = std::any_of(levels.begin(), levels.end(),
                                     [](const CheckpointSettings& each) { return each.behind; });
  return is_behind ? before_last : before;
}

void RankProgram::write(const DatasetPlan& dataset) {
  const std::uint64_t faults_before = this->faults_before(dataset);
  world_.model.begin(dataset.key, dataset.flags);
  const std::string name = fmt::format("d{}", dataset.key);
  const Status started = process_.session->start_output(name, dataset.flags);
  note_protection();
  run_.compare("Start of " + name, verdict_of(started));
  if (!started) {
    if (!run_.disturbed_since(faults_before))
      throw Violation(fmt::format("(g) Start of {} fails: {}", name, started.error().text));
    world_.model.start_failed();
    return check_error("Start", started.error());
  }
  const bool valid = write_files(dataset) && dataset.invalid_rank != process_.env.rank;
  world_.model.complete_begins(dataset.key);
  const Status completed = process_.session->complete_output(valid);
  run_.compare("Complete of " + name, verdict_of(completed));
  const bool disturbed = run_.disturbed_since(faults_before);
  const bool is_late = may_report_late("Complete of " + name, completed.has_value());
  world_.model.complete_returns(dataset.key, completed.has_value(), disturbed || is_late);
  if (completed) {
    last_written_ = dataset.key;
    is_followed_ = false;
    if (dataset.invalid_rank >= 0)
      throw Violation(fmt::format("{} is committed, though rank {} declared it invalid", name,
                                  dataset.invalid_rank));
    return;
  }
  is_followed_ = true;
  if (!disturbed && !is_late && dataset.invalid_rank < 0)
    throw Violation(fmt::format("(g) Complete of {} fails: {}", name, completed.error().text));
  check_error("Complete", completed.error());
}

bool RankProgram::write_files(const DatasetPlan& dataset) {
  bool all = true;
  last_file_.clear();
  for (const FileShape& file : files_of(world_.shape, dataset.key, process_.env.rank))
    all = write_file(dataset, file).has_value() && all;
  return all;
}

Status RankProgram::write_file(const DatasetPlan& dataset, const FileShape& file) {
  CAIRN_ASSIGN(const std::string path, process_.session->route_file(file.name));
  const std::string folder = path.substr(0, path.find("/rank."));
  world_.model.place(dataset.key, folder, path.substr(0, path.find('/', 1)));
  last_file_ = path;
  return process_.write(path, file, content_of(world_.shape, dataset.key, process_.env.rank, file));
}

// --- what is neither ---

void RankProgram::make_named_calls(std::size_t next) {
  for (std::size_t i = 0; i < run_.plan_.named_calls.size(); ++i) {
    const NamedCall& call = run_.plan_.named_calls[i];
    if (call.before != next) continue;
    const std::string name = fmt::format("d{}", call.key);
    const bool removes = call.kind == NamedCall::Kind::remove;
    run_.named_call_begins(i);
    const bool was_there = !last_is_gone();
    const Status done = removes ? process_.session->datasets().remove(name)
                                : process_.session->datasets().current(name);
    const bool may_take_last = !removes || call.key == last_written_;
    if (may_take_last && was_there && last_is_gone()) {
      // It may have been lost behind the program in that call, and then there is an error to come.
      is_report_due_ = world_.model.is_exposed(last_written_) && run_.disturbed_since(0);
      last_written_ = 0;
    }
    note_protection();
    run_.compare(fmt::format("call {}: {} of {}", i, removes ? "Delete" : "Current", name),
                 verdict_of(done));
    if (!done) throw Violation(fmt::format("(g) {} is refused: {}", name, done.error().text));
    run_.named_call_returns(i);
  }
}

bool RankProgram::last_is_gone() const {
  return process_.session->safety().of(fmt::format("d{}", last_written_)) == Safety::none;
}

void RankProgram::visit() {
  const auto offer = process_.session->have_restart();
  run_.compare("Have_restart", verdict_of(status_of(offer)));
  if (offer && *offer)
    throw Violation(fmt::format("(d) {} is offered to a run that cannot use it", **offer));
  const bool may_refuse = run_.plan_.visit == Visit::other_ranks;
  if (!offer && (!may_refuse || offer.error().code != Code::wrong_ranks))
    throw Violation(fmt::format("(b) Have_restart fails: {}", offer.error().text));
  if (offer && may_refuse && world_.model.must_find_something())
    throw Violation(
        fmt::format("(b) {} ranks are not told that others have written", process_.comm.size()));
  if (!offer) {
    run_.refused_ = true;
    const Status started = process_.session->start_output("d0", flag_checkpoint);
    run_.compare("Start", verdict_of(started));
    if (started) throw Violation("(d) ranks that are too many or too few may write");
    const Status renamed = process_.session->datasets().current("d1");
    run_.compare("Current", verdict_of(renamed));
    if (renamed) throw Violation("(d) ranks that are too many or too few may take away");
  }
  finalize();
}

void RankProgram::note_protection(bool disturbed) {
  if (last_written_ == 0) return;
  const Safety safety = process_.session->safety().of(fmt::format("d{}", last_written_));
  if (safety == Safety::none && world_.model.is_exposed(last_written_) && !is_followed_)
    lost_behind_ = last_written_;
  world_.model.protection_awaited(last_written_, safety, disturbed);
  // Where there was no room for it, the next call that waits tries again.
  if (!world_.model.is_exposed(last_written_) || safety == Safety::none) last_written_ = 0;
}

/// Complete and Finalize say so, but an error of their own comes first.
bool RankProgram::may_report_late(std::string_view call, bool success) {
  const int lost = std::exchange(lost_behind_, 0);
  if (success && lost != 0)
    throw Violation(
        fmt::format("(i) {} returns success, and d{} was lost behind the program", call, lost));
  const bool is_due = lost != 0 || is_report_due_;
  is_report_due_ = !success && is_due;
  return is_due;
}

/// What a dataset survives is looked at again and again meanwhile.
void RankProgram::compute(std::size_t dataset) {
  const auto& change = run_.plan_.change;
  const bool changes = change && change->dataset == dataset && change->rank == process_.env.rank;
  for (int call = 0; call <= run_.plan_.computes_calls; ++call) {
    if (changes && change->call == call) change_file();
    if (call == run_.plan_.computes_calls) return;
    if (!process_.session->schedule().need_checkpoint()) throw Violation("Need_checkpoint fails");
    if (last_written_ == 0) continue;
    const Safety safety = process_.session->safety().of(fmt::format("d{}", last_written_));
    if (safety >= Safety::protected_) world_.model.protection_ended(last_written_);
  }
}

/// Its time changes, too: all files of the program have one that is long ago.
void RankProgram::change_file() {
  if (last_written_ == 0 || last_file_.empty()) return;
  const std::optional<Blob> before = process_.read(last_file_);
  const auto file = process_.memory->open_for_update(last_file_);
  if (!before || !file) return;
  const bool grows = run_.plan_.change->grows || before->empty();
  const std::byte changed = grows ? std::byte{1} : before->front() ^ std::byte{1};
  world_.model.program_changes(last_written_);
  world_.faults.note();
  world_.trace.say("rank {} changes {}", process_.env.rank, last_file_);
  (void)(*file)->write_at(grows ? before->size() : 0, {&changed, 1});
}

/// What is not protected then is an error.
void RankProgram::finalize() {
  const Status ended = process_.session->finalize();
  if (ended) note_protection(false);
  (void)may_report_late("Finalize", ended.has_value());
  run_.compare("Finalize", verdict_of(ended));
  // The last dataset may be protected only now.
  if (!ended && !run_.disturbed_since(0))
    throw Violation(fmt::format("Finalize fails: {}", ended.error().text));
}

}  // namespace cairn::sim
