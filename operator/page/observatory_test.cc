// The looks of the page at jobs, over a source that counts them.
#include "operator/page/observatory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/until.h"

namespace ringmaster::page {
namespace {

using nlohmann::json;
using support::Until;
using testing::IsEmpty;

// Three jobs, a, b and c, each with a pod that answers.
class ThreeJobs final : public Source {
 public:
  Answer<std::vector<json>> Jobs() override {
    std::vector<json> jobs;
    for (const char* name : {"a", "b", "c"})
      jobs.push_back({{"metadata", {{"namespace", "default"}, {"name", name}, {"uid", Uid(name)}}},
                      {"status", {{"state", waits_ ? "Pending" : "Running"}, {"worldSize", 1}}}});
    return jobs;
  }
  std::optional<int> PriorityOf(const json& job) override {
    return job["metadata"]["name"].get<std::string>()[0] - '`';  // a: 1, b: 2, c: 3
  }
  void LetWait() { waits_ = true; }
  // All jobs are deleted, and made again under their names.
  void MakeAnew() { anew_ = true; }
  void LetNobodySeePods(bool refuses = true) { refuses_ = refuses; }
  Answer<inspection::Inspection> Inspect(json job) override {
    if (refuses_) return tl::unexpected(std::string("list pods: forbidden"));
    const std::string name = job["metadata"]["name"];
    {
      sync::MutexLock lock(&mu_);
      ++looks_[name];
    }
    inspection::Inspection look;
    look.job = std::move(job);
    look.answers[name + "-worker-0"].ranks.resize(1);
    return look;
  }
  json History(const inspection::Inspection&) override {
    sync::MutexLock lock(&mu_);
    ++histories_;
    return {{"values", json::array()}, {"samples", {{1000, 1, 1}}}};
  }
  Answer<void> Log(const std::string&, const std::string&, int,
                   const std::function<bool(std::string_view)>&, std::stop_token) override {
    return {};
  }

  std::map<std::string, int> looks() const {
    sync::MutexLock lock(&mu_);
    return looks_;
  }
  int histories() const {
    sync::MutexLock lock(&mu_);
    return histories_;
  }

 private:
  std::string Uid(const std::string& name) const { return name + (anew_ ? " anew" : ""); }

  std::atomic<bool> waits_{false}, refuses_{false}, anew_{false};
  mutable sync::Mutex mu_;
  std::map<std::string, int> looks_ GUARDED_BY(mu_);
  int histories_ GUARDED_BY(mu_) = 0;
};

class ObservatoryTest : public testing::Test {
 protected:
  std::vector<std::string> Listed() {
    std::vector<std::string> names;
    const json seen = observatory_.Jobs();
    for (const json& job : seen["jobs"]) names.push_back(job["name"]);
    return names;
  }
  std::size_t SamplesOf(const std::string& key) {
    const json job = observatory_.Job(key);
    return job.is_null() ? 0 : job["samples"].size();
  }

