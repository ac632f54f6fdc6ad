#include "support/scr_job_bed.hpp"

namespace cairn {

std::map<std::string, std::string> ScrJobBed::left_by_scr() const {
  auto found = contents_below(settings.prefix);
  std::erase_if(found, [](const auto& file) { return file.first.starts_with(".cairn"); });
  return found;
}

std::string expected(int dataset, int rank) {
  return ScrPrefix::content_of(static_cast<std::uint64_t>(dataset), static_cast<std::size_t>(rank));
}

int restart_from_scr(JobRank& rank) {
  const auto name = rank.session->have_restart();
  EXPECT_TRUE(name) << name.error().text;
  if (!name || !*name) return 0;
  EXPECT_TRUE(rank.session->start_restart());
  const int dataset = std::stoi((*name)->substr(5));
  const auto path = rank.session->route_file(
      fmt::format("{}/ckpt.{}/rank_{}", rank.settings.prefix, dataset, rank.number()));
  EXPECT_TRUE(path) << path.error().text;
  if (path) {
    EXPECT_EQ(read_all(*path), expected(dataset, rank.number()));
  }
  EXPECT_TRUE(rank.session->complete_restart(true));
  return dataset;
}

int ScrJobBed::restart_from_scr() {
  return agreed(four_nodes(), [](JobRank& rank) { return cairn::restart_from_scr(rank); });
}

}  // namespace cairn
