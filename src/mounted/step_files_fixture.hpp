// For tests of the files of a mount, call by call.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "mounted/step_files.hpp"
#include "wrapped/wrapped_fixture.hpp"

namespace cairn {

namespace fs = std::filesystem;

/// One node, whose mount has the backing directory "pfs".
class MountedFiles {
 public:
  static constexpr int writes_over = O_WRONLY | O_TRUNC;

  MountedFiles(JobBed& bed, JobRank& rank)
      : comm_(rank.comm),
        prefix_(rank.settings.prefix),
        cache_(bed.node(rank.settings.node_name) + "/mount"),
        checked_(prefix_, rank.log),
        files_({prefix_, cache_, 0}, patterns(), checked_),
        job_({*rank.session, *rank.files, rank.log, rank.log, prefix_, cache_ + "/files",
              [this](const std::string& name) { return move(name); },
              [this](std::string_view name) { return files_.step_in(name); }}) {
    fs::create_directories(cache_ + "/files");
    files_.begin(job_);
    EXPECT_TRUE(job_.restore(comm_));
  }

  std::string in_cache(const std::string& name) const { return cache_ + "/files/" + name; }
  std::string plain(const std::string& name) const { return prefix_ + "/" + name; }
  StepFiles& files() { return files_; }
  WrappedJob& job() { return job_; }
  void rounds() {
    for (int i = 0; i < 4; ++i) job_.round(comm_);
  }

  /// The directory exists in the backing directory.
  Descriptor directory_of(const std::string& name) const {
    const fs::path above = fs::path(plain(name)).parent_path();
    fs::create_directories(above);
    return Descriptor(::open(above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  template <class Call>
  auto at(const std::string& name, const Call& call) const {
    const Descriptor directory = directory_of(name);
    const std::string last = fs::path(name).filename();
    return call(MountedName{directory.number(), last.c_str(), name, caller});
  }
  std::optional<Descriptor> create(const std::string& name) {
    return at(name, [this](const MountedName& named) { return files_.create(named, 0640); });
  }
  void write(const std::string& name, const std::string& content) {
    const auto file = create(name);
    ASSERT_TRUE(file && file->number() >= 0) << name;
    EXPECT_EQ(::write(file->number(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  std::optional<int> rename(const std::string& from, const std::string& to, unsigned flags = 0) {
    return at(from, [&](const MountedName& old_name) {
      return at(to, [&](const MountedName& new_name) {
        return files_.rename(old_name, new_name, flags);
      });
    });
  }
  int remove(const std::string& name) {
    return at(name, [this](const MountedName& named) { return files_.remove(named); });
  }
  /// What the kernel does before it opens the file that has this path.
  int admit(const std::string& path, int flags) {
    const Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    std::unique_ptr<Redirection::Change> change;
    return files_.admit(file, flags, caller, change);
  }
  /// Over a file that is there, or not. As the kernel does: it looks the name up once more where
  /// that leads to another file now.
  void write_over(const std::string& name, const std::string& content) {
    const bool is_redirected = fs::exists(in_cache(name));
    if (!is_redirected && !fs::exists(plain(name))) return write(name, content);
    int admitted = admit(is_redirected ? in_cache(name) : plain(name), writes_over);
    if (admitted == ESTALE) admitted = admit(in_cache(name), writes_over);
    EXPECT_EQ(admitted, 0) << name;
    std::ofstream(fs::exists(in_cache(name)) ? in_cache(name) : plain(name)) << content;
  }

  pid_t caller = ::getpid();  ///< of all calls

 private:
  static const interpose::Patterns& patterns() {
    static const auto* const made = [] {
      auto* const patterns = new interpose::Patterns;
      EXPECT_EQ(patterns->add(R"(step\.(?<step>\d+)/part\.\d+(\.tmp)?$)"), "");
      EXPECT_EQ(patterns->add("again$"), "");
      return patterns;
    }();
    return *made;
  }
  Status move(const std::string& name) {
    const int error = files_.move_to_plain_place(name);
    return error == 0 || error == ENOENT ? Status{} : fail(Code::busy, "{}: {}", name, error);
  }

  Communicator& comm_;
  const std::string prefix_;
  const std::string cache_;
  CheckedFiles checked_;
  StepFiles files_;
  WrappedJob job_;
};

inline void on_a_node(WrappedBed& bed, const std::function<void(MountedFiles&)>& test) {
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.run_well({"n0"}, [&](JobRank& rank) {
    MountedFiles mounted(bed, rank);
    test(mounted);
  });
}

inline void on_a_node(const std::function<void(MountedFiles&)>& test) {
  WrappedBed bed;
  on_a_node(bed, test);
}

inline constexpr const char* part = "step.1/part.0";
inline constexpr int writes_over = MountedFiles::writes_over;

inline void put(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << content;
}

inline std::set<std::int64_t> step_numbers(std::initializer_list<const char*> texts) {
  std::set<std::int64_t> numbers;
  for (const char* text : texts) numbers.insert(*number_in(text));
  return numbers;
}

}  // namespace cairn
