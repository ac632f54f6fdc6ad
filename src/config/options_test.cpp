#include "config/options.hpp"

#include <gtest/gtest.h>

#include <set>

namespace cairn {
namespace {

TEST(Options, KeysAreUniqueAndOfAFamily) {
  std::set<std::string_view> keys;
  for (const Option& option : options()) {
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_TRUE(option.key.starts_with("SCR_") || option.key.starts_with("CAIRN_") ||
                option.key == "REDSET_ENCODE")
        << option.key;
    EXPECT_FALSE(option.help.empty()) << option.key;
    EXPECT_EQ(find_option(option.key), &option);
  }
  EXPECT_EQ(known_keys().size(), keys.size() + descriptor_keys().size());
  EXPECT_EQ(find_option("SCR_NONE"), nullptr);
}

/// Its settings are stored in a file that other users may read.
TEST(Options, TheProgramSetsNoSecrets) {
  for (const Option& option : options())
    EXPECT_TRUE(!option.flags.secret || option.flags.not_by_app) << option.key;
}

TEST(Options, DefaultsAreAllowedAndEqualThoseOfSettings) {
  Settings set;
  for (const Option& option : options()) {
    if (option.default_text.empty()) continue;
    const auto value = read_value(option.rule, std::string(option.key),
                                  {std::string(option.default_text), "default"});
    ASSERT_TRUE(value) << value.error().text;
    if (option.set) option.set(set, *value);
  }
  const Settings fresh;
  EXPECT_EQ(set.enable, fresh.enable);
  EXPECT_EQ(set.distribute, fresh.distribute);
  EXPECT_EQ(set.copy_metadata, fresh.copy_metadata);
  EXPECT_EQ(set.keep_old, fresh.keep_old);
  EXPECT_EQ(set.on_mismatch, fresh.on_mismatch);
  EXPECT_EQ(set.block_bytes, fresh.block_bytes);
  EXPECT_EQ(set.encode_bytes, fresh.encode_bytes);
  EXPECT_EQ(set.control_base, "/dev/shm");
}

TEST(Options, WordsStandInTheOrderOfTheirEnums) {
  const auto type = [](const char* word) {
    CheckpointSettings checkpoint;
    for (const auto& leaf : checkpoint_leaves())
      if (leaf.key == "TYPE") leaf.set(checkpoint, *read_value(leaf.rule, "TYPE", {word, "test"}));
    return checkpoint.scheme;
  };
  EXPECT_EQ(type("single"), Scheme::single);
  EXPECT_EQ(type("Partner"), Scheme::partner);
  EXPECT_EQ(type("XOR"), Scheme::xor_);
  EXPECT_EQ(type("RS"), Scheme::rs);
}

TEST(Options, LeavesTakeTheirDefaultsFromExistingOptions) {
  for (const auto& leaf : store_leaves())
    EXPECT_TRUE(leaf.from.empty() || find_option(leaf.from)) << leaf.key;
  for (const auto& leaf : checkpoint_leaves())
    EXPECT_TRUE(leaf.from.empty() || find_option(leaf.from)) << leaf.key;
}

TEST(Options, SCRConfigSetsAllButNodeNamesSecretsAndThoseOfRbio) {
  for (const Option& option : options()) {
    const bool is_of_rbio = option.key == std::string_view("CAIRN_RBIO");
    EXPECT_EQ(option.flags.not_by_app, option.flags.per_rank || option.flags.secret || is_of_rbio)
        << option.key;
  }
  for (const char* key : {"CACHE", "CACHEDIR", "CNTLDIR"})
    EXPECT_TRUE(find_descriptor_key(key)->not_by_app) << key;
}

struct Case {
  const char* key;
  const char* text;
  const char* canonical;  ///< null: refused
};
constexpr Case value_cases[] = {
    {"SCR_ENABLE", "Yes", "1"},
    {"SCR_ENABLE", "FALSE", "0"},
    {"SCR_ENABLE", "2", nullptr},
    {"SCR_ENABLE", "on", nullptr},
    {"SCR_SET_SIZE", "007", "7"},
    {"SCR_SET_SIZE", "1", nullptr},
    {"SCR_SET_SIZE", "8x", nullptr},
    {"SCR_SET_SIZE", "-8", nullptr},
    {"SCR_SET_SIZE", "99999999999999999999", nullptr},
    {"SCR_SET_FAILURES", "9", nullptr},
    {"SCR_SET_FAILURES", "8", "8"},
    {"SCR_CHECKPOINT_OVERHEAD", "2.5", "2.5"},
    {"SCR_CHECKPOINT_OVERHEAD", "nan", nullptr},
    {"SCR_CHECKPOINT_OVERHEAD", "100.1", nullptr},
    {"SCR_COPY_TYPE", "xor", "XOR"},
    {"SCR_COPY_TYPE", "RAID", nullptr},
    {"CAIRN_BLOCK_SIZE", "64KB", "64KB"},
    {"CAIRN_BLOCK_SIZE", "2MB", nullptr},
    {"CAIRN_BLOCK_SIZE", "2KB", nullptr},
    {"CAIRN_BLOCK_SIZE", "12KB", nullptr},
    {"CAIRN_ENCODE_MEMORY", "big", nullptr},
    {"CAIRN_ON_MISMATCH", "FRESH", "fresh"},
    {"SCR_PREFIX", "/a//b/../c/", "/a/c"},
    {"SCR_PREFIX", "a/b", nullptr},
    {"SCR_PREFIX", "/a\nb", nullptr},
    {"SCR_CACHE_BASE", "/ssd/%n", "/ssd/%n"},
    {"SCR_GROUP", "switch", "SWITCH"},
    {"SCR_USER_NAME", "ann", "ann"},
    {"SCR_USER_NAME", "..", nullptr},
    {"SCR_JOB_ID", "a/b", nullptr},
    {"SCR_NODE_NAME", ".", nullptr},
    {"SCR_JOB_ID", "12.server[3]", "12.server[3]"},
};

TEST(Options, ReadsValues) {
  for (const auto& [key, text, canonical] : value_cases) {
    const auto value = read_value(find_option(key)->rule, key, {text, "here"});
    ASSERT_EQ(value.has_value(), canonical != nullptr) << key << "=" << text;
    if (value) {
      EXPECT_EQ(value->text, canonical);
      continue;
    }
    EXPECT_EQ(value.error().code, Code::bad_setting);
    EXPECT_EQ(
        value.error().text.rfind(fmt::format("{}={} (here) is not allowed: write ", key, text), 0),
        0U)
        << value.error().text;
    EXPECT_NE(value.error().text.find(allowed(find_option(key)->rule)), std::string::npos);
  }
}

TEST(Options, SaysWhatIsAllowed) {
  EXPECT_EQ(allowed(find_option("SCR_SET_FAILURES")->rule), "a whole number from 1 to 8");
  EXPECT_EQ(allowed(find_option("SCR_COPY_TYPE")->rule), "one of SINGLE, PARTNER, XOR, RS, FILE");
  EXPECT_EQ(allowed(find_option("CAIRN_BLOCK_SIZE")->rule),
            "a size from 4 KiB to 1 MiB that is a power of two, for example 64KB");
}

TEST(Options, FindsTheNearestKey) {
  EXPECT_EQ(did_you_mean("SCR_SET_SIZ", known_keys()), "; did you mean SCR_SET_SIZE?");
  EXPECT_EQ(did_you_mean("SCR_CASHE_BASE", known_keys()), "; did you mean SCR_CACHE_BASE?");
  EXPECT_EQ(did_you_mean("CKTP", known_keys()), "; did you mean CKPT?");
  EXPECT_EQ(did_you_mean("CKP", known_keys()), "; did you mean CKPT?");
  const std::string none = "; no setting has a similar name; `cairn config` lists all";
  EXPECT_EQ(did_you_mean("ENTIRELY_OTHER", known_keys()), none);
  EXPECT_EQ(did_you_mean(std::string(100000, 'A'), known_keys()), none);
  EXPECT_EQ(did_you_mean("KEY", {}), none);
}

TEST(Options, ExpandsTheNode) {
  EXPECT_EQ(expand_node("/ssd/%n/x%n", "n7"), "/ssd/n7/xn7");
  EXPECT_EQ(expand_node("/100%/%", "n7"), "/100%/%");
  EXPECT_EQ(expand_node("/%n", "%n"), "/%n");
}

}  // namespace
}  // namespace cairn
