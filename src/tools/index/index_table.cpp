#include "tools/index/index_table.hpp"

#include <algorithm>
#include <array>

#include "base/colour.hpp"
#include "base/count.hpp"
#include "base/units.hpp"
#include "records/state_words.hpp"
#include "tools/record_json.hpp"

namespace cairn {
namespace {

enum Column { mark, number, kind, state, size, files, ranks, flushed, name, all_columns };
using Row = std::array<std::string, all_columns>;

constexpr std::size_t narrowest_name = 12;
constexpr std::string_view cut_mark = "...";

bool is_right(int column) {
  return column == number || column == size || column == files || column == ranks;
}

/// In the middle of a character of UTF-8.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

/// Names of neighbours differ at their ends.
std::string without_beginning(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t from = text.size() - (width - cut_mark.size());
  while (from < text.size() && continues(text[from])) ++from;
  return std::string(cut_mark) + text.substr(from);
}

std::string without_end(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t to = width - cut_mark.size();
  while (to > 0 && continues(text[to])) --to;
  return text.substr(0, to) + std::string(cut_mark);
}

/// To the minute.
std::string short_time(std::int64_t time_us) {
  std::string text = time_text(time_us);
  if (const auto day_ends = text.find('T'); day_ends != std::string::npos) {
    text[day_ends] = ' ';
    text.resize(text.rfind(':'));
  }
  return text;
}

Row row_of(const DatasetRecord& record) {
  return {"",
          std::to_string(record.info.number),
          std::string(kind_of(record.info)),
          std::string(word_for(record)),
          format_bytes(record.bytes),
          std::to_string(record.files),
          std::to_string(record.info.ranks),
          short_time(record.flushed_us),
          printable(record.info.name)};
}

/// With the heads of the columns before them. By threads: there may be ten thousand.
std::vector<Row> rows_of(const Listing& listing) {
  constexpr std::size_t at_a_time = 512;
  constexpr int threads = 2;
  std::vector<Row> rows(listing.size() + 1);
  rows[0] = {"", "DSET", "KIND", "STATE", "SIZE", "FILES", "RANKS", "FLUSHED", "NAME"};
  const auto background = make_background_thread();
  const std::size_t pieces = (listing.size() + at_a_time - 1) / at_a_time;
  (void)IoThreads{*background, threads}.each(pieces, [&](std::size_t piece) -> Status {
    const std::size_t end = std::min(listing.size(), (piece + 1) * at_a_time);
    for (std::size_t i = piece * at_a_time; i < end; ++i) rows[i + 1] = row_of(listing[i]);
    return {};
  });
  return rows;
}

void add_line(std::string& table, const Row& row,
              const std::array<std::size_t, all_columns>& widths, std::optional<Colour> colour) {
  for (int column = 0; column < name; ++column) {
    const std::string& cell = row[static_cast<std::size_t>(column)];
    const std::size_t fill = widths[static_cast<std::size_t>(column)] - cell.size();
    table.append(is_right(column) ? fill : 0, ' ');
    table.append(colour && column == state ? coloured(cell, *colour) : cell);
    table.append(is_right(column) ? 1 : fill + 1, ' ');
  }
  table.append(row[name]).append("\n");
}

std::string state_text(const DatasetRecord& record) {
  using enum PrefixState;
  const std::string_view in_quarantine = words_of(quarantined).word;
  std::string text = record.quarantined
                         ? fmt::format("{}: no restart uses it", in_quarantine)
                         : fmt::format("{}; --check reads its files", words_of(settled).word);
  const auto add = [&](const std::string& trouble) {
    text = record.quarantined ? fmt::format("{}; {}", in_quarantine, trouble) : trouble;
  };
  if (!record.replaced_by.empty())
    add(fmt::format("{}: {}", words_of(replaced).word,
                    cause_of_replacement(printable(record.replaced_by))));
  if (record.failed_us != 0)
    add(fmt::format("{} {}: {}", words_of(failed).word, time_text(record.failed_us),
                    printable(record.failure)));
  if (!record.settled) text += "; some files still have a temporary name";
  return text;
}

}  // namespace

std::string dataset_table(const Listing& listing, const DatasetRecord* starred, std::size_t columns,
                          bool has_colour) {
  std::vector<Row> rows = rows_of(listing);
  if (starred != nullptr) rows[static_cast<std::size_t>(starred - listing.data()) + 1][mark] = "*";
  std::array<std::size_t, all_columns> widths{1};
  for (const Row& row : rows)
    for (std::size_t column = 0; column < all_columns; ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::size_t before_name = 0;
  for (std::size_t column = 0; column < name; ++column) before_name += widths[column] + 1;
  const std::size_t room = std::max(columns, before_name + narrowest_name) - before_name;
  std::string table;
  table.reserve(rows.size() * (before_name + narrowest_name));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i][name] = without_beginning(rows[i][name], room);
    const bool is_coloured = has_colour && i > 0;
    add_line(table, rows[i], widths,
             is_coloured ? words_of(state_of(listing[i - 1])).colour : std::nullopt);
    if (i > 0 && !listing[i - 1].replaced_by.empty())
      table +=
          without_end("    replaced by " + printable(listing[i - 1].replaced_by), columns) + "\n";
    if (i > 0 && listing[i - 1].failed_us != 0)
      table += without_end("    failed: " + printable(listing[i - 1].failure), columns) + "\n";
  }
  return table;
}

std::string dataset_text(const DatasetRecord& record, bool is_current, bool is_dropped) {
  std::string text;
  const auto line = [&](std::string_view field, const std::string& value) {
    text += fmt::format("{:<10}{}\n", field, value);
  };
  const DatasetInfo& info = record.info;
  line("name", printable(info.name) + (is_current ? " (current)" : ""));
  line("number", fmt::format("{}", info.number));
  line("uuid", text_of(info.uuid));
  line("kind", info.checkpoint == 0
                   ? std::string(kind_of(info))
                   : fmt::format("{}, number {} of its kind", kind_of(info), info.checkpoint));
  line("state", is_dropped ? "dropped: cairn index add puts it back" : state_text(record));
  line("size", fmt::format("{} ({}) in {}", format_bytes(record.bytes),
                           count_text(record.bytes, "byte"), count_text(record.files, "file")));
  line("ranks", fmt::format("{}", info.ranks));
  if (info.in_place())
    line("written", info.was_found() ? "in place, written without Cairn; added or imported"
                                     : "in place, without the cache");
  line("job", printable(record.job_id));
  line("begun", time_text(info.uuid.time_us));
  line("flushed", time_text(record.flushed_us));
  line("fetched", time_text(record.fetched_us));
  line("attempts", fmt::format("{} to restart since the last success", record.attempts));
  return text;
}

}  // namespace cairn
