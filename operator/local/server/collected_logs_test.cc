#include "operator/local/server/collected_logs.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "operator/kube/resources.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::local {
namespace {

class CollectedLogsTest : public ::testing::Test {
 protected:
  // Where the log goes on, as the answer says; -1: it was refused.
  int64_t Take(uint64_t at, const std::string& bytes, bool running = true, uint64_t start = 0,
               const std::string& uid = "u1", const std::string& pod = "p",
               const std::string& ns = "default") {
    const auto answer =
        logs_.Take(kubelet::ToJson({ns, pod, uid, "main", at, start, running, bytes}));
    return answer ? static_cast<int64_t>(kubelet::NextOf({{"status", *answer}})) : -1;
  }
  std::string Text() {
    std::ifstream file(dir_.path() / "p" / "main.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const support::TempDir dir_;
  const std::shared_ptr<Store> store_ = std::make_shared<Store>(StoreOptions{});
  CollectedLogs logs_{dir_.path(), store_};
};

TEST_F(CollectedLogsTest, PiecesMakeALog) {
  EXPECT_EQ(Take(0, "one\n"), 4);
  EXPECT_EQ(Take(4, "two\n"), 8);
  EXPECT_EQ(Text(), "one\ntwo\n");
}

TEST_F(CollectedLogsTest, APieceThatComesAgainIsNotWrittenAgain) {
  EXPECT_EQ(Take(0, "one\n"), 4);
  EXPECT_EQ(Take(0, "one\n"), 4);
  EXPECT_EQ(Take(9, "three\n"), 4);
  EXPECT_EQ(Text(), "one\n");
}

TEST_F(CollectedLogsTest, ALaterPodOfTheNameBeginsWhereTheOtherEnded) {
  EXPECT_EQ(Take(0, "one\n", false), 4);
  // On a node that had run the name before.
  EXPECT_EQ(Take(100, "two\n", true, 100, "u2"), 104);
  EXPECT_EQ(Text(), "one\ntwo\n");
}

TEST_F(CollectedLogsTest, PodsOfOneNameInTwoNamespacesHaveFilesOfTheirOwn) {
  EXPECT_EQ(Take(0, "one\n"), 4);
  EXPECT_EQ(Take(0, "other\n", true, 0, "u2", "p", "team"), 6);
  EXPECT_EQ(Text(), "one\n");
  std::ifstream file(dir_.path() / "team_p" / "main.log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "other\n");
}

// No file of this process grows beyond the limit, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  void (*const ignored_)(int);
  rlimit before_{};
};

TEST_F(CollectedLogsTest, APieceForWhichTheDiskHasNoRoomIsThereOnceWhenItHas) {
  EXPECT_EQ(Take(0, "one\n"), 4);
  std::vector<int64_t> answers;
  {
    const FileLimit limit(6);
    for (int i = 0; i < 3; ++i) answers.push_back(Take(4, "two\n"));
  }
  EXPECT_EQ(answers, std::vector<int64_t>(3, -1));
  EXPECT_EQ(Text(), "one\n");
  EXPECT_EQ(Take(4, "two\n"), 8);
  EXPECT_EQ(Text(), "one\ntwo\n");
}

TEST_F(CollectedLogsTest, NamesAreNoPaths) {
  EXPECT_EQ(Take(0, "x", true, 0, "u1", "p", "../n"), -1);
  EXPECT_EQ(Take(0, "x", true, 0, "u1", "../p"), -1);
  EXPECT_EQ(Take(0, "x", true, 0, "", "p"), -1);
}

TEST_F(CollectedLogsTest, ALogIsFoundWhenItsContainerHasStarted) {
  auto pod = store_->Create(kube::Pods(), "default",
                            {{"metadata", {{"name", "p"}}},
                             {"spec", {{"containers", {{{"name", "main"}, {"image", "any"}}}}}}});
  ASSERT_TRUE(pod);
  EXPECT_FALSE(logs_.Find("default", "p", ""));
  (*pod)["status"]["containerStatuses"] = {
      {{"name", "main"}, {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}}};
  ASSERT_TRUE(store_->Update(kube::Pods(), "default", "p", *pod, "status"));
  auto found = logs_.Find("default", "p", "");
  ASSERT_TRUE(found) << found.error().dump();
  EXPECT_TRUE(found->running);
  // Its process was the second: the log of now begins with it.
  const std::string uid = (*pod)["metadata"]["uid"];
  EXPECT_EQ(Take(0, "one\ntwo\n", false, 4, uid), 8);
  found = logs_.Find("default", "p", "main");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, 4u);
  EXPECT_FALSE(found->running);
}

}  // namespace
}  // namespace ringmaster::local
