#include "config/sources.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config/options.hpp"

namespace cairn {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Pair, key, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Entry, key, value, children, line)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SettingsFile, name, entries, problems)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessFacts, environment, host_name, working_folder, user_id)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SettingSources, process, user_file, app_entries, system_file)

namespace {

/// Checks a blob before it is parsed, and stops at anything that to_blob() never makes: the
/// library's parser recurses as deep as the bytes say, until the stack overflows, and converts any
/// float to an integer.
class Inspector final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& wrong() const { return wrong_; }

  bool null() override { return reject("null"); }
  bool boolean(bool) override { return reject("a boolean"); }
  bool number_integer(number_integer_t) override { return reject("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return reject("a fraction"); }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return reject("raw bytes"); }
  bool start_object(std::size_t) override { return deeper(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return shallower(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return shallower(); }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    return reject(error.what());
  }

 private:
  // sources, file, entries, entry, children, child
  static constexpr int deepest = 6;

  bool deeper() { return ++depth_ <= deepest || reject("nested too deeply"); }
  bool shallower() {
    --depth_;
    return true;
  }
  bool reject(const char* what) {
    wrong_ = what;
    return false;
  }

  int depth_ = 0;
  std::string wrong_;
};

tl::unexpected<Error> unreadable(std::string_view why) {
  return fail(Code::corrupt, "the settings sent by rank 0 cannot be read: {}", why);
}

}  // namespace

bool concerns_settings(const std::string& variable) {
  static constexpr std::array<std::string_view, 7> others = {
      "USER",      "FLUX_JOB_ID", "SLURM_JOBID",  "SLURM_JOB_ID",
      "PBS_JOBID", "LSB_JOBID",   "REDSET_ENCODE"};
  return variable.starts_with("SCR_") || variable.starts_with("CAIRN_") ||
         std::find(others.begin(), others.end(), variable) != others.end();
}

// CBOR instead of JSON text, as a path need not be UTF-8.
Blob to_blob(const SettingSources& sources) {
  const auto cbor = nlohmann::json::to_cbor(nlohmann::json(sources));
  const auto bytes = std::as_bytes(std::span(cbor));
  return Blob(bytes.begin(), bytes.end());
}

Result<SettingSources> sources_from_blob(Bytes blob) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(blob.data());
  const auto* end = begin + blob.size();
  Inspector inspector;
  if (!nlohmann::json::sax_parse(begin, end, &inspector, nlohmann::json::input_format_t::cbor))
    return unreadable(inspector.wrong());
  try {
    const auto sources = nlohmann::json::from_cbor(begin, end).get<SettingSources>();
    // Detects what the parser accepts, such as too large numbers and additional fields.
    if (!std::ranges::equal(to_blob(sources), blob)) return unreadable("not as they are written");
    return sources;
  } catch (const nlohmann::json::exception& wrong) {
    return unreadable(wrong.what());
  }
}

Lookup environment_of(const ProcessFacts& process) {
  return [&process](const std::string& name) -> std::optional<std::string> {
    const auto found = process.environment.find(name);
    if (found == process.environment.end()) return std::nullopt;
    return found->second;
  };
}

Result<std::string> expanded(const Option& option, const std::string& value,
                             const ProcessFacts& process) {
  auto text = expand_variables(value, environment_of(process));
  if (text) return text;
  const ValueType type = option.rule.type;
  const bool becomes_path =
      type == ValueType::path || type == ValueType::path_from_here || type == ValueType::component;
  if (!becomes_path) return value;
  return fail(Code::bad_setting, "{}={} (environment): {}", option.key, value, text.error().text);
}

Status take_own_facts(SettingSources& sources, const ProcessFacts& own) {
  sources.process.host_name = own.host_name;
  for (const Option& option : options()) {
    if (!option.flags.per_rank) continue;
    const std::string key(option.key);
    sources.process.environment.erase(key);
    const auto mine = own.environment.find(key);
    if (mine == own.environment.end()) continue;
    CAIRN_ASSIGN(sources.process.environment[key], expanded(option, mine->second, own));
  }
  return {};
}

}  // namespace cairn
