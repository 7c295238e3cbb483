// Electors with each of the API servers, through doors that a test can shut. They use real time,
// but no wait is longer than necessary.
#include "operator/runtime/leader_elector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <set>
#include <sstream>
#include <vector>

#include "operator/kube/testing/wrapped_api.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::runtime {
namespace {

using std::chrono::milliseconds;
using support::kPatience;
using support::Until;
using testing::HasSubstr;

class DoorApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;

  enum class Door { kOpen, kRefuses, kRefusesWrites, kHangs };
  void Set(Door door) {
    const std::lock_guard lock(mu_);
    door_ = door;
    changed_.notify_all();
  }
  int calls() const {
    const std::lock_guard lock(mu_);
    return calls_;
  }

  int writes() const {
    const std::lock_guard lock(mu_);
    return writes_;
  }
  std::chrono::steady_clock::time_point last_write() const {
    const std::lock_guard lock(mu_);
    return last_write_;
  }
  // `hook` runs once, before the next write reaches the store.
  void BeforeNextWrite(std::function<void()> hook) {
    const std::lock_guard lock(mu_);
    hook_ = std::move(hook);
  }

  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override {
    if (!Pass(false)) return tl::unexpected(Away());
    return WrappedApi::Get(resource, ns, name);
  }
  kube::Result<kube::Json> Create(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object) override {
    NoteWrite();
    if (!Pass(true)) return tl::unexpected(Away());
    return WrappedApi::Create(resource, ns, object);
  }
  kube::Result<kube::Json> Update(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object,
                                  const std::string& subresource) override {
    NoteWrite();
    if (!Pass(true)) return tl::unexpected(Away());
    return WrappedApi::Update(resource, ns, object, subresource);
  }

 private:
  static kube::Error Away() {
    return {.code = kube::ErrorCode::kUnavailable, .message = "nobody there"};
  }
  bool Pass(bool write) {
    std::unique_lock lock(mu_);
    ++calls_;
    changed_.wait_for(lock, kPatience, [&] { return door_ != Door::kHangs; });
    return door_ == Door::kOpen || (door_ == Door::kRefusesWrites && !write);
  }

  void NoteWrite() {
    std::function<void()> hook;
    {
      const std::lock_guard lock(mu_);
      ++writes_;
      last_write_ = std::chrono::steady_clock::now();
      hook.swap(hook_);
    }
    if (hook) hook();
  }

  mutable std::mutex mu_;
  std::condition_variable changed_;
  Door door_ = Door::kOpen;                           // guarded by mu_
  int calls_ = 0;                                     // guarded by mu_
  int writes_ = 0;                                    // guarded by mu_
  std::chrono::steady_clock::time_point last_write_;  // when the last one began; guarded by mu_
  std::function<void()> hook_;                        // guarded by mu_
};

