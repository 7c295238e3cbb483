#include "sidecar/app/launcher_peer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace ringmaster::app {
namespace {

TEST(LauncherPeerTest, ALauncherThatConnectsLaterHearsThatTheJobFinishes) {
  std::vector<nlohmann::json> sent;
  LauncherPeer launcher([&](uint64_t, const nlohmann::json& frame) { sent.push_back(frame); });
  launcher.Finish(LauncherPeer::End::kOfJob);
  EXPECT_TRUE(sent.empty()) << "no launcher is connected";
  launcher.Connected(7);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0]["t"], "finish");
  EXPECT_EQ(sent[0]["left"], false);
  launcher.Finish(LauncherPeer::End::kLeft);
  EXPECT_EQ(sent.size(), 1u) << "it has heard that";
}

TEST(LauncherPeerTest, ALauncherThatConnectsLaterHearsWhichWorkersAreFenced) {
  std::vector<nlohmann::json> sent;
  LauncherPeer launcher([&](uint64_t, const nlohmann::json& frame) { sent.push_back(frame); });
  launcher.KillFenced(WorkerProcess(1, 5));
  launcher.KillFenced(WorkerProcess(1, 5));  // it has connected once more meanwhile
  EXPECT_TRUE(sent.empty()) << "no launcher is connected";
  launcher.Connected(7);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0]["t"], "kill");
  EXPECT_EQ(sent[0]["slot"], 1);
  EXPECT_EQ(sent[0]["incarnation"], 5);
  EXPECT_EQ(sent[0]["byUs"], true);
  launcher.Closed(SteadyTime());
  launcher.Connected(8);
  EXPECT_EQ(sent.size(), 1u) << "it has heard that";
}

TEST(LauncherPeerTest, ALauncherThatConnectsLaterHearsWhatItMissed) {
  std::vector<nlohmann::json> sent;
  LauncherPeer launcher([&](uint64_t, const nlohmann::json& frame) { sent.push_back(frame); });
  launcher.Stop(5, "the grace period ends");
  launcher.Kill(WorkerProcess(0, 1), "silent");
  EXPECT_TRUE(sent.empty()) << "no launcher is connected";
  launcher.Connected(7);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0]["t"], "kill");
  EXPECT_EQ(sent[0]["incarnation"], 1);
  EXPECT_EQ(sent[0]["byUs"], false);
  EXPECT_EQ(sent[1]["t"], "stop");
  EXPECT_EQ(sent[1]["graceSeconds"], 5);
}

TEST(LauncherPeerTest, ItIsLostFromWhenItsConnectionClosesUntilTheNext) {
  LauncherPeer launcher([](uint64_t, const nlohmann::json&) {});
  EXPECT_FALSE(launcher.seen());
  launcher.Connected(7);
  EXPECT_TRUE(launcher.Is(7));
  launcher.Closed(SteadyTime(std::chrono::seconds(5)));
  EXPECT_FALSE(launcher.connected());
  EXPECT_TRUE(launcher.seen());
  EXPECT_TRUE(launcher.lost_at().has_value());
  launcher.Connected(8);
  EXPECT_FALSE(launcher.lost_at().has_value());
}

}  // namespace
}  // namespace ringmaster::app
