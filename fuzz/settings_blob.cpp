// The settings that rank 0 sends to the others.
#include <algorithm>

#include "config/resolve.hpp"
#include "decoder.hpp"

namespace cairn::fuzz {

void check(Bytes input) {
  auto sources = sources_from_blob(input);
  if (!sources) {
    expect(sources.error().code == Code::corrupt && !sources.error().text.empty(),
           "a refusal says why");
    return;
  }
  expect(std::ranges::equal(to_blob(*sources), input), "only what to_blob() makes is taken");
  (void)take_own_facts(*sources, {{{"SCR_NODE_NAME", "one"}}, "host", "/work", 7});
  (void)resolve(*sources);  // any answer will do; config_file.cpp looks at them
}

std::vector<Blob> seeds() {
  SettingSources sources;
  const Blob none = to_blob(sources);
  sources.process = {{{"SCR_DEBUG", "1"}, {"USER", "ann\xff"}}, "host0", "/w\xfe", 70000};
  sources.user_file = {
      "/p/.scrconf",
      {{"CKPT", "0", {{"TYPE", "RS"}, {"SET_SIZE", "4"}}, 300}, {"SCR_COPY_TYPE", "FILE", {}, 2}}};
  const Blob with_file = to_blob(sources);
  sources.app_entries = {{"SCR_FLUSH", "2", {}, 0}, {"STORE", "/dev/shm", {{"COUNT", "2"}}, 0}};
  sources.system_file = {"/etc/scr.conf", {{"SCR_CACHE_SIZE", std::string(300, '1'), {}, 1}}};
  return {none, with_file, to_blob(sources)};
}

}  // namespace cairn::fuzz
