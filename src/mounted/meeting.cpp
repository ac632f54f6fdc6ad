#include "mounted/meeting.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

namespace cairn {
namespace {

constexpr std::chrono::milliseconds between_looks(20);
constexpr const char* nothing_seen = "-";

/// What the file of a node says.
struct Card {
  std::string id;                 ///< random, of the process
  std::vector<std::string> seen;  ///< for each node the id that this one has seen, or nothing_seen
  std::string content;            ///< hexadecimal
};

std::string hexadecimal(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::optional<Blob> from_hexadecimal(const std::string& text) {
  Blob bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const std::string digits = text.substr(at, 2);
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
    bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
  }
  return bytes;
}

std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// One exchange after the other; each has files of its own.
class Exchanges {
 public:
  explicit Exchanges(Meeting meeting) : meeting_(std::move(meeting)), id_(new_id()) {}

  Result<std::vector<Blob>> next(Bytes mine) {
    ++round_;
    std::error_code failed;
    std::filesystem::create_directories(meeting_.directory, failed);
    Card card{id_, std::vector<std::string>(meeting_.nodes.size(), nothing_seen),
              hexadecimal(mine)};
    CAIRN_TRY(write(card));
    const auto deadline = std::chrono::steady_clock::now() + meeting_.patience;
    for (;;) {
      const auto cards = read_all();
      CAIRN_TRY(acknowledge(cards, card));
      const std::size_t missing = first_missing(cards);
      if (missing == meeting_.nodes.size()) return contents(cards, mine.size());
      if (std::chrono::steady_clock::now() > deadline) return late(missing);
      std::this_thread::sleep_for(between_looks);
    }
  }

 private:
  std::string path_of(std::size_t node) const {
    return fmt::format("{}/{}.{}", meeting_.directory, round_, node);
  }

  Status write(const Card& card) const {
    const std::string path = path_of(meeting_.mine);
    const std::string unfinished = path + "." + id_;
    std::error_code failed;
    {
      std::ofstream out(unfinished);
      out << card.id;
      for (const std::string& id : card.seen) out << ' ' << id;
      out << '\n' << card.content << "\nend\n";
      if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
    }
    if (!failed) std::filesystem::rename(unfinished, path, failed);
    if (failed)
      return fail(Code::io, "cannot write {}, by which the mounts of other nodes find this one: {}",
                  path, failed.message());
    return {};
  }

  std::optional<Card> read(std::size_t node) const {
    std::ifstream in(path_of(node));
    std::string ids;
    std::string end;
    Card card;
    if (!std::getline(in, ids) || !std::getline(in, card.content) || !std::getline(in, end) ||
        end != "end")
      return {};
    std::istringstream words(ids);
    words >> card.id;
    for (std::string id; words >> id;) card.seen.push_back(id);
    if (card.seen.size() != meeting_.nodes.size()) return {};
    return card;
  }

  std::vector<std::optional<Card>> read_all() const {
    std::vector<std::optional<Card>> cards;
    for (std::size_t node = 0; node < meeting_.nodes.size(); ++node) cards.push_back(read(node));
    return cards;
  }

  /// The others know by this that their files were seen.
  Status acknowledge(const std::vector<std::optional<Card>>& cards, Card& card) const {
    const std::vector<std::string> before = card.seen;
    for (std::size_t node = 0; node < cards.size(); ++node)
      if (cards[node]) card.seen[node] = cards[node]->id;
    return card.seen == before ? Status{} : write(card);
  }

  /// A file is of this meeting if its process has seen ours. The number of nodes if all are there.
  std::size_t first_missing(const std::vector<std::optional<Card>>& cards) const {
    std::size_t node = 0;
    while (node < cards.size() && cards[node] && cards[node]->seen[meeting_.mine] == id_) ++node;
    return node;
  }

  Result<std::vector<Blob>> contents(const std::vector<std::optional<Card>>& cards,
                                     std::size_t size) const {
    std::vector<Blob> all;
    for (const auto& card : cards) {
      auto content = from_hexadecimal(card->content);
      if (!content || content->size() != size)
        return fail(Code::corrupt,
                    "a file in {} is damaged; remove the directory, and mount on all nodes again",
                    meeting_.directory);
      all.push_back(*std::move(content));
    }
    return all;
  }

  Result<std::vector<Blob>> late(std::size_t missing) const {
    return fail(Code::io,
                "{} does not answer: nothing of it came to {} within {} s. Mount on all nodes at "
                "the same time, with the same --nodes",
                meeting_.nodes[missing], meeting_.directory, meeting_.patience.count() / 1000);
  }

  const Meeting meeting_;
  const std::string id_;
  int round_ = 0;
};

}  // namespace

PeerNetwork::Exchange exchange_of(const Meeting& meeting) {
  return [exchanges = std::make_shared<Exchanges>(meeting)](Bytes mine) {
    return exchanges->next(mine);
  };
}

void leave(const Meeting& meeting) {
  std::error_code ignored;
  for (int round = 1; std::filesystem::remove(
           fmt::format("{}/{}.{}", meeting.directory, round, meeting.mine), ignored);
       ++round)
    continue;
  std::filesystem::remove(meeting.directory, ignored);  // fails as long as there are others
}

}  // namespace cairn
