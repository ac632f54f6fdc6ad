#include "mounted/meeting.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace cairn {
namespace {

class Meetings : public testing::Test {
 protected:
  Meetings()
      : directory_(std::filesystem::temp_directory_path() /
                   ("cairn-meeting-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(directory_);
  }
  ~Meetings() override { std::filesystem::remove_all(directory_); }
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  Meeting meeting_of(std::size_t mine) const {
    Meeting meeting;
    meeting.directory = directory_ / "mounts";
    meeting.nodes = {"n0", "n1", "n2"};
    meeting.mine = mine;
    return meeting;
  }
  void on_all(const std::function<void(std::size_t)>& node_main) const {
    std::vector<std::thread> threads;
    for (std::size_t node = 0; node < 3; ++node) threads.emplace_back(node_main, node);
    for (std::thread& thread : threads) thread.join();
  }

  const std::filesystem::path directory_;
};

Blob blob_of(const std::string& text) {
  Blob blob;
  for (const char letter : text) blob.push_back(static_cast<std::byte>(letter));
  return blob;
}

/// The text that a node gives in a round.
std::string text_of(std::size_t node, int round) {
  return "node " + std::to_string(node) + " round " + std::to_string(round);
}

void expect_all(const PeerNetwork::Exchange& exchange, std::size_t node, int round) {
  const auto all = exchange(blob_of(text_of(node, round)));
  ASSERT_TRUE(all) << all.error().text;
  ASSERT_EQ(all->size(), 3U);
  for (std::size_t each = 0; each < 3; ++each)
    EXPECT_EQ((*all)[each], blob_of(text_of(each, round)));
}

TEST_F(Meetings, GiveEachNodeTheBytesOfAllInTheirOrder) {
  on_all([&](std::size_t node) {
    const auto exchange = exchange_of(meeting_of(node));
    for (int round = 1; round < 4; ++round) expect_all(exchange, node, round);
  });
  EXPECT_TRUE(std::filesystem::exists(directory_ / "mounts/3.2"));
  for (std::size_t node = 0; node < 3; ++node) leave(meeting_of(node));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "mounts"));
}

TEST_F(Meetings, TakeNoFilesOfAnEarlierMeeting) {
  on_all([&](std::size_t node) { expect_all(exchange_of(meeting_of(node)), node, 7); });
  // The last node comes so late that the others would have taken its old file.
  on_all([&](std::size_t node) {
    std::this_thread::sleep_for(std::chrono::milliseconds(node * 100));
    expect_all(exchange_of(meeting_of(node)), node, 8);
  });
}

TEST_F(Meetings, NameTheNodeThatDoesNotCome) {
  std::thread other([&] {
    Meeting meeting = meeting_of(1);
    meeting.patience = std::chrono::milliseconds(300);
    EXPECT_FALSE(exchange_of(meeting)(blob_of("x")));
  });
  Meeting meeting = meeting_of(0);
  meeting.patience = std::chrono::milliseconds(300);
  const auto all = exchange_of(meeting)(blob_of("x"));
  other.join();
  ASSERT_FALSE(all);
  EXPECT_TRUE(all.error().text.starts_with("n2 does not answer")) << all.error().text;
}

}  // namespace
}  // namespace cairn