  const std::shared_ptr<ThreeJobs> source_ = std::make_shared<ThreeJobs>();
  Observatory observatory_{source_,
                           {.interval = std::chrono::milliseconds(1),
                            .jobs = 2,
                            .asked_within = std::chrono::hours(1),
                            .line = 2}};
};

TEST_F(ObservatoryTest, AllAreListedAndOnlyThoseAreLookedAtThatSomebodyAsksFor) {
  ASSERT_TRUE(Until([&] { return Listed() == std::vector<std::string>{"a", "b", "c"}; }));
  EXPECT_EQ(observatory_.Jobs()["jobs"][1]["workers"], 1);
  EXPECT_THAT(source_->looks(), IsEmpty());
  EXPECT_EQ(SamplesOf("default/b"), 0u) << "the first look comes";
  ASSERT_TRUE(Until([&] { return SamplesOf("default/b") > 3; }));
  EXPECT_EQ(source_->looks().size(), 1u);
  EXPECT_EQ(source_->looks().count("b"), 1u);
  EXPECT_EQ(observatory_.Job("default/none"), nullptr);
}

TEST_F(ObservatoryTest, OfTooManyTheOneThatWasAskedForLongestAgoIsLeftAlone) {
  ASSERT_TRUE(Until([&] { return Listed().size() == 3; }));
  for (const char* key : {"default/a", "default/b", "default/c"})
    ASSERT_TRUE(Until([&] { return SamplesOf(key) > 0; })) << key;
  const int looks = source_->looks()["a"];
  ASSERT_TRUE(Until([&] { return SamplesOf("default/b") > 0 && source_->looks()["c"] > 10; }));
  EXPECT_LE(source_->looks()["a"], looks + 1);
}

TEST_F(ObservatoryTest, WhatWasBeforeIsAskedForOnce) {
  ASSERT_TRUE(Until([&] { return Listed().size() == 3; }));
  ASSERT_TRUE(Until([&] { return SamplesOf("default/a") > 5; }));
  EXPECT_EQ(source_->histories(), 1);
  const json job = observatory_.Job("default/a");
  EXPECT_EQ(job["past"], 1);
  EXPECT_EQ(job["samples"][0]["t"], 1000);
}

TEST_F(ObservatoryTest, WhyAJobCanNotBeLookedAtIsSaid) {
  source_->LetNobodySeePods();
  ASSERT_TRUE(Until([&] { return Listed().size() == 3; }));
  std::uint64_t seen = 0;
  json newer;
  const auto says = [&](const char* error) {
    return Until([&] {
      newer = observatory_.Newer("default/a", &seen, std::chrono::seconds(1));
      return !newer.is_null() && newer["error"] == error;
    });
  };
  ASSERT_TRUE(says("list pods: forbidden"));
  EXPECT_EQ(newer["job"]["name"], "a");
  EXPECT_FALSE(newer.contains("sample"));
  source_->LetNobodySeePods(false);
  ASSERT_TRUE(says(""));
  EXPECT_TRUE(newer.contains("sample"));
}

TEST_F(ObservatoryTest, ThoseThatWaitAreInLineByTheirPriority) {
  ASSERT_TRUE(Until([&] { return Listed().size() == 3; }));
  EXPECT_THAT(observatory_.Jobs()["line"], IsEmpty()) << "all run";
  source_->LetWait();
  ASSERT_TRUE(Until([&] { return observatory_.Jobs()["line"].size() == 2; }))
      << "of three the first two are told: the options say so";
  const json line = observatory_.Jobs()["line"];
  EXPECT_EQ(line[0]["name"], "c");
  EXPECT_EQ(line[0]["priority"], 3);
  EXPECT_EQ(line[1]["name"], "b");
}

TEST_F(ObservatoryTest, OfAJobThatWasMadeAnewNothingOfTheOldOneIsTold) {
  ASSERT_TRUE(Until([&] { return Listed().size() == 3; }));
  ASSERT_TRUE(Until([&] { return SamplesOf("default/a") > 0; }));
  source_->LetNobodySeePods();
  source_->MakeAnew();
  ASSERT_TRUE(Until([&] { return observatory_.Jobs()["jobs"][0]["uid"] == "a anew"; }));
  EXPECT_TRUE(Until([&] { return observatory_.Job("default/a")["job"]["uid"] == "a anew"; }))
      << "it could not be looked at yet, so nothing is known of it but that it is there";
  EXPECT_EQ(SamplesOf("default/a"), 0u);
}

// As `ringmaster ui` looks: at all jobs, as far as there are not too many.
TEST(ObservatoryOfAllTest, OfTooManyJobsTheOneThatIsAskedForIsLookedAt) {
  const auto source = std::make_shared<ThreeJobs>();
  Observatory observatory(source, {.interval = std::chrono::milliseconds(1), .jobs = 2});
  const auto is_seen = [&](const char* key) {
    const json job = observatory.Job(key);
    return !job.is_null() && !job["samples"].empty();
  };
  ASSERT_TRUE(Until([&] { return source->looks()["b"] > 2; }));
  EXPECT_EQ(source->looks().count("c"), 0u) << "it is the third, and nobody asks for it";
  ASSERT_TRUE(Until([&] { return is_seen("default/c"); }));
  std::uint64_t seen = 0;
  EXPECT_TRUE(Until([&] {
    return observatory.Newer("default/c", &seen, std::chrono::seconds(1)).contains("sample");
  }));
  const int looks = source->looks()["a"];
  EXPECT_TRUE(Until([&] { return source->looks()["a"] > looks + 2; }))
      << "the other place is the first's";
  EXPECT_TRUE(Until([&] { return is_seen("default/b"); })) << "it is asked for now";
}

// Twenty jobs whose pods don't answer for a while, and one whose pod does.
class MostlySilentJobs final : public Source {
 public:
  Answer<std::vector<json>> Jobs() override {
    listed_at_ = silent.load();
    std::vector<json> jobs;
    for (int i = 0; i <= kSilent; ++i)
      jobs.push_back({{"metadata", {{"namespace", "n"}, {"name", i < kSilent ? Name(i) : "z"}}}});
    return jobs;
  }
  Answer<inspection::Inspection> Inspect(json job) override {
    inspection::Inspection look;
    look.job = std::move(job);
    if (look.job["metadata"]["name"] == "z") {
      before_z = silent - listed_at_;
      return look;
    }
    ++silent;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return tl::unexpected(std::string("nobody answers"));
  }
  json History(const inspection::Inspection&) override { return nullptr; }
  Answer<void> Log(const std::string&, const std::string&, int,
                   const std::function<bool(std::string_view)>&, std::stop_token) override {
    return {};
  }
  static constexpr int kSilent = 200;
  std::atomic<int> silent{0}, before_z{0};  // the latter: in its observation of all

