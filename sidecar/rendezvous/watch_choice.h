// Which pods of a view a sidecar listens to.
//
// Pure, but for ProbedPods, which is plain data of the sidecar's loop.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::rendezvous {

struct HeartbeatPeer {
  std::string uid;
  std::string address;  // host:port
  std::string node;     // empty: not known
  bool proves = false;  // its heartbeats prove the job's key
};

// In views of up to so many pods everybody watches everybody.
inline constexpr size_t kAllPairsLimit = 16;

// The pods that `self` watches: all in a small view; in a larger one its neighbours in the order of
// the view, and those that are probed.
std::vector<HeartbeatPeer> PeersToWatch(const std::vector<HeartbeatPeer>& pods,
                                        const std::string& self,
                                        const std::set<std::string>& probed = {});

// Where else a fault may be, if it is at this pod: the pods of its node, and eight on either side
// of it in the order of the view, which is by node and zone.
std::set<std::string> PodsAround(const std::vector<HeartbeatPeer>& pods, const std::string& uid);

// Pods that are watched for a while though they are no neighbours.
class ProbedPods {
 public:
  // A probe around this pod is under way.
  bool Around(const std::string& uid) const { return centres_.count(uid) > 0; }
  void Add(const std::string& centre, const std::set<std::string>& pods,
           std::chrono::milliseconds how_long);
  // So much time has passed. True: some are not probed any more.
  bool Age(std::chrono::milliseconds elapsed);
  std::set<std::string> uids() const;

 private:
  std::map<std::string, std::chrono::milliseconds> centres_, pods_;  // by uid: time left
};

}  // namespace ringmaster::rendezvous