// What all replicas of a test have reported, in order: "+a" leads, "-a: why" has lost the lease.
class Story {
 public:
  void Add(const std::string& line) {
    const std::lock_guard lock(mu_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  std::vector<std::string> Await(std::size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, kPatience, [&] { return lines_.size() >= n; });
    return lines_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;  // guarded by mu_
};

struct Pace {
  milliseconds retry_period{50};
  milliseconds lease_duration{3000};
};

class LeaderElectorTest : public local::testing::OnEveryServer {
 protected:
  struct Replica {
    std::shared_ptr<DoorApi> api;
    std::unique_ptr<LeaderElector> elector;
  };

  Replica Join(const std::string& name) { return Join(name, std::make_shared<DoorApi>(api_), {}); }
  Replica Join(const std::string& name, std::shared_ptr<DoorApi> api, const Pace& pace) {
    Replica replica;
    replica.api = std::move(api);
    replica.elector = std::make_unique<LeaderElector>(
        replica.api, ns_, kLease,
        ElectionOptions{.identity = name,
                        .lease_duration = pace.lease_duration,
                        .renew_deadline = kRenewDeadline,
                        .retry_period = pace.retry_period},
        ElectorCallbacks{
            [this, name] { story_.Add("+" + name); },
            [this, name](const std::string& why) { story_.Add("-" + name + ": " + why); }});
    replica.elector->Start();
    return replica;
  }
  LeaseFacts Lease() {
    const auto lease = api_->Get(kube::Leases(), ns_, kLease);
    return lease ? ReadLease(*lease) : LeaseFacts{};
  }

  void MakeLease(const std::string& holder) {
    LeaseFacts lease;
    lease.holder = holder;
    lease.duration_seconds = 3600;
    lease.acquired = lease.renewed = "2026-01-01T00:00:00.000000Z";
    ASSERT_TRUE(api_->Create(kube::Leases(), ns_, WriteLease(lease, ns_, kLease)));
  }
  // Returns false if another replica wrote the lease meanwhile.
  bool GiveTo(const std::string& holder) {
    LeaseFacts lease = Lease();
    lease.holder = holder;
    return api_->Update(kube::Leases(), ns_, WriteLease(lease, ns_, kLease)).has_value();
  }

  static constexpr char kLease[] = "ringmaster-operator";
  static constexpr milliseconds kRenewDeadline{1500};
  static constexpr Pace kEveryHour{.retry_period = std::chrono::hours(1)};
  Story story_;
};

TEST_P(LeaderElectorTest, OneLeadsAndWhenItStopsTheOtherDoesAtOnce) {
  // The lease would last far longer than this test.
  const Pace pace{.lease_duration = std::chrono::hours(1)};
  Replica a = Join("a", std::make_shared<DoorApi>(api_), pace);
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  Replica b = Join("b", std::make_shared<DoorApi>(api_), pace);
  const int looks = b.api->calls();
  ASSERT_TRUE(Until([&] { return b.api->calls() >= looks + 3; }));
  EXPECT_FALSE(b.elector->state().leading);
  EXPECT_EQ(b.elector->state().holder, "a");
  a.elector->Stop();
  EXPECT_NE(Lease().holder, "a") << "the lease was not given back, but will run out";
  EXPECT_EQ(a.api->calls(), a.api->writes() + 1) << "a leader looks before its first write only";
  ASSERT_THAT(story_.Await(2), testing::ElementsAre("+a", "+b"));
  EXPECT_EQ(Lease().holder, "b");
  EXPECT_EQ(Lease().transitions, 1);
}

TEST_P(LeaderElectorTest, ALeaderThatDiesIsFollowedWhenItsLeaseHasRunOut) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  Replica b = Join("b");
  a.api->Set(DoorApi::Door::kRefuses);  // as good as dead: it can't reach the server
  const auto story = story_.Await(3);
  ASSERT_EQ(story.size(), 3u);
  EXPECT_THAT(story[1], HasSubstr("-a: not renewed for 1.5 s: nobody there"))
      << "it has stopped before the other one began";
  EXPECT_EQ(story[2], "+b");
  EXPECT_FALSE(a.elector->state().leading);
}

TEST_P(LeaderElectorTest, ALeaderWhoseCallHangsStopsInTimeAllTheSame) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  Replica b = Join("b");
  a.api->Set(DoorApi::Door::kHangs);
  const auto story = story_.Await(3);
  ASSERT_EQ(story.size(), 3u);
  EXPECT_THAT(story[1], HasSubstr("-a: not renewed"));
  EXPECT_EQ(story[2], "+b");
  a.api->Set(DoorApi::Door::kOpen);
  a.elector->Stop();
  EXPECT_EQ(Lease().holder, "b") << "a replica that has lost the lease doesn't give it away";
  EXPECT_EQ(story_.Await(3).size(), 3u) << "the lease is lost once";
}

TEST_P(LeaderElectorTest, ALeaderSeesThatItsLeaseWasTaken) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  ASSERT_TRUE(Until([&] { return GiveTo("usurper"); }));
  EXPECT_THAT(story_.Await(2), testing::ElementsAre("+a", "-a: usurper holds the lease now"));
}

TEST_P(LeaderElectorTest, ALeaderSeesThatItsLeaseIsNobodys) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  ASSERT_TRUE(Until([&] { return GiveTo(""); }));
  EXPECT_THAT(story_.Await(2), testing::ElementsAre("+a", "-a: nobody holds the lease now"));
}