 private:
  static std::string Name(int i) { return "a" + std::to_string(i); }
  std::atomic<int> listed_at_{0};
};

TEST(ObservatoryOfAllTest, AJobThatIsAskedForIsShownBeforeOthersAreLookedAt) {
  const auto source = std::make_shared<MostlySilentJobs>();
  Observatory observatory(source, {.interval = std::chrono::milliseconds(1), .jobs = 1000});
  ASSERT_TRUE(Until([&] { return !observatory.Job("n/z").is_null(); }));
  std::uint64_t seen = 0;
  ASSERT_TRUE(Until(
      [&] { return observatory.Newer("n/z", &seen, std::chrono::seconds(1)).contains("sample"); }));
  ASSERT_TRUE(Until(
      [&] { return observatory.Newer("n/z", &seen, std::chrono::seconds(1)).contains("sample"); }));
  EXPECT_LT(source->before_z, 16) << "those that are looked at together with it";
  EXPECT_EQ(observatory.Newer("n/none", &(seen = 0), std::chrono::seconds(30))["error"],
            "no job 'n/none' is there");
}

// One that runs and one that has ended.
class OneHasEnded final : public Source {
 public:
  Answer<std::vector<json>> Jobs() override {
    const auto job = [](const char* name, const char* state) {
      return json{{"metadata", {{"namespace", "n"}, {"name", name}, {"resourceVersion", "7"}}},
                  {"status", {{"state", state}}}};
    };
    return std::vector<json>{job("ended", "Succeeded"), job("runs", "Running")};
  }
  Answer<inspection::Inspection> Inspect(json job) override {
    ++(job["metadata"]["name"] == "ended" ? ended : runs);
    inspection::Inspection look;
    look.job = std::move(job);
    return look;
  }
  json History(const inspection::Inspection&) override { return nullptr; }
  Answer<void> Log(const std::string&, const std::string&, int,
                   const std::function<bool(std::string_view)>&, std::stop_token) override {
    return {};
  }
  std::atomic<int> ended{0}, runs{0};
};

TEST(ObservatoryOfAllTest, AJobThatHasEndedIsLookedAtAgainOnlyIfSomebodyAsks) {
  const auto source = std::make_shared<OneHasEnded>();
  Observatory observatory(source, {.interval = std::chrono::milliseconds(1), .jobs = 10});
  ASSERT_TRUE(Until([&] { return source->runs > 10; }));
  EXPECT_EQ(source->ended, 1);
  ASSERT_FALSE(observatory.Job("n/ended").is_null());
  EXPECT_TRUE(Until([&] { return source->ended > 1; }));
}

TEST(ObservatoryOfAskedTest, AfterATimeWithoutRequestsTheListIsNotTheOldOne) {
  const auto source = std::make_shared<ThreeJobs>();
  Observatory observatory(
      source, {.interval = std::chrono::milliseconds(1), .asked_within = std::chrono::hours(1)});
  EXPECT_EQ(observatory.Jobs()["jobs"].size(), 3u) << "the first one to ask waits for it";
}

// Jobs that can't be observed; the first observation tells the observatory to stop.
class SilentJobs final : public Source {
 public:
  static constexpr int kJobs = 50;

  Answer<std::vector<json>> Jobs() override {
    if (observatory == nullptr) return {};
    return std::vector<json>(kJobs, {{"metadata", {{"namespace", "default"}, {"name", "a"}}}});
  }
  Answer<inspection::Inspection> Inspect(json) override {
    ++looks;
    observatory.load()->RequestStop();
    return tl::unexpected(std::string("nobody answers"));
  }
  json History(const inspection::Inspection&) override { return nullptr; }
  Answer<void> Log(const std::string&, const std::string&, int,
                   const std::function<bool(std::string_view)>&, std::stop_token) override {
    return {};
  }
  std::atomic<Observatory*> observatory{nullptr};
  std::atomic<int> looks{0};
};

TEST(ObservatoryEndTest, DoesNotWaitForALookAtAllJobs) {
  const auto source = std::make_shared<SilentJobs>();
  {
    Observatory observatory(source,
                            {.interval = std::chrono::milliseconds(1), .jobs = SilentJobs::kJobs});
    source->observatory = &observatory;
    ASSERT_TRUE(Until([&] { return source->looks > 0; }));
  }
  EXPECT_LE(source->looks, 8) << "those that had begun by then";
}

}  // namespace
}  // namespace ringmaster::page
