#include "operator/kubelet/volume_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace ringmaster::kubelet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class VolumeFileTest : public testing::Test {
 protected:
  std::string Error(const std::string& path, const std::string& bytes = "x") {
    const auto wrote = WriteVolumeFile(dir_, path, bytes);
    return wrote ? "" : wrote.error();
  }
  const support::TempDir temp_;
  const fs::path dir_ = temp_.path() / "volume";
};

TEST_F(VolumeFileTest, FoldersOnTheWayAreMadeAndTheFileIsItsOwnersAlone) {
  EXPECT_EQ(Error("conf/settings.yaml", "a: 1\n"), "");
  std::ifstream in(dir_ / "conf/settings.yaml");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "a: 1\n");
  EXPECT_EQ(fs::status(dir_ / "conf/settings.yaml").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(VolumeFileTest, APathOutOfTheVolumeIsRefused) {
  for (const char* path : {"../escaped.txt", "a/../../escaped.txt", "..", "/tmp/escaped.txt", ""})
    EXPECT_THAT(Error(path), HasSubstr("is not below the volume")) << path;
  EXPECT_FALSE(fs::exists(temp_.path() / "escaped.txt"));
  EXPECT_EQ(Error("..data"), "");
}

TEST_F(VolumeFileTest, AFileWhereAFolderMustBeAndANameThatIsTooLongAreErrors) {
  EXPECT_EQ(Error("settings"), "");
  EXPECT_THAT(Error("settings/extra.yaml"), HasSubstr("settings/extra.yaml can't be written"));
  EXPECT_THAT(Error(std::string(300, 'x')), HasSubstr("can't be written"));
}

TEST_F(VolumeFileTest, AFullDiskIsAnError) {
  fs::create_directory(dir_);
  fs::create_symlink("/dev/full", dir_ / "file");
  EXPECT_THAT(Error("file"), HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace ringmaster::kubelet
