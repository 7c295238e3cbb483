#include "sidecar/rendezvous/peer_silence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds kInterval{250}, kSuspectAfter{1000};

// A link that is cut at 0 and whole again at `whole`, and what a kernel does on it: what is under
// way is sent again after a pause that doubles each time, up to two minutes.
class CutLink {
 public:
  explicit CutLink(milliseconds whole) : whole_(whole) {}

  // A connection that was open when the link was cut, with a beat in flight.
  void Beat(milliseconds now) { SendAgain(now, milliseconds(200)); }
  void Dial(milliseconds now) { SendAgain(now, milliseconds(1000)); }
  // When the newest connection brings an echo.
  milliseconds HeardAt() const { return heard_at_; }

 private:
  void SendAgain(milliseconds at, milliseconds pause) {
    while (at < whole_) {
      at += pause;
      pause = std::min<milliseconds>(pause * 2, minutes(2));
    }
    heard_at_ = at;
  }

  const milliseconds whole_;
  milliseconds heard_at_{};
};

// As Heartbeats does it, tick by tick. When the pod is heard again.
milliseconds HeardAgainAt(milliseconds whole, milliseconds interval) {
  PeerSilence silence(interval, kSuspectAfter);
  CutLink link(whole);
  link.Beat(milliseconds(0));
  for (milliseconds now{0};; now += interval) {
    if (link.HeardAt() <= now) return link.HeardAt();
    silence.Pass(interval);
    if (!silence.IsRedialDue()) continue;
    link.Dial(now);
    silence.Dialled();
  }
}

TEST(PeerSilenceTest, OnceALinkIsWholeThePodIsHeardWithinTwoSecondsHoweverLongItWasCut) {
  std::vector<milliseconds> lengths = {minutes(5), minutes(47), hours(1), hours(24)};
  for (milliseconds length{0}; length <= seconds(130); length += milliseconds(37))
    lengths.push_back(length);
  for (const milliseconds length : lengths) {
    // A process on a busy machine ticks late, and counts no more than 1.25 intervals for it.
    for (const milliseconds interval : {kInterval, kInterval * 5 / 4}) {
      const milliseconds took = HeardAgainAt(length, interval) - length;
      EXPECT_LE(took, kSuspectAfter + 2 * interval) << "after " << length.count() << " ms";
      EXPECT_LE(took, seconds(2));
    }
  }
}

TEST(PeerSilenceTest, AnEchoEndsTheSilenceAndProlongsTheConnection) {
  PeerSilence silence(kInterval, kSuspectAfter);
  for (int i = 0; i < 4; ++i) silence.Pass(kInterval);
  EXPECT_TRUE(silence.Late());
  EXPECT_FALSE(silence.IsSuspicious()) << "a second is none yet";
  EXPECT_FALSE(silence.IsRedialDue());
  silence.Pass(milliseconds(1));
  EXPECT_TRUE(silence.IsSuspicious());
  EXPECT_TRUE(silence.IsRedialDue());
  silence.Heard();
  EXPECT_FALSE(silence.Late());
  EXPECT_FALSE(silence.IsSuspicious());
  EXPECT_FALSE(silence.IsRedialDue());
}

TEST(PeerSilenceTest, ANewConnectionIsGivenItsTimeAndIsNoSignOfLife) {
  PeerSilence silence(kInterval, kSuspectAfter);
  silence.Pass(seconds(2));
  silence.Dialled();
  silence.Pass(kSuspectAfter);
  EXPECT_FALSE(silence.IsRedialDue());
  EXPECT_EQ(silence.lasted(), seconds(3));
  silence.Pass(milliseconds(1));
  EXPECT_TRUE(silence.IsRedialDue());
}

}  // namespace
}  // namespace ringmaster::rendezvous
