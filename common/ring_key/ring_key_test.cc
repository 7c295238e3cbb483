#include "common/ring_key/ring_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace ringmaster::ring_key {
namespace {

namespace fs = std::filesystem;

class RingKeyFile : public testing::Test {
 protected:
  support::TempDir temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST(RingKeys, DifferAndAreDerivedAlike) {
  EXPECT_EQ(MakeRandom().size(), kBytes);
  EXPECT_NE(MakeRandom(), MakeRandom());
  EXPECT_EQ(Derive("secret", "uid").size(), kBytes);
  EXPECT_EQ(Derive("secret", "uid"), Derive("secret", "uid"));
  EXPECT_NE(Derive("secret", "uid"), Derive("secret", "other"));
  EXPECT_NE(Derive("secret", "uid"), Derive("other", "uid"));
}

TEST(RingKeys, GiveATokenThatIsNotTheKey) {
  const std::string key(kBytes, 'k');
  const std::string token = MakeToken(key);
  // printf 'ringmaster token of sidecars' | openssl dgst -sha256 -hmac
  // kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
  EXPECT_EQ(token, "dd301b09c694a7ec18c5d512d03fd00b5c5f186409bc1b52ce12c2d09c6b7aac");
  EXPECT_TRUE(IsToken(key, token));
  for (const std::string& wrong :
       {std::string(), token.substr(1), token + "0", MakeToken(std::string(kBytes, 'l')), key}) {
    EXPECT_FALSE(IsToken(key, wrong)) << wrong;
  }
}

TEST(RingKeys, GoThroughAFrame) {
  const std::string key = MakeRandom();
  EXPECT_EQ(Decode(Encode(key)), key);
  for (const char* text :
       {"", "AAAA", "%%%", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}) {
    EXPECT_EQ(Decode(text), std::nullopt) << text;
  }
}

TEST_F(RingKeyFile, IsForItsOwnerOnlyAndReplacesWhatWasThere) {
  const fs::path path = directory_ / kFileName;
  fs::create_symlink("/dev/null", path);
  const std::string key = MakeRandom();
  const mode_t before = umask(0);
  const auto written = WriteFile(path, key);
  umask(before);
  ASSERT_TRUE(written) << written.error();
  struct stat info = {};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, S_IFREG | 0600u);
  EXPECT_EQ(*ReadFile(path), key);
}

TEST_F(RingKeyFile, OfAnotherLengthIsNamed) {
  const fs::path path = directory_ / kFileName;
  EXPECT_EQ(ReadFile(path).error(), path.string() + ": No such file or directory");
  for (size_t bytes : {size_t{0}, kBytes - 1, kBytes + 1}) {
    std::ofstream(path) << std::string(bytes, 'k');
    EXPECT_FALSE(ReadFile(path)) << bytes;
  }
}

}  // namespace
}  // namespace ringmaster::ring_key
