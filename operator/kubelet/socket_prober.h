// Runs the httpGet and tcpSocket probes of the kubelet's containers, one after the other, on a
// thread of its own: a probe may take as long as its timeout.
//
// Owner and thread: the kubelet. Probe from any thread; the results come on the prober's thread.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/sync/mutex.h"

namespace ringmaster::kubelet {

struct SocketProbe {
  std::string pod_uid, container;
  int start = 0;  // which start of the container it is about
  std::string host_port, path;
  std::chrono::milliseconds timeout{0};
};

class SocketProber {
 public:
  using OnResult = std::function<void(const SocketProbe& probe, bool passed)>;

  void Start(OnResult on_result);
  // Returns when the probe that runs has ended; the others aren't run.
  void Stop();
  void Probe(SocketProbe probe);

 private:
  void Run(const std::stop_token& stop, const OnResult& on_result);

  sync::Mutex mu_;
  sync::StoppableCondVar wanted_;
  std::deque<SocketProbe> probes_ GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace ringmaster::kubelet
