// The command crfs, also called by mount(8) as mount.crfs.

#include <exception>
#include <iostream>

#include "crfs/arguments.hpp"
#include "crfs/session.hpp"

int main(int argc, char** argv) {
  try {
    const std::string path = argc > 0 ? argv[0] : "";
    int exit_code = 0;
    const auto options = cairn::parse_arguments(path.substr(path.rfind('/') + 1),
                                                {argv + std::min(argc, 1), argv + argc}, exit_code);
    return options ? cairn::run_mount(*options) : exit_code;
  } catch (const std::exception& error) {  // of the standard library: out of memory and the like
    std::cerr << "crfs: " << error.what() << "\n";
    return 1;
  }
}