TEST_P(LeaderElectorTest, ALeaseThatIsDeletedIsMadeAgainByItsHolder) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  ASSERT_TRUE(api_->Delete(kube::Leases(), ns_, kLease, {}));
  EXPECT_TRUE(Until([&] { return Lease().holder == "a"; }));
  // It also notices when it can't renew the lease.
  a.api->Set(DoorApi::Door::kHangs);
  EXPECT_EQ(story_.Await(2).size(), 2u);
  a.api->Set(DoorApi::Door::kOpen);
}

TEST_P(LeaderElectorTest, AnApiServerThatIsAwayIsReportedUntilItIsBack) {
  Replica a = Join("a");
  a.api->Set(DoorApi::Door::kRefuses);
  ASSERT_TRUE(Until([&] { return a.elector->state().error == "nobody there"; }));
  a.api->Set(DoorApi::Door::kOpen);
  EXPECT_TRUE(Until([&] { return a.elector->state().error.empty(); }));
}

TEST_P(LeaderElectorTest, WhoMayReadTheLeaseAndNotWriteItSaysSo) {
  const auto api = std::make_shared<DoorApi>(api_);
  api->Set(DoorApi::Door::kRefusesWrites);
  Replica a = Join("a", api, kEveryHour);
  EXPECT_TRUE(Until([&] { return a.elector->state().error == "nobody there"; }));
}

TEST_P(LeaderElectorTest, TheLogTellsOfWhatChangesAndThatOnce) {
  ASSERT_NO_FATAL_FAILURE(MakeLease("first"));
  const std::shared_ptr<spdlog::logger> logger = spdlog::default_logger();
  std::ostringstream log;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const auto api = std::make_shared<DoorApi>(api_);
  const auto some_calls = [&] {
    const int before = api->calls();
    return Until([&] { return api->calls() >= before + 3; });
  };
  api->Set(DoorApi::Door::kRefuses);
  Replica a = Join("a", api, {});
  EXPECT_TRUE(some_calls());
  api->Set(DoorApi::Door::kOpen);
  EXPECT_TRUE(Until([&] { return a.elector->state().holder == "first"; }));
  EXPECT_TRUE(some_calls());
  EXPECT_TRUE(GiveTo(""));
  EXPECT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  EXPECT_TRUE(some_calls());
  a.elector->Stop();
  spdlog::set_default_logger(logger);
  std::vector<std::string> said;
  std::istringstream lines(log.str());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" lease=") != std::string::npos) said.push_back(line);
  }
  const std::string lease = " lease=" + ns_ + "/" + kLease;
  EXPECT_THAT(
      said, testing::ElementsAre(
                HasSubstr("lease out of reach" + lease + " error=\"nobody there\""),
                HasSubstr("lease within reach again" + lease),
                HasSubstr("another replica leads" + lease + " holder=first"),
                HasSubstr("leading" + lease + " identity=a"), HasSubstr("lease released" + lease)));
}

TEST_P(LeaderElectorTest, AFirstCallThatHangsIsATryAsSoonAsItBegins) {
  const auto hangs = std::make_shared<DoorApi>(api_);
  hangs->Set(DoorApi::Door::kHangs);
  const auto before = std::chrono::steady_clock::now();
  Replica a = Join("a", hangs, {});
  EXPECT_GE(a.elector->state().last_try, before);
  hangs->Set(DoorApi::Door::kOpen);
}

TEST_P(LeaderElectorTest, AnApiServerThatIsAwayIsAskedAgainOnlyAfterAWhile) {
  const auto away = std::make_shared<DoorApi>(api_);
  away->Set(DoorApi::Door::kRefuses);
  Replica a = Join("a", away, kEveryHour);
  ASSERT_TRUE(Until([&] { return !a.elector->state().error.empty(); }));
  a.elector->Stop();
  EXPECT_EQ(away->calls(), 1) << "the next try would be in an hour";
}

