#include "operator/inspection/sidecar_token.h"

#include <gtest/gtest.h>

#include "common/ring_key/ring_key.h"
#include "operator/kube/base64.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::inspection {
namespace {

TEST(SidecarTokenTest, IsMadeOfTheKeyInTheRunDirectory) {
  const support::TempDir directory;
  const std::filesystem::path& run_dir = directory.path();
  EXPECT_EQ(SidecarTokenOfRun(run_dir).value(), "") << "a run without a key";
  const std::string key = ring_key::MakeRandom();
  ASSERT_TRUE(ring_key::WriteFile(run_dir / "ring.key", key));
  EXPECT_EQ(SidecarTokenOfRun(run_dir).value(), ring_key::MakeToken(key));
}

TEST(SidecarTokenTest, IsMadeOfTheKeyInTheJobsSecret) {
  local::InMemoryApi api(std::make_shared<local::Store>(local::StoreOptions{}));
  const auto token_with = [&api](const std::string& job, const kube::Json& data) {
    const auto made = api.Create(kube::Secrets(), "default",
                                 {{"apiVersion", "v1"},
                                  {"kind", "Secret"},
                                  {"metadata", {{"name", job + "-tls"}}},
                                  {"data", data}});
    EXPECT_TRUE(made) << made.error().message;
    return SidecarTokenOfJob(&api, "default", job);
  };
  EXPECT_EQ(SidecarTokenOfJob(&api, "default", "none").value().token, "")
      << "--tls=false: no Secret";
  EXPECT_EQ(token_with("old", kube::Json::object()).value().token, "");
  const std::string key = ring_key::MakeRandom();
  const auto made = token_with("new", {{"ring.key", kube::EncodeBase64(key)}});
  EXPECT_EQ(made.value().token, ring_key::MakeToken(key));
  EXPECT_EQ(made.value().job_uid, "") << "it has no owner";
  const auto broken = token_with("broken", {{"ring.key", kube::EncodeBase64("short")}});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message,
            "Secret default/broken-tls: ring.key has 5 bytes, 32 are expected");
}

}  // namespace
}  // namespace ringmaster::inspection
