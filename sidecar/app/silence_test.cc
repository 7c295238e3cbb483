// What a large view makes of several pods that fall silent at once: members, and beside each of
// them the watching of heartbeat.cc in simulated time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/membership/test_job.h"
#include "sidecar/app/accusations.h"
#include "sidecar/rendezvous/watch_choice.h"

namespace ringmaster::app {
namespace {

using membership::Job;
using membership::MakeEpoch;
using membership::Message;
using membership::Pod;
using membership::Uids;
using rendezvous::HeartbeatPeer;
using rendezvous::ProbedPods;
using std::chrono::milliseconds;

constexpr milliseconds kInterval{250}, kSuspectAfter{1000}, kProbeFor{10000}, kTime{10};

// All sidecars' watching.
class Watching {
 public:
  Watching(Job* job, int pods) : job_(job) {
    for (int i = 0; i < pods; ++i) {
      const std::string uid = Job::Uid(i);
      sidecars_.emplace(
          uid, Sidecar{.next = kTime * (i % 25),
                       .told = Accusations([=, this](auto& pod) { return LookAround(uid, pod); })});
    }
    job_->takes_ = [this](const std::string& to, const Message& message) {
      return message.kind != membership::MessageKind::kSuspect ||
             sidecars_.at(to).told.MayBelieve(message.pods);
    };
  }

  void Pass(milliseconds time) {
    for (milliseconds past{0}; past < time; past += kTime) {
      now_ += kTime;
      job_->Pass(kTime);
      for (auto& [uid, sidecar] : sidecars_) {
        if (job_->silent_.contains(uid) || sidecar.next > now_) continue;
        sidecar.next = now_ + kInterval;
        Tick(uid, &sidecar);
      }
    }
  }

 private:
  struct Sidecar {
    milliseconds next{0};
    Accusations told;
    ProbedPods probed;
    membership::Epoch epoch = 0;
    std::map<std::string, milliseconds> silence;  // of those that it watches
  };

  std::vector<HeartbeatPeer> Peers(const std::string& uid) {
    std::vector<HeartbeatPeer> peers;
    for (const Pod& pod : job_->ViewOf(uid).pods) peers.push_back({pod.uid, pod.uid + ":1", ""});
    return peers;
  }

  std::vector<std::string> LookAround(const std::string& uid, const std::string& centre) {
    Sidecar& sidecar = sidecars_.at(uid);
    const std::set<std::string> around = rendezvous::PodsAround(Peers(uid), centre);
    if (!sidecar.probed.Around(centre)) {
      sidecar.probed.Add(centre, around, kProbeFor);
      Choose(&sidecar, uid);
    }
    std::vector<std::string> unsettled;
    for (const auto& [other, silence] : sidecar.silence) {
      const bool settled = silence > kSuspectAfter || !job_->silent_.contains(other);
      if (around.contains(other) && !settled) unsettled.push_back(other);
    }
    return unsettled;
  }

  void Choose(Sidecar* sidecar, const std::string& uid) {
    std::map<std::string, milliseconds> chosen;
    for (const HeartbeatPeer& peer :
         rendezvous::PeersToWatch(Peers(uid), uid, sidecar->probed.uids())) {
      chosen[peer.uid] = sidecar->silence[peer.uid];
    }
    sidecar->silence.swap(chosen);
  }

  void Tick(const std::string& uid, Sidecar* sidecar) {
    if (std::exchange(sidecar->epoch, job_->ViewOf(uid).epoch) != job_->ViewOf(uid).epoch) {
      sidecar->told.EnterView();
    }
    sidecar->probed.Age(kInterval);
    Choose(sidecar, uid);
    std::vector<std::string> late;
    std::vector<membership::Event> suspected;
    for (auto& [peer, silence] : sidecar->silence) {
      silence = job_->silent_.contains(peer) ? silence + kInterval : milliseconds(0);
      if (silence > 2 * kInterval) late.push_back(peer);
      if (silence > kSuspectAfter) suspected.push_back(membership::PodSuspected{peer, "silent"});
    }
    for (const std::string& peer : late) LookAround(uid, peer);
    job_->GiveAll(uid, suspected);
  }

  Job* const job_;
  milliseconds now_{0};
  std::map<std::string, Sidecar> sidecars_;
};

struct Silence {
  int pods;   // neighbours, at once
  int views;  // that it may cost
};
// {, the first of them}
class SilentPodsTest : public testing::TestWithParam<std::tuple<Silence, int>> {};

TEST_P(SilentPodsTest, CostFewViewsAndNobodyElse) {
  constexpr int kPods = 24;
  const auto [silence, first] = GetParam();
  Job job(kPods);
  Watching watching(&job, kPods);
  watching.Pass(milliseconds(2000));
  Uids left;
  for (int i = 0; i < kPods; ++i) {
    const bool silent = (i - first + kPods) % kPods < silence.pods;
    if (silent) {
      job.silent_.insert(Job::Uid(i));
    } else {
      left.push_back(Job::Uid(i));
    }
  }
  watching.Pass(milliseconds(10000));
  for (const std::string& uid : left) {
    const Uids pods = job.Pods(uid);
    EXPECT_TRUE(std::is_permutation(pods.begin(), pods.end(), left.begin(), left.end()))
        << uid << " has " << pods.size() << " pods";
    EXPECT_LE(job.ViewOf(uid).epoch, MakeEpoch(1, 1 + silence.views));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SilentPodsTest,
                         testing::Combine(testing::Values(Silence{1, 1}, Silence{2, 2},
                                                          Silence{3, 3}, Silence{8, 2}),
                                          testing::Range(0, 24)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param).pods) + "From" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace ringmaster::app
