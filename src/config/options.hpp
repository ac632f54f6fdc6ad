// The table of settings: the one place that knows their names, ranges, defaults and meaning. It
// drives reading and checking, `cairn config` and the manual page.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.hpp"
#include "config/value.hpp"

namespace cairn {

/// Whether Cairn acts on a setting. It accepts all of SCR's.
enum class Use {
  now,
  later,  ///< of SCR: accepted without effect in this version
  never   ///< of SCR: accepted without effect, as Cairn does not need it
};

/// Ways in which an option is special; most have none.
struct Flags {
  Use use = Use::now;
  bool not_by_app = false;    ///< SCR_Config cannot set it
  bool not_in_files = false;  ///< too late in a file, or a matter of each process
  bool per_rank = false;      ///< each process reads its own environment
  bool secret = false;        ///< never shown
};

struct Option {
  std::string_view key;
  Rule rule;
  std::string_view unit;          ///< "s", "bytes", "%", or empty
  std::string_view default_text;  ///< empty where resolve() works the default out, or there is none
  std::string_view help;
  Flags flags = {};
  /// Null where no field of Settings holds it: descriptors take it as the default of a leaf, or it
  /// has no effect.
  void (*set)(Settings&, const Value&) = nullptr;
};

std::span<const Option> options();

/// Null if there is none.
const Option* find_option(std::string_view key);

/// A child of a STORE= or CKPT= line. Without one, the value of option `from` or else
/// `default_text` holds.
template <class Descriptor>
struct Leaf {
  std::string_view key;
  Rule rule;
  std::string_view from;
  std::string_view default_text;
  std::string_view help;
  void (*set)(Descriptor&, const Value&);  ///< null: accepted, not used yet
};

/// Of a CACHEDIR= or CNTLDIR= line. Job control reads it, the library does not.
struct FolderNeeds {
  std::uint64_t bytes = 0;
};

std::span<const Leaf<StoreSettings>> store_leaves();
std::span<const Leaf<CheckpointSettings>> checkpoint_leaves();
std::span<const Leaf<FolderNeeds>> folder_leaves();

/// A key that begins a descriptor line; `rule` is for the value that names the descriptor.
struct DescriptorKey {
  std::string_view key;
  Rule rule;
  bool unused = false;
  bool not_by_app = false;
};

std::span<const DescriptorKey> descriptor_keys();

/// Null if there is none.
const DescriptorKey* find_descriptor_key(std::string_view key);

/// Every key that may begin a line.
std::span<const std::string_view> known_keys();

/// The candidate at the smallest edit distance; "" if none is near.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

/// "; did you mean KEY?" with the nearest candidate, or, if none is near, where all are listed.
std::string did_you_mean(std::string_view key, std::span<const std::string_view> candidates);

}  // namespace cairn
