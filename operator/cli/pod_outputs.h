// Reads the output of pods' workers while they print it, with a thread for each pod.
//
// Thread rule: one thread; lines are passed on from other threads.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class PodOutputs {
 public:
  using OnLine =
      std::function<void(const std::string& ns, const std::string& pod, std::string line)>;

  PodOutputs(std::shared_ptr<kube::KubeApi> api, OnLine on_line);
  ~PodOutputs();

  // Follows the pod's log from its beginning. Returns false if it does so already; a new pod with
  // the same name (another `uid`) is followed as well.
  bool Follow(const std::string& ns, const std::string& pod, const std::string& uid);
  // Waits until all these containers have ended and their logs are read, but at most for `quiet`
  // since the last text and for `most` in total; the time does not count in which somebody waits
  // for a line to be taken. Afterwards no line is passed on any more.
  void Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most);

 private:
  void Read(std::stop_token stop, const std::string& ns, const std::string& pod,
            const std::string& uid);

  const std::shared_ptr<kube::KubeApi> api_;
  const OnLine on_line_;
  sync::Mutex mu_;
  sync::CondVar ended_;
  size_t reading_ GUARDED_BY(mu_) = 0;
  size_t passing_on_ GUARDED_BY(mu_) = 0;  // readers
  std::chrono::steady_clock::time_point last_text_ GUARDED_BY(mu_);
  std::map<std::string, std::jthread> readers_;  // last member: the threads use the others
};

}  // namespace ringmaster::cli
