// Reads what the workers of pods print, while they print it; a thread for each pod.
//
// Thread rule: one thread; lines are told on others.
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

  // From its beginning. Again is a no-op, and false; a pod of another `uid` that has got the name
  // is followed, too.
  bool Follow(const std::string& ns, const std::string& pod, const std::string& uid);
  // Until all of these containers have ended and been read, or for `quiet` since the last text, or
  // for `most`: then no line is told any more.
  void Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most);

 private:
  void Read(std::stop_token stop, const std::string& ns, const std::string& pod);

  const std::shared_ptr<kube::KubeApi> api_;
  const OnLine on_line_;
  sync::Mutex mu_;
  sync::CondVar ended_;
  size_t reading_ GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point last_text_ GUARDED_BY(mu_);
  std::map<std::string, std::jthread> readers_;  // last: they use the others
};

}  // namespace ringmaster::cli
