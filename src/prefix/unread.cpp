#include "prefix/unread.hpp"

#include <array>
#include <string_view>

namespace cairn {
namespace {

/// Which unread datasets forbid something.
enum class Which {
  all,
  newer,                  ///< than the subject
  not_older,              ///< the subject too, whose record may be the one that cannot be read
  unsettled,              ///< their files would get their names after those of a newer dataset
  not_older_or_unsettled  ///< these have the same file names already, or will get them
};

struct Row {
  UnreadMatters what{};
  Which which{};
  std::string_view unknown;  ///< a sentence without the reason; of {name} in {prefix}
};

constexpr std::array<Row, unread_matters> rows = [] {
  using enum UnreadMatters;
  return std::array<Row, unread_matters>{{
      {restart, Which::newer, "which checkpoint comes next"},
      {begin, Which::unsettled, ""},
      {give_names, Which::not_older_or_unsettled,
       "whether newer datasets have files of the same names"},
      {add_files, Which::all, "whether these files belong to a dataset"},
      {remove_files, Which::all, "whether other datasets have files of the same names"},
      {purge, Which::all, "what SCR_PREFIX_PURGE=1 is to delete"},
      {find, Which::all, "whether there is a dataset {name} in {prefix}"},
      {choose, Which::not_older, "which dataset in {prefix} is {name}"},
      {drop_newer, Which::not_older, "what is newer than {name}"},
      {import_scr, Which::newer, "whether its files were written again for a newer dataset"},
      {list, Which::all, "which datasets there are"},
  }};
}();
static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].what != static_cast<UnreadMatters>(i)) return false;
  return true;
}());

const Row& row_of(UnreadMatters what) { return rows[static_cast<std::size_t>(what)]; }

bool forbids(Which which, const UnreadDataset& unread, const Uuid& subject) {
  switch (which) {
    case Which::all:
      return true;
    case Which::newer:
      return unread.uuid > subject;
    case Which::not_older:
      return unread.uuid >= subject;
    case Which::unsettled:
      return unread.unsettled;
    case Which::not_older_or_unsettled:
      return unread.unsettled || unread.uuid >= subject;
  }
  return true;
}

/// Its own files may still get their names, and that is why it forbids it.
bool is_too_late(Which which, const UnreadDataset& unread, const Uuid& subject) {
  return which == Which::unsettled ||
         (which == Which::not_older_or_unsettled && unread.uuid < subject);
}

}  // namespace

const UnreadDataset* forbidding(UnreadMatters what, const std::vector<UnreadDataset>& unread,
                                const Uuid& subject) {
  const UnreadDataset* newest = nullptr;
  for (const UnreadDataset& each : unread)
    if (forbids(row_of(what).which, each, subject) &&
        (newest == nullptr || newest->uuid < each.uuid))
      newest = &each;
  return newest;
}

Status check_unread(UnreadMatters what, const std::vector<UnreadDataset>& unread,
                    const UnreadSubject& subject) {
  const UnreadDataset* found = forbidding(what, unread, subject.uuid);
  if (found == nullptr) return {};
  const Row& row = row_of(what);
  if (is_too_late(row.which, *found, subject.uuid))
    return fail(Code::io,
                "files of an older dataset may still need to be renamed before those of newer "
                "ones, but its record cannot be read now: {}",
                found->why);
  return fail(Code::io, "it is unknown {}, because the record of a dataset cannot be read now: {}",
              fmt::format(fmt::runtime(row.unknown), fmt::arg("name", subject.name),
                          fmt::arg("prefix", subject.prefix)),
              found->why);
}

}  // namespace cairn
