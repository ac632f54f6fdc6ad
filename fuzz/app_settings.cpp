// SCR_Config: an input is a number of calls, one on a line, and then SCR_Init.
#include "config/app_settings.hpp"

#include <algorithm>

#include "config/resolve.hpp"
#include "decoder.hpp"

namespace cairn::fuzz {
namespace {

std::optional<std::string> variable(const std::string& name) {
  if (name == "HOME") return "/home/ann";
  return std::nullopt;
}

std::optional<std::string> not_resolved(const std::string&) { return std::nullopt; }

bool is_set(const AppSettings& settings, const Entry& request) {
  return std::ranges::any_of(settings.entries(), [&](const Entry& entry) {
    return entry.key == request.key && (request.value.empty() || entry.value == request.value);
  });
}

void call(AppSettings& settings, const std::string& text) {
  const auto request = parse_request(text, variable);
  if (!request) {
    expect(request.error().code == Code::bad_setting && !request.error().text.empty(),
           "a refusal says why");
    return;
  }
  expect(!request->entry.key.empty(), "a request has a key");
  if (request->kind == ConfigRequest::Kind::query) {
    settings.query(*request, not_resolved);
    return;
  }
  const ConfigAnswer answer = settings.change(request->entry);
  if (!answer.warnings.empty()) return;
  expect(is_set(settings, request->entry) == !request->entry.value.empty(),
         "what is set is there, and what is unset is not");
}

}  // namespace

void check(Bytes input) {
  AppSettings settings;
  for (const std::string_view line : split(text_of(input), '\n')) call(settings, std::string(line));
  SettingSources sources;
  sources.process = {{}, "host", "/work", 1000};
  sources.app_entries = settings.entries();
  if (const auto resolved = resolve(sources); !resolved)
    expect(resolved.error().code == Code::bad_setting && !resolved.error().text.empty(),
           "a refusal says why");
}

std::vector<Blob> seeds() {
  std::vector<Blob> calls;
  for (const std::string_view text :
       {"SCR_DEBUG=1\nSCR_DEBUG\nSCR_DEBUG=\nSCR_DEBUG", "CKPT=0 TYPE=XOR SET_SIZE=16\nCKPT=0 TYPE",
        "CKPT=0 TYPE=RS\nCKPT=0 TYPE=\nCKPT\nCKPT=\nCKPT=0 TYPE", "SCR_PREFIX=$HOME/run",
        "STORE='/dev/shm' COUNT=2\nCKPT=1 STORE=/dev/shm TYPE=PARTNER COPIES=2 HOP=\"1\"",
        "GROUPS=host RACK=r7\nSCR_GROUP=RACK", "SCR_CACHE_SIZE=2\nSCR_SET_SIZE=4 # a comment",
        "SCR_USER_NAME=ann\nNO_SUCH_KEY=1", "SCR_COPY_TYPE=FILE\\ \nSCR_COPY_TYPE=\"${HOME}\""})
    calls.push_back(blob_of(text));
  return calls;
}

}  // namespace cairn::fuzz
