// The table of settings, with their names, ranges, defaults and meaning. Reading, checking, `cairn
// config` and the manual page use it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.hpp"
#include "config/value.hpp"

namespace cairn {

/// Whether a setting has an effect. Cairn accepts all settings of SCR.
enum class Use {
  now,
  later,  ///< a setting of SCR without effect in this version
  never   ///< a setting of SCR without effect, as Cairn does not need it
};

/// Special properties of an option; most have none.
struct Flags {
  Use use = Use::now;
  bool not_by_app = false;    ///< SCR_Config cannot set it
  bool not_in_files = false;  ///< a file comes too late for it, or each process has its own value
  bool per_rank = false;      ///< each process reads its own environment
  bool secret = false;        ///< never shown
};

struct Option {
  std::string_view key;
  Rule rule;
  std::string_view unit;          ///< "s", "bytes", "%", or empty
  std::string_view default_text;  ///< empty if resolve() computes the default, or there is none
  std::string_view help;
  Flags flags = {};
  /// Null if Settings has no field for it: it is the default of a leaf in descriptors, or has no
  /// effect.
  void (*set)(Settings&, const Value&) = nullptr;
};

std::span<const Option> options();

/// Null if there is none.
const Option* find_option(std::string_view key);

/// A child of a STORE= or CKPT= line. Its default is the value of option `from`, or else
/// `default_text`.
template <class Descriptor>
struct Leaf {
  std::string_view key;
  Rule rule;
  std::string_view from;
  std::string_view default_text;
  std::string_view help;
  void (*set)(Descriptor&, const Value&);  ///< null: accepted, not used yet
};

/// The values of a CACHEDIR= or CNTLDIR= line. Job control uses it, the library does not.
struct FolderNeeds {
  std::uint64_t bytes = 0;
};

std::span<const Leaf<StoreSettings>> store_leaves();
std::span<const Leaf<CheckpointSettings>> checkpoint_leaves();
std::span<const Leaf<FolderNeeds>> folder_leaves();

/// The first key of a descriptor line; `rule` is for its value, which names the descriptor.
struct DescriptorKey {
  std::string_view key;
  Rule rule;
  bool unused = false;
  bool not_by_app = false;
};

std::span<const DescriptorKey> descriptor_keys();

/// Null if there is none.
const DescriptorKey* find_descriptor_key(std::string_view key);

/// All keys with which a line may begin.
std::span<const std::string_view> known_keys();

/// The candidate at the smallest edit distance; "" if none is near.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

/// "; did you mean KEY?" with the nearest candidate; if none is near, a hint where all are listed.
std::string did_you_mean(std::string_view key, std::span<const std::string_view> candidates);

}  // namespace cairn