TEST_P(LeaderElectorTest, OfManyThatWaitNeverTwoLead) {
  std::vector<Replica> replicas;
  for (const char* name : {"a", "b", "c", "d"}) replicas.push_back(Join(name));
  std::set<std::string> leaders;
  for (std::size_t n = 1; n <= replicas.size(); ++n) {
    const auto story = story_.Await(n);
    ASSERT_EQ(story.size(), n);
    leaders.insert(story.back());
    int leading = 0;
    for (const Replica& replica : replicas) leading += replica.elector->state().leading ? 1 : 0;
    EXPECT_LE(leading, 1);
    for (const Replica& replica : replicas) {
      if (replica.elector->state().leading) replica.elector->Stop();
    }
  }
  EXPECT_EQ(leaders.size(), 4u) << "each of them once: a replica that has stopped stays stopped";
}

TEST_P(LeaderElectorTest, WhoDoesNotLeadGivesNothingBack) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  Replica b = Join("b");
  ASSERT_TRUE(Until([&] { return b.elector->state().holder == "a"; }));
  b.elector->Stop();
  EXPECT_EQ(b.api->writes(), 0);
  a.api->Set(DoorApi::Door::kRefuses);
  ASSERT_EQ(story_.Await(2).size(), 2u);
  a.api->Set(DoorApi::Door::kOpen);
  const int writes = a.api->writes();
  a.elector->Stop();
  EXPECT_EQ(a.api->writes(), writes) << "it has led and lost";
}

TEST_P(LeaderElectorTest, WhoHasLostTheLeaseAsksForItNoMore) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  a.api->Set(DoorApi::Door::kRefuses);
  ASSERT_EQ(story_.Await(2).size(), 2u);
  a.api->Set(DoorApi::Door::kOpen);
  Replica b = Join("b");
  ASSERT_EQ(story_.Await(3).back(), "+b") << "not before the lease has run out";
  b.elector->Stop();
  Replica c = Join("c");
  EXPECT_EQ(story_.Await(4).back(), "+c");
}

TEST_P(LeaderElectorTest, AnAnswerThatComesTooLateMakesNoLeader) {
  Replica a = Join("a");
  ASSERT_THAT(story_.Await(1), testing::ElementsAre("+a"));
  a.api->Set(DoorApi::Door::kHangs);
  ASSERT_EQ(story_.Await(2).size(), 2u);
  const auto before = a.elector->state().last_try;
  a.api->Set(DoorApi::Door::kOpen);  // the renewal succeeds after all
  ASSERT_TRUE(Until([&] { return a.elector->state().last_try > before; }));
  EXPECT_FALSE(a.elector->state().leading);
}

TEST_P(LeaderElectorTest, TheDeadlineCountsFromWhenTheLeaseWasAskedFor) {
  const auto api = std::make_shared<DoorApi>(api_);
  // The lease is granted when its deadline, counted from the request, is over.
  api->BeforeNextWrite([&] { std::this_thread::sleep_until(api->last_write() + kRenewDeadline); });
  Replica a = Join("a", api, {});
  (void)story_.Await(1);
  a.elector->Stop();
  EXPECT_THAT(story_.Await(1), testing::ElementsAre("-a: not renewed for 1.5 s"))
      << "it would lead without a lease";
}

TEST_P(LeaderElectorTest, WhoIsSecondSeesAtOnceWhoWasFirstAndThatIsNoError) {
  for (const bool there : {false, true}) {  // created, or taken over
    if (there) {
      ASSERT_TRUE(GiveTo(""));
    }
    const auto api = std::make_shared<DoorApi>(api_);
    api->BeforeNextWrite([&] {
      if (there) {
        EXPECT_TRUE(GiveTo("first"));
      } else {
        MakeLease("first");
      }
    });
    Replica a = Join("a", api, kEveryHour);
    EXPECT_TRUE(Until([&] { return a.elector->state().holder == "first"; }))
        << "the next look would be in an hour";
    EXPECT_EQ(a.elector->state().error, "");
  }
}

RM_ON_EVERY_SERVER(LeaderElectorTest);

}  // namespace
}  // namespace ringmaster::runtime
