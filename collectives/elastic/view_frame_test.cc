#include "collectives/elastic/view_frame.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::elastic {
namespace {

using Json = nlohmann::json;

Json TwoRanks() {
  return {{"epoch", 7},
          {"parent", 6},
          {"reason", "WorkerJoined"},
          {"train", false},
          {"planned", true},
          {"pods", {{{"uid", "u0"}, {"name", "p-0"}}, {{"uid", "u1"}, {"name", "p-1"}}}},
          {"ranks",
           {{{"pod", 1}, {"slot", 0}, {"incarnation", 3}, {"tcp", "1.2.3.4:5"}, {"joined", false}},
            {{"pod", 0}, {"slot", 2}, {"incarnation", 1}, {"shm", "name"}, {"joined", true}}}}};
}

TEST(ViewFrameTest, TheEngineGetsRanksTheirPodsAndTheirProcesses) {
  engine::WorkerView view;
  ASSERT_TRUE(ParseView(TwoRanks(), 0, &view).ok());
  EXPECT_EQ(view.epoch, 7u);
  EXPECT_EQ(view.parent, 6u);
  EXPECT_EQ(view.reason, "WorkerJoined");
  EXPECT_FALSE(view.train);
  EXPECT_TRUE(view.planned);
  EXPECT_TRUE(view.holds) << "rank 0 has not joined by this view";
  ASSERT_EQ(view.size(), 2);
  EXPECT_EQ(view.peers[0].tcp, "1.2.3.4:5");
  EXPECT_EQ(view.peers[0].pod, 1);
  EXPECT_EQ(view.peers[1].shm, "name");
  EXPECT_EQ(view.workers[0], "worker 0 of pod p-1 (u1, start 3)");
  EXPECT_EQ(view.workers[1], "worker 2 of pod p-0 (u0, start 1)");
  ASSERT_TRUE(ParseView(TwoRanks(), 1, &view).ok());
  EXPECT_FALSE(view.holds);
}

TEST(ViewFrameTest, AnErrorNamesTheFieldThatIsWrong) {
  const struct {
    const char* pointer;
    Json value;
    const char* named;
  } cases[] = {{"/epoch", "seven", "view.epoch"},
               {"/epoch", 0, "epoch is 0"},
               {"/reason", 3, "view.reason"},
               {"/train", "yes", "view.train"},
               {"/pods", 3, "view.pods"},
               {"/pods/1/name", 3, "view.pods[1].name"},
               {"/ranks", nullptr, "view.ranks"},
               {"/ranks/1", "p0", "view.ranks[1]"},
               {"/ranks/0/pod", 2, "view.ranks[0].pod"},
               {"/ranks/0/pod", -1, "view.ranks[0].pod"},
               {"/ranks/1/tcp", 80, "view.ranks[1].tcp"}};
  for (const auto& wrong : cases) {
    Json json = TwoRanks();
    json[Json::json_pointer(wrong.pointer)] = wrong.value;
    engine::WorkerView view;
    const Status status = ParseView(json, 0, &view);
    EXPECT_EQ(status.code(), RM_ERR_INVALID) << wrong.pointer;
    EXPECT_NE(status.message().find(wrong.named), std::string::npos) << status.message();
  }
}

TEST(ViewFrameTest, AWorkerCantBeARankThatTheViewDoesNotHave) {
  engine::WorkerView view;
  EXPECT_EQ(ParseView(TwoRanks(), 2, &view).code(), RM_ERR_INVALID);
  EXPECT_TRUE(ParseView(TwoRanks(), -1, &view).ok()) << "it is not in the view";
  EXPECT_FALSE(view.holds);
}

}  // namespace
}  // namespace ringmaster::elastic
