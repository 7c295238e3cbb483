#include "collectives/nccl/nccl_settings.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "tests/support/temp_dir.h"

namespace ringmaster::nccl {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class NcclSettingsTest : public testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_.path(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
    return folder() / name;
  }
  static std::optional<std::string> Why(const std::map<std::string, std::string>& variables) {
    return WhyBlocking([&](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
  }

 private:
  support::TempDir temporary_;
};

TEST_F(NcclSettingsTest, TheEnvironmentMayMakeAllCommunicatorsBlocking) {
  EXPECT_THAT(Why({{"NCCL_COMM_BLOCKING", "1"}}),
              Optional(HasSubstr("NCCL_COMM_BLOCKING is 1 in the environment")));
  EXPECT_EQ(Why({{"NCCL_COMM_BLOCKING", "0"}}), std::nullopt);
  EXPECT_EQ(Why({}), std::nullopt);
}

TEST_F(NcclSettingsTest, SoMayAFileOfNccls) {
  const std::string text = "# settings\nNCCL_DEBUG=WARN\nNCCL_COMM_BLOCKING=1\n";
  const std::string named = Write("named.conf", text);
  EXPECT_THAT(Why({{"NCCL_CONF_FILE", named}}), Optional(HasSubstr("is 1 in " + named)));
  const std::string at_home = Write(".nccl.conf", text);
  EXPECT_THAT(Why({{"HOME", folder()}}), Optional(HasSubstr("is 1 in " + at_home)));
  EXPECT_EQ(Why({{"HOME", folder()}, {"NCCL_CONF_FILE", Write("empty.conf", "")}}), std::nullopt)
      << "the named file stands for the one at home";
}

TEST_F(NcclSettingsTest, TheEnvironmentGoesBeforeTheFiles) {
  const std::string named = Write("named.conf", "NCCL_COMM_BLOCKING=1\n");
  EXPECT_EQ(Why({{"NCCL_CONF_FILE", named}, {"NCCL_COMM_BLOCKING", "0"}}), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::nccl
