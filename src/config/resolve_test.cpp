#include "config/resolve.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn {
namespace {

std::vector<Entry> entries(const std::string& text, const std::string& file) {
  const Lookup none = [](const std::string&) { return std::nullopt; };
  const ParsedFile parsed = parse_entries(text, file, none);
  EXPECT_TRUE(parsed.problems.empty());
  return parsed.entries;
}

SettingsFile file(const std::string& name, const std::string& text) {
  return {name, entries(text, name)};
}

std::vector<Entry> app(const std::string& text) {
  auto lines = entries(text, "");
  for (Entry& entry : lines) entry.line = 0;
  return lines;
}

SettingSources plain() {
  SettingSources sources;
  sources.process = {{{"USER", "ann"}}, "node1", "/work", 1234};
  return sources;
}

SettingSources with_file(const std::string& text) {
  SettingSources sources = plain();
  sources.user_file = file("/p/.scrconf", text);
  return sources;
}

std::string error_of(const SettingSources& sources) {
  const auto resolved = resolve(sources);
  if (resolved) return "no error";
  EXPECT_EQ(resolved.error().code, Code::bad_setting);
  return resolved.error().text;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

const ResolvedOption& option(const ResolvedSettings& resolved, const std::string& key) {
  return *std::find_if(resolved.options.begin(), resolved.options.end(),
                       [&](const ResolvedOption& o) { return o.key == key; });
}

TEST(Resolve, WithoutSettingsTheDefaultsApply) {
  const auto resolved = resolve(plain()).value();
  const Settings& settings = resolved.settings;
  EXPECT_TRUE(resolved.warnings.empty());
  EXPECT_TRUE(resolved.notes.empty());
  EXPECT_EQ(settings.prefix, "/work");
  EXPECT_EQ(settings.user, "ann");
  EXPECT_EQ(settings.job_id, "defjobid");
  EXPECT_EQ(settings.node_name, "node1");
  EXPECT_EQ(settings.control_base, "/dev/shm");
  ASSERT_EQ(settings.stores.size(), 1U);
  EXPECT_EQ(settings.stores[0].path, "/dev/shm");
  EXPECT_EQ(settings.stores[0].count, 1);
  ASSERT_EQ(settings.checkpoints.size(), 1U);
  EXPECT_EQ(settings.checkpoints[0].scheme, Scheme::xor_);
  EXPECT_EQ(settings.checkpoints[0].store, "/dev/shm");
  EXPECT_EQ(settings.checkpoints[0].set_size, 8);
  EXPECT_EQ(settings.checkpoints[0].set_failures, 2);
  EXPECT_FALSE(settings.checkpoints[0].bypass);
  EXPECT_EQ(resolved.value_of("CKPT=0 TYPE"), "XOR");
  EXPECT_EQ(resolved.value_of("SCR_JOB_NAME"), std::nullopt);
  EXPECT_EQ(resolved.value_of("SCR_NONE"), std::nullopt);
  EXPECT_EQ(option(resolved, "SCR_HALT_SECONDS").help,
            "stop this long before the allocation ends; cairn halt --seconds overrides it [s]");
}

TEST(Resolve, TheHighestLayerWins) {
  SettingSources sources = plain();
  const std::string key = "SCR_CHECKPOINT_INTERVAL";
  const auto expect = [&](int value, const std::string& source) {
    const auto resolved = resolve(sources).value();
    EXPECT_EQ(resolved.settings.checkpoint_interval, value);
    EXPECT_EQ(option(resolved, key).value, std::to_string(value));
    EXPECT_EQ(option(resolved, key).source, source);
  };
  expect(0, "default");
  sources.system_file = file("/etc/scr.conf", "\n" + key + "=1");
  expect(1, "/etc/scr.conf:2");
  sources.app_entries = app(key + "=2");
  expect(2, "SCR_Config");
  sources.user_file = file("/p/.scrconf", key + "=9\n" + key + "=3\n");
  expect(3, "/p/.scrconf:2");
  sources.process.environment[key] = "";
  expect(3, "/p/.scrconf:2");
  sources.process.environment[key] = "4";
  expect(4, "environment");
}

TEST(Resolve, IdentityComesFromTheProcess) {
  SettingSources sources = plain();
  sources.process.environment.erase("USER");
  EXPECT_EQ(resolve(sources)->settings.user, "1234");
  const std::pair<const char*, const char*> managers[] = {
      {"LSB_JOBID", "5"},   {"PBS_JOBID", "4.server"}, {"SLURM_JOB_ID", "3"},
      {"SLURM_JOBID", "2"}, {"FLUX_JOB_ID", "f1"},     {"SCR_JOB_ID", "mine"}};
  for (const auto& [variable, id] : managers) {
    sources.process.environment[variable] = id;
    EXPECT_EQ(resolve(sources)->settings.job_id, id);
  }
  sources.process.environment["SCR_NODE_NAME"] = "other";
  EXPECT_EQ(resolve(sources)->settings.node_name, "other");
}

TEST(Resolve, FailsOnNamesThatWouldLeaveTheirDirectory) {
  for (const char* variable :
       {"USER", "SCR_USER_NAME", "SLURM_JOB_ID", "SCR_JOB_ID", "SCR_NODE_NAME"}) {
    SettingSources sources = plain();
    sources.process.environment[variable] = "../../etc";
    expect_parts(error_of(sources), {"=../../etc (environment", "name of one directory"});
  }
  SettingSources lost = plain();
  lost.process.working_folder = "";
  expect_parts(error_of(lost), {"SCR_PREFIX= (working directory)"});
}

TEST(Resolve, BadValuesNameKeyValueSourceAndRemedy) {
  expect_parts(error_of(with_file("A_COMMENT=1\nSCR_SET_SIZE=1")),
               {"SCR_SET_SIZE=1", "(/p/.scrconf:2)", "a whole number from 2 to", "or remove it"});
  expect_parts(error_of(with_file("SCR_COPY_TYPE=FILE\nCKPT=0 SET_FAILURES=9")),
               {"CKPT=0 SET_FAILURES=9", "(/p/.scrconf:2)", "from 1 to 8"});
  expect_parts(error_of(with_file("SCR_COPY_TYPE=FILE\nCKPT=0 INTERVAL=0")),
               {"CKPT=0 INTERVAL=0", "from 1"});
  expect_parts(error_of(with_file("SCR_COPY_TYPE=FILE\nCKPT=0 FLUSH_ASYNC=behind")),
               {"CKPT=0 FLUSH_ASYNC=behind", "(/p/.scrconf:2)", "write 0 or 1", "or remove it"});
  expect_parts(error_of(with_file("CKPT=first TYPE=XOR")), {"CKPT=first", "a whole number"});
  expect_parts(error_of(with_file("STORE=ssd")), {"STORE=ssd", "(/p/.scrconf:1)", "absolute path"});
  expect_parts(error_of(with_file("STORE=/ssd VIEW=ALL")),
               {"STORE=/ssd VIEW=ALL", "one of PRIVATE, GLOBAL"});
  expect_parts(error_of(with_file("SCR_DEBUG=1 SCR_FLUSH=2")),
               {"SCR_DEBUG=1 (/p/.scrconf:1)", "SCR_FLUSH", "on a line of its own"});
  expect_parts(error_of(with_file("SCR_SET_SIZ=4\nSCR_COPY_TYPE=RAID")),
               {"SCR_COPY_TYPE=RAID", "; also: unknown setting SCR_SET_SIZ", "SCR_SET_SIZE?"});
  SettingSources by_app = plain();
  by_app.app_entries = app("SCR_SET_SIZE=1");
  expect_parts(error_of(by_app), {"SCR_SET_SIZE=1 (SCR_Config)"});
}

TEST(Resolve, WarnsAboutUnknownSettings) {
  SettingSources sources = with_file("\n\nSCR_SET_SIZ=4\nSTORE=/dev/shm COUT=2");
  sources.process.environment["CAIRN_KEEP_OLDER"] = "1";
  sources.process.environment["SCR_PERFECTLY_STRANGE"] = "1";
  sources.app_entries = app("STORES=/x");
  const auto resolved = resolve(sources).value();
  auto warnings = resolved.warnings;
  std::sort(warnings.begin(), warnings.end());
  EXPECT_EQ(
      warnings,
      (std::vector<std::string>{
          "unknown setting CAIRN_KEEP_OLDER in the environment is ignored; did you mean "
          "CAIRN_KEEP_OLD?",
          "unknown setting COUT of STORE=/dev/shm in /p/.scrconf:4 is ignored; did you mean COUNT?",
          "unknown setting SCR_PERFECTLY_STRANGE in the environment is ignored; no setting has a "
          "similar name; `cairn config` lists all",
          "unknown setting SCR_SET_SIZ in /p/.scrconf:3 is ignored; did you mean SCR_SET_SIZE?",
          "unknown setting STORES in SCR_Config is ignored; did you mean STORE?"}));
}

TEST(Resolve, NotesEachSettingWithoutEffectOnce) {
  SettingSources sources =
      with_file("SCR_FLUSH_TYPE=0\nCACHE=/x SIZE=3\nSTORE=/dev/shm FLUSH=SYNC");
  sources.process.environment["SCR_CLUSTER_NAME"] = "3";
  sources.process.environment["SCR_LOG_DB_PASS"] = "geheim";
  const auto resolved = resolve(sources).value();
  EXPECT_TRUE(resolved.warnings.empty());
  ASSERT_EQ(resolved.notes.size(), 4U);
  expect_parts(resolved.notes[0], {"CACHE in /p/.scrconf:2"});
  expect_parts(resolved.notes[1], {"a later version", "SCR_FLUSH_TYPE (/p/.scrconf:1)"});
  expect_parts(resolved.notes[2], {"does not need it", "SCR_CLUSTER_NAME (environment)",
                                   "SCR_LOG_DB_PASS (environment)"});
  EXPECT_EQ(resolved.notes[2].find("geheim"), std::string::npos);
  expect_parts(resolved.notes[3], {"a later version", "STORE=/dev/shm FLUSH"});
  EXPECT_FALSE(option(resolved, "SCR_FLUSH_TYPE").used);
  EXPECT_TRUE(option(resolved, "SCR_ENABLE").used);
  EXPECT_EQ(option(resolved, "SCR_LOG_DB_PASS").value, "(not shown)");
}

TEST(Resolve, ShowsTheNeededSpaceOfDirectoriesForJobControl) {
  const auto resolved =
      resolve(with_file("CACHEDIR=/ssd/%n BYTES=1GB\nCNTLDIR=/dev/shm\nCNTLDIR=/tmp BYTE=1"))
          .value();
  EXPECT_EQ(option(resolved, "CACHEDIR=/ssd/%n BYTES").bytes, 1073741824U);
  EXPECT_EQ(option(resolved, "CNTLDIR=/dev/shm BYTES").bytes, 0U);
  EXPECT_EQ(option(resolved, "CAIRN_BLOCK_SIZE").bytes, 262144U);
  EXPECT_FALSE(option(resolved, "SCR_ENABLE").bytes);
  EXPECT_TRUE(resolved.notes.empty());
  ASSERT_EQ(resolved.warnings.size(), 1U);
  expect_parts(resolved.warnings[0], {"BYTE of CNTLDIR=/tmp", "did you mean BYTES"});
  expect_parts(error_of(with_file("CACHEDIR=/x BYTES=much")), {"CACHEDIR=/x BYTES", "much"});
}

TEST(Resolve, WarnsAboutKeysInAWrongSource) {
  SettingSources sources = with_file("SCR_NODE_NAME=all\nSCR_CONF_FILE=/other");
  sources.app_entries = app("SCR_LOG_DB_PASS=x");
  const auto resolved = resolve(sources).value();
  EXPECT_EQ(resolved.settings.node_name, "node1");
  ASSERT_EQ(resolved.warnings.size(), 3U);
  expect_parts(resolved.warnings[0], {"SCR_CONF_FILE", "cannot be set in /p/.scrconf:2"});
  expect_parts(resolved.warnings[1], {"SCR_NODE_NAME", "cannot be set in /p/.scrconf:1"});
  expect_parts(resolved.warnings[2],
               {"SCR_LOG_DB_PASS", "cannot be set in SCR_Config", "or in a file"});
}

TEST(Resolve, TheProgramSetsTheCacheAsInScrsOwnExamples) {
  SettingSources sources = plain();
  sources.app_entries = {{"SCR_CACHE_SIZE", "2", {}, 0}, {"SCR_CACHE_BASE", "/x", {}, 0}};
  const auto resolved = resolve(sources).value();
  EXPECT_EQ(resolved.settings.stores.at(0).path, "/x");
  EXPECT_EQ(resolved.settings.stores.at(0).count, 2);
  EXPECT_TRUE(resolved.warnings.empty());
}

TEST(Resolve, ACacheOfNoDatasetKeepsOne) {
  SettingSources sources = plain();
  sources.process.environment["SCR_CACHE_SIZE"] = "0";
  const auto resolved = resolve(sources).value();
  EXPECT_EQ(resolved.settings.stores.at(0).count, 1);
  ASSERT_EQ(resolved.warnings.size(), 1U);
  expect_parts(resolved.warnings[0], {"SCR_CACHE_SIZE=0 (environment)"});
}

TEST(Resolve, BypassAppliesToAllDescriptorsOrToSome) {
  const auto all = resolve(with_file("SCR_CACHE_BYPASS=1")).value();
  EXPECT_TRUE(all.settings.checkpoints[0].bypass);
  EXPECT_TRUE(all.warnings.empty() && all.notes.empty());
  const auto some = resolve(with_file("SCR_COPY_TYPE=FILE\nCKPT=0 INTERVAL=1 TYPE=XOR\n"
                                      "CKPT=1 INTERVAL=8 BYPASS=1"))
                        .value();
  EXPECT_FALSE(some.settings.checkpoints[0].bypass);
  EXPECT_TRUE(some.settings.checkpoints[1].bypass);
}

TEST(Resolve, ADescriptorSaysWhetherTheProgramWaitsForItsCopies) {
  const auto resolved = resolve(with_file("SCR_COPY_TYPE=FILE\nSCR_FLUSH_ASYNC=1\n"
                                          "CKPT=0 INTERVAL=1\nCKPT=1 INTERVAL=8 FLUSH_ASYNC=0"))
                            .value();
  EXPECT_TRUE(resolved.warnings.empty() && resolved.notes.empty());
  EXPECT_EQ(option(resolved, "CKPT=0 FLUSH_ASYNC").value, "1");
  EXPECT_EQ(option(resolved, "CKPT=1 FLUSH_ASYNC").source, "/p/.scrconf:4");
  const Settings& settings = resolved.settings;
  EXPECT_TRUE(flushes_async(settings, settings.checkpoints[0]));
  EXPECT_FALSE(flushes_async(settings, settings.checkpoints[1]));
  EXPECT_TRUE(flushes_any_async(settings));
  const auto none = resolve(with_file("")).value().settings;
  EXPECT_FALSE(flushes_any_async(none));
}

TEST(Resolve, AGlobalRestartFlushesAndFetchesRegardlessOfOtherSettings) {
  const auto settings = resolve(with_file("SCR_GLOBAL_RESTART=1\nSCR_FETCH=0\nSCR_FETCH_BYPASS=0\n"
                                          "SCR_FLUSH_ON_RESTART=0"))
                            .value()
                            .settings;
  EXPECT_TRUE(settings.global_restart && settings.fetch && settings.fetch_bypass &&
              settings.flush_on_restart);
  const auto usual = resolve(with_file("")).value().settings;
  EXPECT_FALSE(usual.global_restart || usual.fetch_bypass || usual.flush_on_restart);
  EXPECT_TRUE(usual.fetch);
}

TEST(Resolve, ReadsDescriptors) {
  const auto resolved = resolve(with_file(R"(
SCR_COPY_TYPE=FILE
SCR_SET_SIZE=5
GROUPS=node1 SWITCH=leaf3 RACK=r7
GROUPS=node2 switch=leaf4 rack=r7
STORE=/dev/shm
STORE=/ssd/ COUNT=3 MKDIR=0 GROUP=WORLD VIEW=global
CKPT=10 INTERVAL=8 STORE=/ssd TYPE=SINGLE OUTPUT=1
CKPT=1 INTERVAL=4 GROUP=switch STORE=/ssd TYPE=RS SET_SIZE=9 SET_FAILURES=3
CKPT=0 INTERVAL=1
CKPT=3 ENABLED=0 STORE=/nowhere GROUP=nothing
)"))
                            .value();
  const Settings& settings = resolved.settings;
  EXPECT_TRUE(resolved.warnings.empty());
  ASSERT_EQ(settings.stores.size(), 2U);
  EXPECT_EQ(settings.stores[1].path, "/ssd");
  EXPECT_EQ(settings.stores[1].count, 3);
  EXPECT_FALSE(settings.stores[1].mkdir);
  EXPECT_EQ(settings.stores[1].group, "WORLD");
  EXPECT_EQ(settings.stores[1].view, StoreView::global);
  EXPECT_EQ(resolved.value_of("GROUPS=node1 SWITCH"), "leaf3");
  EXPECT_EQ(option(resolved, "GROUPS=node2 RACK").source, "/p/.scrconf:5");
  ASSERT_EQ(settings.checkpoints.size(), 3U);
  const CheckpointSettings& first = settings.checkpoints[0];
  EXPECT_EQ(first.id, 0);
  EXPECT_EQ(first.scheme, Scheme::xor_);
  EXPECT_EQ(first.set_size, 5);
  const CheckpointSettings& second = settings.checkpoints[1];
  EXPECT_EQ(second.scheme, Scheme::rs);
  EXPECT_EQ(second.group, "SWITCH");
  EXPECT_EQ(second.interval, 4);
  EXPECT_EQ(second.set_size, 9);
  EXPECT_EQ(second.set_failures, 3);
  EXPECT_EQ(settings.checkpoints[2].id, 10);
  EXPECT_TRUE(settings.checkpoints[2].output);
  EXPECT_EQ(settings.node_groups.at("node2").at("SWITCH"), "leaf4");
  EXPECT_EQ(option(resolved, "CKPT=0 SET_SIZE").source, "/p/.scrconf:3");
}

TEST(Resolve, LeavesOfOneDescriptorMergeOverLayers) {
  SettingSources sources = with_file("SCR_COPY_TYPE=FILE\nCKPT=0 TYPE=PARTNER");
  sources.app_entries = app("CKPT=00 TYPE=RS SET_SIZE=16");
  const auto checkpoint = resolve(sources)->settings.checkpoints.at(0);
  EXPECT_EQ(checkpoint.scheme, Scheme::partner);
  EXPECT_EQ(checkpoint.set_size, 16);
}

TEST(Resolve, WithoutFileCkptLinesAreNotUsedButStoresAre) {
  const auto resolved = resolve(with_file("CKPT=0 TYPE=RS\nSTORE=/ssd COUNT=2")).value();
  EXPECT_EQ(resolved.settings.checkpoints.at(0).scheme, Scheme::xor_);
  ASSERT_EQ(resolved.settings.stores.size(), 2U);
  EXPECT_EQ(resolved.settings.stores[1].path, "/dev/shm");
  ASSERT_EQ(resolved.warnings.size(), 1U);
  expect_parts(resolved.warnings[0], {"CKPT=0 in /p/.scrconf:1", "SCR_COPY_TYPE=FILE"});
}

TEST(Resolve, FailsOnContradictoryDescriptors) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"",
       {"no enabled CKPT line has INTERVAL=1", "(/p/.scrconf:1)", "CKPT=0 INTERVAL=1 TYPE=XOR"}},
      {"CKPT=0 INTERVAL=2", {"no enabled CKPT line has INTERVAL=1"}},
      {"CKPT=0 ENABLED=0", {"no enabled CKPT line has INTERVAL=1"}},
      {"CKPT=0 STORE=/ssd",
       {"CKPT=0 STORE=/ssd (/p/.scrconf:2): ", "no such store", "add STORE=/ssd"}},
      {"STORE=/ssd ENABLED=0\nCKPT=0 STORE=/ssd",
       {"CKPT=0 STORE=/ssd (/p/.scrconf:3)", "has ENABLED=0"}},
      {"CKPT=0 GROUP=RACK", {"CKPT=0 GROUP=RACK (/p/.scrconf:2): no GROUPS line", "RACK=VALUE"}},
      {"STORE=/ssd GROUP=RACK\nCKPT=0", {"STORE=/ssd GROUP=RACK"}},
      {"GROUPS=a R=1\nGROUPS=b S=1\nCKPT=0",
       {"GROUPS=a (/p/.scrconf:2)", "GROUPS=b", "same names"}},
      {"GROUPS=a R=1\nGROUPS=b\nCKPT=0", {"GROUPS=a", "GROUPS=b", "same names"}},
      {"GROUPS=a NODE=1\nCKPT=0", {"GROUPS=a", "defines NODE", "built in"}},
      {"CKPT=0 TYPE=RS SET_SIZE=3 SET_FAILURES=3",
       {"TYPE=RS", "SET_SIZE=3 (/p/.scrconf:2)", "larger set"}},
  };
  for (const auto& [text, parts] : cases)
    expect_parts(error_of(with_file("SCR_COPY_TYPE=FILE\n" + std::string(text))), parts);
}

}  // namespace
}  // namespace cairn
