#include "support/job_rank.hpp"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <utility>

#include "support/file_contents.hpp"

namespace cairn {

std::size_t size_of(int rank, int file, int dataset) {
  if (rank == 3 && file == 1) return 0;
  return static_cast<std::size_t>(700 * (rank % 3) + 311 * file + 97 * dataset + 40 * rank);
}

std::string content_of(int rank, int file, int dataset) {
  std::minstd_rand random(static_cast<unsigned>(1 + rank * 100 + file * 10 + dataset * 10007));
  std::string content(size_of(rank, file, dataset), '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

Status JobRank::init() {
  if (second_comm != nullptr)
    behind = std::make_unique<WorkOfBackground>(*background, *second_comm, stop_behind.get_token());
  CAIRN_ASSIGN(session,
               Session::init({comm, *files, clock, *background, log, behind.get()}, settings));
  return {};
}

std::string JobRank::file_name(int file, int dataset) const {
  return fmt::format("{}/ckpt.{}/rank {}.{}", settings.prefix, dataset, number(), file);
}

Status JobRank::write_files(int dataset) {
  for (int file = 0; file < files_per_rank; ++file) {
    CAIRN_ASSIGN(const std::string path, session->route_file(file_name(file, dataset)));
    CAIRN_ASSIGN(const auto out, files->create(path, 0640));
    const std::string content = content_of(number(), file, dataset);
    CAIRN_TRY(out->write_at(0, std::as_bytes(std::span(content))));
  }
  return {};
}

void JobRank::expect_files(int dataset) {
  for (int file = 0; file < files_per_rank; ++file) {
    const auto path = session->route_file(file_name(file, dataset));
    ASSERT_TRUE(path) << path.error().text;
    ASSERT_TRUE(read_all(*path) == content_of(number(), file, dataset))
        << "wrong bytes in " << *path;
  }
}

Status JobRank::write(int dataset, std::uint32_t flags) {
  CAIRN_TRY(session->start_output(fmt::format("ckpt.{}", dataset), flags));
  return session->complete_output(write_files(dataset).has_value());
}

void JobRank::expect_written(int dataset, std::uint32_t flags) {
  const Status written = write(dataset, flags);
  ASSERT_TRUE(written) << written.error().text;
}

void JobRank::expect_not_copied(int dataset, std::uint32_t flags) {
  const Status written = write(dataset, flags);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::not_copied) << written.error().text;
}

void JobRank::expect_not_all_copied() {
  const Status ended = session->finalize();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
}

int JobRank::restart() {
  while (true) {
    const auto name = session->have_restart();
    if (!name) ADD_FAILURE() << name.error().text;
    if (!name || !*name) return 0;
    if (!session->start_restart()) continue;
    const int dataset = std::stoi((*name)->substr((*name)->rfind('.') + 1));
    expect_files(dataset);
    EXPECT_TRUE(session->complete_restart(true));
    return dataset;
  }
}

}  // namespace cairn
