// The command crfs, also called by mount(8) as mount.crfs.

#include <exception>
#include <iostream>

#include "crfs/arguments.hpp"
#include "crfs/session.hpp"
#ifdef CAIRN_HAS_MOUNTED_JOB
#include "mounted/mounted_job.hpp"
#endif

namespace {

cairn::Result<std::unique_ptr<cairn::RedirectingJob>> start_job(
    [[maybe_unused]] const cairn::MountOptions& options, [[maybe_unused]] const cairn::Log& log) {
#ifdef CAIRN_HAS_MOUNTED_JOB
  return cairn::start_mounted_job(options, log);
#else
  return cairn::fail(cairn::Code::disabled,
                     "--scr: this crfs was built without libpcre2, so it knows no patterns; build "
                     "Cairn where libpcre2 (Debian: libpcre2-dev) is, and install it again");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string path = argc > 0 ? argv[0] : "";
    int exit_code = 0;
    const auto options = cairn::parse_arguments(path.substr(path.rfind('/') + 1),
                                                {argv + std::min(argc, 1), argv + argc}, exit_code);
    return options ? cairn::run_mount(*options, start_job) : exit_code;
  } catch (const std::exception& error) {  // of the standard library: out of memory and the like
    std::cerr << "crfs: " << error.what() << "\n";
    return 1;
  }
}
