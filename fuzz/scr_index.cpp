// The records that SCR 3 has left in a prefix directory: read and imported as SCR_Init and cairn
// index import do.
#include "prefix/scr_import.hpp"

#include <algorithm>
#include <array>

#include "comm/team.hpp"
#include "decoder.hpp"
#include "files/background.hpp"
#include "files/clock.hpp"
#include "memory_files.hpp"
#include "records/key_tree.hpp"
#include "records/key_tree_writer.hpp"
#include "records/rank_record.hpp"

namespace cairn::fuzz {
namespace {

using namespace std::string_literals;

/// Between the content of the four files in an input.
constexpr char between = '|';
constexpr std::array<const char*, 4> names = {"index.scr", "scr.dataset.1/summary.scr",
                                              "scr.dataset.1/rank2file",
                                              "scr.dataset.1/rank2file.0.0"};

void check_tree(Bytes input) {
  const auto tree = decode_key_tree(input);
  if (!tree) return;
  for (const bool with_checksum : {true, false})
    expect(decode_key_tree(KeyTreeWriter::file(*tree, with_checksum)) == *tree,
           "what was decoded is decoded again");
}

/// No fuzzer guesses lengths and checksums: the input has the trees without header.
Blob file_of(std::string_view packed) {
  Blob header = KeyTreeWriter::file({}, false);
  header.resize(20);
  const std::uint64_t size = header.size() + packed.size();
  for (int i = 0; i < 8; ++i) header[15 - i] = static_cast<std::byte>(size >> (8 * i));
  const Blob body = blob_of(packed);
  header.insert(header.end(), body.begin(), body.end());
  return header;
}

void check_dataset(const ScrDataset& dataset) {
  if (!dataset.trouble.empty()) return;
  expect(dataset.id != 0 && dataset.created_us > 0 && !dataset.ranks.empty(), "it is told whole");
  for (const auto& of_rank : dataset.ranks)
    for (const ScrFile& file : of_rank) expect(is_safe_name(file.name), "names lead nowhere else");
}

/// What SCR left: its records, and the file of its dataset.
std::vector<Blob> left_by_scr(Files& files) {
  std::vector<Blob> all;
  for (const std::string& name : {"/p/x"s, "/p/.scr/"s + names[0], "/p/.scr/"s + names[1],
                                  "/p/.scr/"s + names[2], "/p/.scr/"s + names[3]})
    all.push_back(read_file(files, name, 1 << 20).value_or(Blob{}));
  return all;
}

/// As ScrImports does, one after the other.
void import_all(Communicator& alone, const Site& site, ScrIndex& index) {
  for (const DatasetRecord& unknown : unknown_of_scr(index, site.keeper->known().listing, {})) {
    const auto found =
        std::find_if(index.datasets.begin(), index.datasets.end(),
                     [&](const auto& one) { return one.uuid() == unknown.info.uuid; });
    expect(found != index.datasets.end(), "what is unknown is in SCR's index");
    const auto number = static_cast<std::size_t>(found - index.datasets.begin());
    const auto imported = import_dataset(alone, site, &index, number, {"node", 1U << 18});
    if (!imported) continue;
    expect(found->trouble.empty() && imported->settled, "only what is whole is imported");
    expect(find_in(site.keeper->known().listing, unknown.info.uuid) != nullptr, "and it is listed");
  }
}

void check_import(Files& files, ScrIndex index) {
  const auto before = left_by_scr(files);
  const auto clock = make_system_clock();
  const auto background = make_foreground();
  auto keeper = Keeper::take_over(files, *clock, {"/p"}, {}, Claim::forced);
  expect(keeper.has_value(), "the directory can be owned");
  Team(1).run([&](Communicator& alone) {
    const Site site{files,  *clock,           {"/p"},  keeper->epoch_folder().epoch(), 1, true,
                    {1, 0}, {*background, 1}, &*keeper};
    import_all(alone, site, index);
  });
  expect(left_by_scr(files) == before, "what SCR left stays as it is");
}

Blob packed(const KeyTree& tree) {
  const Blob file = KeyTreeWriter::file(tree, false);
  return {file.begin() + 20, file.end()};
}

}  // namespace

void check(Bytes input) {
  check_tree(input);
  const auto volume = std::make_shared<sim::Volume>(sim::Volume::Medium::memory);
  const auto files = sim::make_memory_files({{"/p", volume}}, [] { return 0; });
  expect(make_folders(*files, "/p/.scr/scr.dataset.1", 0700).has_value(), "a folder can be made");
  const std::vector<std::string_view> parts = split(text_of(input), between);
  for (std::size_t i = 0; i < std::min(parts.size(), names.size()); ++i) {
    check_tree(file_of(parts[i]));
    expect(
        write_file_atomically(*files, std::string("/p/.scr/") + names[i], file_of(parts[i]), false)
            .has_value(),
        "files can be written");
  }
  expect(write_file_atomically(*files, "/p/x", blob_of("nine bits"), false).has_value(),
         "files can be written");
  auto index = read_scr_index(*files, "/p");
  if (!index) return;
  check_import(*files, *index);
  for (ScrDataset& dataset : index->datasets) {
    const Uuid uuid = dataset.trouble.empty() ? dataset.uuid() : Uuid{};
    read_scr_details(*files, "/p", dataset);
    check_dataset(dataset);
    if (!dataset.trouble.empty()) continue;
    expect(uuid == dataset.uuid(), "the details do not make it another dataset");
    (void)first_missing(*files, "/p", dataset);
  }
}

std::vector<Blob> seeds() {
  const KeyTree facts{
      "DSET",
      {key_value("ID", "1"), key_value("NAME", "a"), key_value("CREATED", "5"),
       key_value("FILES", "1"), key_value("SIZE", "9"), key_value("CKPT", "1"),
       key_value("FLAG_CKPT", "1"), key_value("FLAG_OUTPUT", "1"), key_value("JOBID", "7")}};
  const KeyTree entry{"1", {facts, key_value("COMPLETE", "1"), key_value("FAILED", "t")}};
  const KeyTree index{"",
                      {key_value("VERSION", "2"),
                       key_value("CURRENT", "a"),
                       {"NAME", {{"a", {key_value("DSET", "1")}}}},
                       {"DSET", {entry}}}};
  const KeyTree summary{"", {key_value("VERSION", "6"), key_value("COMPLETE", "1"), facts}};
  const KeyTree file{"x", {key_value("SIZE", "9"), key_value("CRC", "0xab0b200e")}};
  const KeyTree leaf{
      "",
      {key_value("LEVEL", "0"), key_value("RANKS", "1"), {"RANK", {{"0", {{"FILE", {file}}}}}}}};
  const KeyTree root{"",
                     {key_value("LEVEL", "1"),
                      key_value("RANKS", "1"),
                      {"RANK", {{"0", {key_value("OFFSET", "0"), key_value("FILE", ".0.0")}}}}}};
  const auto joined = [](const std::vector<KeyTree>& trees) {
    Blob all;
    for (const KeyTree& tree : trees) {
      if (!all.empty()) all.push_back(static_cast<std::byte>(between));
      const Blob one = packed(tree);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  return {joined({index, summary, leaf}), joined({index, summary, root, leaf}),
          KeyTreeWriter::file(index), KeyTreeWriter::file(leaf, false)};
}

}  // namespace cairn::fuzz
