// The program around a decoder: libFuzzer's entry, and the option that writes the seeds.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "decoder.hpp"

namespace cairn::fuzz {
namespace {

constexpr std::string_view seeds_option = "--write-seeds=";

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const Blob& seed : seeds()) {
    std::ofstream out(folder / ("seed." + std::to_string(number++)), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()),
              static_cast<std::streamsize>(seed.size()));
    expect(static_cast<bool>(out.flush()), "seeds can be written");
  }
}

}  // namespace

void expect(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", promise);
  std::abort();
}

std::string_view text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

Blob blob_of(std::string_view text) {
  const Bytes bytes = std::as_bytes(std::span(text.data(), text.size()));
  return Blob(bytes.begin(), bytes.end());
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace cairn::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using cairn::fuzz::seeds_option;
  const std::string_view first = *argc > 1 ? (*argv)[1] : "";
  if (!first.starts_with(seeds_option)) return 0;
  cairn::fuzz::write_seeds(first.substr(seeds_option.size()));
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
