#include "records/event.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/local_time.hpp"

namespace cairn {
namespace {

const EventOrigin origin = {"n0", "7"};

std::int64_t now_us() { return *parse_local_time("2026-12-24T18:00:00") * 1'000'000 + 250'000; }

Event of(const char* name) {
  Event event;
  event.name = name;
  return event;
}

TEST(Event, ALineHasAllKnownFields) {
  Event event = of("CHECKPOINT_END");
  event.note = "as \"asked\"\nfor";
  event.dataset = 12;
  event.dataset_name = "ckpt.12";
  event.seconds = 0.143;
  EXPECT_EQ(text_line(event, origin, now_us()),
            "2026-12-24T18:00:00: host=n0, jobid=7, event=CHECKPOINT_END, note=\"as "
            "\\\"asked\\\"\\nfor\", dset=12, name=\"ckpt.12\", secs=0.143000");
  EXPECT_EQ(text_line(of("START"), origin, now_us()),
            "2026-12-24T18:00:00: host=n0, jobid=7, event=START");
}

TEST(Event, ANewDatasetHasItsRedundancyScheme) {
  Event event = of("CHECKPOINT_END");
  event.to = "/dev/shm";
  event.dataset = 1;
  event.scheme = "XOR";
  event.set_size = 8;
  EXPECT_EQ(text_line(event, origin, now_us()),
            "2026-12-24T18:00:00: host=n0, jobid=7, event=CHECKPOINT_END, to=/dev/shm, dset=1, "
            "scheme=XOR, set=8");
  const auto json = nlohmann::json::parse(json_line(event, origin, now_us()));
  EXPECT_EQ(json["scheme"], "XOR");
  EXPECT_EQ(json["set_size"], 8);
  EXPECT_EQ(json["to"], "/dev/shm");
  EXPECT_FALSE(json.contains("output"));
  event.output = true;
  EXPECT_EQ(nlohmann::json::parse(json_line(event, origin, now_us()))["output"], true);
}

TEST(Event, ATransferHasItsPlacesAndBytes) {
  Event event = of("ENCODE");
  event.kind = Event::Kind::transfer;
  event.from = "/dev/shm/a\nb";
  event.to = "/dev/shm";
  event.dataset = 1;
  event.seconds = 2;
  event.bytes = 772000;
  event.files = 8;
  EXPECT_EQ(text_line(event, origin, now_us()),
            "2026-12-24T18:00:00: host=n0, jobid=7, xfer=ENCODE, from=/dev/shm/a b, to=/dev/shm, "
            "dset=1, secs=2.000000, bytes=772000, files=8, rate=386000");
}

TEST(Event, TheSameAsJson) {
  Event event = of("FLUSH_SYNC");
  event.kind = Event::Kind::transfer;
  event.dataset_name = "not \xff UTF-8";
  event.dataset = 3;
  event.bytes = std::uint64_t{1} << 60;
  const std::string line = json_line(event, origin, now_us());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"], "2026-12-24T18:00:00");
  EXPECT_EQ(json["time_us"], now_us());
  EXPECT_EQ(json["host"], "n0");
  EXPECT_EQ(json["job"], "7");
  EXPECT_EQ(json["transfer"], "FLUSH_SYNC");
  EXPECT_EQ(json["dataset"], 3);
  EXPECT_EQ(json["bytes"], std::uint64_t{1} << 60);
  EXPECT_FALSE(json.contains("event"));
  EXPECT_FALSE(json.contains("seconds"));
  EXPECT_FALSE(json.contains("rate"));
  event.seconds = 0.5;
  EXPECT_EQ(nlohmann::json::parse(json_line(event, origin, now_us()))["rate"],
            std::uint64_t{1} << 61);
}

}  // namespace
}  // namespace cairn
