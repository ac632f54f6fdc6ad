// What `cairn help TOPIC` says beside the help of the commands.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

inline constexpr std::string_view common_exit_codes =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 75 try again later. Some commands have others: "
    "\"cairn help exit-codes\".";

struct HelpTopic {
  std::string_view name;
  std::string_view title;
  std::string_view text;
};

/// In the order of the list.
std::span<const HelpTopic> help_topics();

/// The whole answer; nullopt if there is no such topic.
std::optional<std::string> help_of_topic(std::string_view name);

}  // namespace cairn
