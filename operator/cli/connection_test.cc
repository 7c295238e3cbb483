#include "operator/cli/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    around_.paths.runs = temporary_.path();
    around_.home = "/home/me";
  }
  RunDirectory Alive(const std::string& id) {
    auto made = RunDirectory::Create("", around_.paths, id);
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }
  Place Look(const Target& target = {}) {
    auto place = FindPlace(target, around_, Purpose::kLook);
    EXPECT_TRUE(place.has_value()) << (place ? "" : place.error().message);
    return place.value_or(Place{});
  }
  std::string Refusal(const Target& target, Purpose purpose) {
    auto place = FindPlace(target, around_, purpose);
    return place ? "not refused" : place.error().message;
  }

  const support::TempDir temporary_;
  Surroundings around_;
};

TEST_F(ConnectionTest, ALivingRunOfOnesOwnComesBeforeTheClusterOfTheEnvironment) {
  around_.kubeconfig = "/k/one:/k/two";
  EXPECT_THAT(Look().kubeconfigs, ElementsAre("/k/one", "/k/two"));
  const RunDirectory run = Alive("r1");
  EXPECT_EQ(Look().run_dir, run.path());
  EXPECT_THAT(Look().note, HasSubstr("--context"));
}

TEST_F(ConnectionTest, TheKubeconfigOfTheRunItselfIsNoOtherPlace) {
  const RunDirectory run = Alive("r1");
  around_.kubeconfig = (run.path() / "kubeconfig").string();
  std::ofstream(around_.kubeconfig) << "";
  EXPECT_EQ(Look().note, "");
}

TEST_F(ConnectionTest, WhatIsNamedComesFirst) {
  const RunDirectory run = Alive("r1");
  EXPECT_THAT(Look({.kubeconfig = "/k"}).kubeconfigs, ElementsAre("/k"));
  EXPECT_THAT(Look({.context = "prod"}).kubeconfigs, ElementsAre("/home/me/.kube/config"));
  around_.kubeconfig = "/k/one";
  EXPECT_THAT(Look({.context = "prod"}).kubeconfigs, ElementsAre("/k/one"));
  EXPECT_EQ(Look({.run_dir = run.path()}).run_dir, run.path());
  EXPECT_THAT(Refusal({.run_dir = "/tmp"}, Purpose::kLook), HasSubstr("/tmp"));
}

TEST_F(ConnectionTest, KubectlsPluginSpeaksToKubectlsCluster) {
  const RunDirectory run = Alive("r1");
  around_.kubectl_plugin = true;
  EXPECT_THAT(Look().kubeconfigs, ElementsAre("/home/me/.kube/config"));
  EXPECT_EQ(Look({.run_dir = run.path()}).run_dir, run.path());
}

TEST_F(ConnectionTest, OfSeveralRunsNoneIsChangedUnlessItIsNamed) {
  const RunDirectory first = Alive("r1"), second = Alive("r2");
  EXPECT_THAT(Refusal({}, Purpose::kChange),
              AllOf(HasSubstr(first.path().string()), HasSubstr(second.path().string())));
  EXPECT_THAT(Look().note, HasSubstr(first.path().string()));
  EXPECT_TRUE(FindPlace({.run_dir = first.path()}, around_, Purpose::kChange).has_value());
}

TEST_F(ConnectionTest, NoOtherRunIsChangedInPlaceOfOneThatHasEnded) {
  const RunDirectory run = Alive("r1");
  around_.paths.run_dir = "/no/such/run";
  EXPECT_THAT(Refusal({}, Purpose::kChange), HasSubstr("/no/such/run"));
  EXPECT_EQ(Look().run_dir, run.path());
}

TEST_F(ConnectionTest, ARunDirectoryThatIsGoneIsSaidToBeGone) {
  const auto place = FindPlace({.run_dir = "/no/such/run"}, around_, Purpose::kLook);
  ASSERT_FALSE(place.has_value());
  EXPECT_EQ(place.error().code, ExitCode::kUsage);
  EXPECT_EQ(place.error().message, "no run is alive in /no/such/run: there is no such directory");
}

TEST_F(ConnectionTest, ARunOfSomebodyElseIsNotSpokenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a directory away";
  const RunDirectory run = Alive("r1");
  ASSERT_EQ(chown(run.path().c_str(), 4711, 4711), 0);
  EXPECT_THAT(Refusal({.run_dir = run.path()}, Purpose::kLook), HasSubstr("belongs to user 4711"));
  EXPECT_THAT(Refusal({}, Purpose::kLook), HasSubstr("no run is alive"));
}

TEST_F(ConnectionTest, WithoutAnyItIsSaidHowToGetOne) {
  EXPECT_THAT(
      Refusal({}, Purpose::kLook),
      AllOf(HasSubstr("ringmaster run"), HasSubstr("$KUBECONFIG"), Not(HasSubstr("kubectl's"))));
  around_.home = temporary_.path();
  fs::create_directory(around_.home / ".kube");
  std::ofstream(around_.home / ".kube/config") << "";
  EXPECT_THAT(Refusal({}, Purpose::kLook),
              HasSubstr("(kubectl's is " + (around_.home / ".kube/config").string() + ")"));
}

}  // namespace
}  // namespace ringmaster::cli
