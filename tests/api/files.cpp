// Files that are not as a dataset needs them when it is completed.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "scenario.hpp"

namespace {

constexpr int careless = 2;

/// Every rank writes `name`; the careless one leaves it as `leave` does, and gets back what ends
/// that. The checkpoint is invalid, and the error names the file and the rank.
void complete_with(Verdict& verdict, const std::string& name,
                   std::function<void()> (*leave)(const char* path)) {
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(own(name).c_str(), path));
  CHECK(write_file(name, path));
  const auto end = rank_of_this() == careless ? leave(path) : [] {};
  expect_error("SCR_Complete_output|" + name + "." + std::to_string(careless) + "|rank " +
               std::to_string(careless));
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_output(1));
  end();
}

std::function<void()> in_a_buffer(const char* path) {
  std::FILE* stream = std::fopen(path, "a");
  std::fputs("the end is still in the program", stream);
  return [stream] { std::fclose(stream); };
}

std::function<void()> in_a_mapping(const char* path) {
  const int number = ::open(path, O_RDWR);
  void* mapping = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  ::close(number);
  return [mapping] { ::munmap(mapping, 4096); };
}

}  // namespace

/// Two checkpoints in vain, and one that is good.
void open_files(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  complete_with(verdict, "buffered", in_a_buffer);
  complete_with(verdict, "mapped", in_a_mapping);
  CHECK(make_checkpoint("closed"));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// All in vain.
void wrong_names(Verdict& verdict) {
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  expect_error("SCR_Complete_checkpoint|SCR_Route_file");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_checkpoint(1));

  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  CHECK(SCR_Route_file("state", path) == SCR_SUCCESS && write_file("state", path));
  expect_error("SCR_Complete_checkpoint|ranks|state|SCR_CACHE_BYPASS");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_checkpoint(1));

  // A rank whose Route failed, and that takes no notice of it.
  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  CHECK(route_and_write("mine"));
  if (rank_of_this() == 2) {
    expect_line("SCR_Route_file|/elsewhere/state");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file("/elsewhere/state", path));
  }
  expect_error("SCR_Complete_checkpoint|rank 2|/elsewhere/state");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_checkpoint(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}
