#include "tools/rbio/rbio_extract.hpp"

#include "files/hooked_files.hpp"
#include "tools/rbio/rbio_fixture.hpp"

namespace cairn {
namespace {

TEST_F(RbioCommandTest, AFieldIsExtractedInRankOrder) {
  for (std::size_t field = 0; field < rbio::test_shapes().size(); ++field) {
    fs::remove(output());
    EXPECT_EQ(extract(rbio::test_shapes()[field].name, 9), 0) << logged();
    EXPECT_EQ(read_all(output()), written(9, field)) << rbio::test_shapes()[field].name;
  }
}

TEST_F(RbioCommandTest, WithoutAStepTheNewestWholeOneIsExtracted) {
  EXPECT_EQ(extract("momentum"), 0) << logged();
  EXPECT_EQ(read_all(output()), written(5, 1));
  EXPECT_TRUE(prints("field momentum of step 5, <f4 of shape (1234, 3), 14808 bytes")) << printed();
  fs::remove(part(5, 1));
  fs::remove(output());
  EXPECT_EQ(extract("momentum"), 0);
  EXPECT_EQ(read_all(output()), written(9, 1));
  EXPECT_TRUE(logs("step 5 is passed over: ")) << logged();
}

TEST_F(RbioCommandTest, AFileOfNumPyHasTheHeaderThatNumPyWrites) {
  RbioCommand command = extraction("momentum");
  command.raw = false;
  command.json = true;
  EXPECT_EQ(run(command), 0) << logged();
  EXPECT_EQ(json()["shape"], Json({1234, 3}));
  EXPECT_EQ(json()["bytes"], 14808);
  EXPECT_EQ(json()["step"], 5);
  EXPECT_EQ(read_all(output()), npy_header("<f4", {1234, 3}) + written(5, 1));
  const std::string header = npy_header("<f8", {7});
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(header.substr(10, 59), "{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }  ");
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(RbioCommandTest, WrongBytesAreNeverExtracted) {
  const rbio::Piece piece = index_of(part(9, 1)).entries[1].pieces[0];
  flip_bit(part(9, 1), piece.offset + piece.bytes - 1);
  std::ofstream(output()) << "before";
  RbioCommand command = extraction("density");
  command.step = 9;
  command.force = true;
  EXPECT_EQ(run(command), 1);
  EXPECT_TRUE(logs("the checksum of bytes") && logs(part(9, 1))) << logged();
  EXPECT_EQ(read_all(output()), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2)
      << "no temporary file is left";
  command.output = "-";
  EXPECT_EQ(run(command), 1);
  const std::string data = written(9, 0);
  EXPECT_LT(printed().size(), data.size());
  EXPECT_EQ(printed(), data.substr(0, printed().size()));
}

TEST_F(RbioCommandTest, AFileThatCannotBeWrittenLeavesNothing) {
  for (const std::string_view failing : {"write", "sync", "rename"}) {
    const auto full = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
      if (operation.name == failing && operation.path.starts_with(output()))
        return fail(Code::no_space, "no space");
      return {};
    });
    EXPECT_EQ(run(extraction("density"), *full), 1) << failing;
    EXPECT_TRUE(logs("no space"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
  }
}

TEST_F(RbioCommandTest, TheStandardOutputGetsTheFieldAndNothingElse) {
  RbioCommand command = extraction("phase");
  command.output = "-";
  EXPECT_EQ(run(command), 0) << logged();
  EXPECT_EQ(printed(), written(5, 3));
  command.json = true;
  EXPECT_EQ(run(command), 2);
  EXPECT_EQ(printed(), "");
}

TEST_F(RbioCommandTest, AFileIsReplacedByForceOnly) {
  std::ofstream(output()) << "before";
  EXPECT_EQ(extract("phase"), 1);
  EXPECT_TRUE(logs("exists; give another name, or --force")) << logged();
  EXPECT_EQ(read_all(output()), "before");
  RbioCommand command = extraction("phase");
  command.force = true;
  EXPECT_EQ(run(command), 0);
  EXPECT_EQ(read_all(output()), written(5, 3));
  command.output = folder_ / "link";
  fs::create_symlink(output(), command.output);
  EXPECT_EQ(run(command), 1);
  EXPECT_TRUE(logs("is no regular file")) << logged();
}

TEST_F(RbioCommandTest, AFileThatAppearsMeanwhileIsNotReplaced) {
  const auto racing = make_hooked_files(*files_, [&](const FileOperation& operation) -> Status {
    if (operation.name == "create") std::ofstream(output()) << "of another process";
    return {};
  });
  EXPECT_EQ(run(extraction("phase"), *racing), 1);
  EXPECT_EQ(read_all(output()), "of another process");
}

TEST_F(RbioCommandTest, AFieldThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_EQ(extract("pressure"), 1);
  EXPECT_TRUE(logs("has no field pressure; it has density, momentum, material, phase")) << logged();
  EXPECT_EQ(extract("density", 4), 1);
  EXPECT_TRUE(logs("has no step 4")) << logged();
}

TEST(RbioGolden, EveryReleasedFormatIsReadForEver) {
  const TemporaryFolder folder;
  const auto files = make_posix_files();
  std::ostringstream out;
  std::string logged;
  const Log log([&](Severity, const std::string& text) { logged += text + "\n"; });
  RbioCommand command;
  command.action = RbioCommand::Action::verify;
  command.path = CAIRN_GOLDEN "/rbio/v1";
  EXPECT_EQ(run_rbio_command(command, *files, out, log), 0) << out.str() << logged;
  command.action = RbioCommand::Action::extract;
  std::size_t compared = 0;
  for (const auto& expected : fs::directory_iterator(CAIRN_GOLDEN "/rbio/v1-fields")) {
    command.field = expected.path().stem();
    command.output = folder / expected.path().filename();
    ASSERT_EQ(run_rbio_command(command, *files, out, log), 0) << logged;
    std::ifstream got(command.output, std::ios::binary), want(expected.path(), std::ios::binary);
    const std::string extracted{std::istreambuf_iterator<char>(got), {}};
    const std::string wanted{std::istreambuf_iterator<char>(want), {}};
    EXPECT_TRUE(extracted == wanted) << command.field;
    ++compared;
  }
  EXPECT_EQ(compared, 13U);
}

}  // namespace
}  // namespace cairn
