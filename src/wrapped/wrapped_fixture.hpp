// A program that only opens, writes and closes files, on simulated nodes.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "support/job_bed.hpp"
#include "wrapped/wrapped_job.hpp"

namespace cairn {

/// One rank of such a program, and what the interposer does for it.
class Program {
 public:
  /// `files`: those of the rank, or a wrapper around such ones.
  Program(JobBed& bed, JobRank& rank, Files* files = nullptr)
      : bed_(bed),
        rank_(rank),
        redirected_(bed.node(rank.settings.node_name) + "/redirected"),
        job_({*rank.session, files == nullptr ? *rank.files : *files, rank.log,
              rank.number() == 0 ? rank.log : Log(), rank.settings.prefix, redirected_,
              [this](const std::string& name) { return move_to_plain_place(name); }, find_step}) {}

  int number() const { return rank_.number(); }
  WrappedJob& job() { return job_; }
  /// One file for each rank and step; or a directory, as some programs have it.
  std::string name(int step) const {
    if (has_one_name) return fmt::format("ckpt-{}", number());
    return has_directories ? fmt::format("rank{}/{}/field", number(), step)
                           : fmt::format("dump/state.{}.{}", step, number());
  }
  std::string redirected(int step) const { return redirected_ + "/" + name(step); }
  std::string plain(int step) const { return rank_.settings.prefix + "/" + name(step); }

  /// The file is open as long as the result lives.
  std::ofstream begin(int step, const std::string& content) {
    std::filesystem::remove(
        redirected(step));  // a file with several names is replaced, not emptied
    std::filesystem::create_directories(std::filesystem::path(redirected(step)).parent_path());
    std::ofstream out(redirected(step));
    out << content << std::flush;
    const std::string file = name(step);
    job_.opened(file, step_in(file), true);
    return out;
  }
  void write(int step, const std::string& more = "") { begin(step, content(step) + more); }
  static std::string_view find_step(std::string_view file) { return step_in(file); }
  static std::string_view step_in(std::string_view file) {
    if (file.starts_with("ckpt")) return {};
    const char mark = file.starts_with("rank") ? '/' : '.';
    const std::size_t begin = file.find(mark) + 1;
    return file.substr(begin, file.find(mark, begin) - begin);
  }
  std::string content(int step) const {
    return fmt::format("rank {} step {} ", number(), step) + std::string(700, 'x');
  }

  bool round() { return job_.round(rank_.comm); }
  /// So that the ranks find out what there is to be found out.
  void rounds() {
    for (int i = 0; i < 4; ++i) job_.round(rank_.comm);
  }
  void end() {
    job_.ended();
    while (!job_.round(rank_.comm)) {
    }
  }

  /// When this rank's record of its next dataset gets its name.
  void once_committed(std::function<void()> action) {
    rank_.hook = [action = std::move(action),
                  is_over = false](const FileOperation& operation) mutable -> Status {
      const bool commits = operation.name == "rename" && operation.to.ends_with("/record");
      if (commits && !std::exchange(is_over, true)) action();
      return {};
    };
  }

  std::string restore() {
    const auto name = job_.restore(rank_.comm);
    EXPECT_TRUE(name) << name.error().text;
    return name ? name->value_or("") : "failed";
  }
  bool has_directories = false;
  bool has_one_name = false;
  bool has(int step, const std::string& more = "") const {
    return std::filesystem::exists(redirected(step)) &&
           read_all(redirected(step)) == content(step) + more;
  }

 private:
  Status move_to_plain_place(const std::string& name) {
    const auto writer = rank_.files->find_writer(redirected_ + "/" + name);
    if (writer && *writer != Writer::none) return fail(Code::busy, "{} is open", name);
    const std::string to = rank_.settings.prefix + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(to).parent_path());
    std::filesystem::copy_file(redirected_ + "/" + name, to,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::remove(redirected_ + "/" + name);
    return {};
  }

  JobBed& bed_;
  JobRank& rank_;
  std::string redirected_;
  WrappedJob job_;
};

class WrappedBed : public JobBed {
 public:
  WrappedBed() {
    settings.prefix = node("pfs");
    std::filesystem::create_directories(settings.prefix);
    settings.flush = false;
    settings.stores[0].count = 2;
  }

  void run_program(const Nodes& nodes, const std::function<void(Program&)>& main) {
    run_well(nodes, [&](JobRank& rank) {
      Program program(*this, rank);
      main(program);
    });
  }
};

}  // namespace cairn
