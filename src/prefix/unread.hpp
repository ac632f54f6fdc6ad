// What a dataset whose record cannot be read now forbids: the only place that decides it.
#pragma once

#include <string>
#include <vector>

#include "prefix/contents.hpp"

namespace cairn {

/// What is about to be done, or to be found out, where other datasets matter. Of each of these
/// unread.cpp has a row: which unread datasets forbid it, and what is unknown because of them.
enum class UnreadMatters {
  restart,       ///< take the checkpoint `subject`
  begin,         ///< begin a dataset, which will be the newest
  give_names,    ///< give files of the dataset `subject` their names, or write them again
  add_files,     ///< make files of the program a dataset
  remove_files,  ///< remove the files of a dataset
  purge,         ///< delete all datasets
  find,          ///< say that there is no dataset of a name
  choose,        ///< take `subject` for the newest of its name
  drop_newer,    ///< drop all that is newer than `subject`
  import_scr,    ///< make SCR's dataset `subject` one of Cairn's
  list,          ///< write down all datasets that there are
};
inline constexpr std::size_t unread_matters = 11;

/// What a message names.
struct UnreadSubject {
  Uuid uuid = {};           ///< zeros: the oldest that could be
  std::string name = {};    ///< of the dataset
  std::string prefix = {};  ///< the prefix directory
};

/// The newest that forbids it; null if none does.
const UnreadDataset* forbidding(UnreadMatters what, const std::vector<UnreadDataset>& unread,
                                const Uuid& subject = {});

/// Fails with io if one of these forbids it: "it is unknown ...".
Status check_unread(UnreadMatters what, const std::vector<UnreadDataset>& unread,
                    const UnreadSubject& subject = {});

}  // namespace cairn
