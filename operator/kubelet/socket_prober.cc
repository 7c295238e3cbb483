#include "operator/kubelet/socket_prober.h"

#include <utility>

#include "operator/kubelet/socket_probe.h"

namespace ringmaster::kubelet {

void SocketProber::Start(OnResult on_result) {
  thread_ = std::jthread(
      [this, on_result = std::move(on_result)](std::stop_token stop) { Run(stop, on_result); });
}

void SocketProber::Stop() { thread_ = {}; }

void SocketProber::Probe(SocketProbe probe) {
  const sync::MutexLock lock(&mu_);
  probes_.push_back(std::move(probe));
  wanted_.NotifyOne();
}

void SocketProber::Run(const std::stop_token& stop, const OnResult& on_result) {
  while (true) {
    SocketProbe probe;
    {
      const sync::MutexLock lock(&mu_);
      while (!stop.stop_requested() && probes_.empty()) wanted_.Wait(&mu_, stop);
      if (stop.stop_requested()) return;
      probe = std::move(probes_.front());
      probes_.pop_front();
    }
    on_result(probe, ProbeSocket(probe.host_port, probe.path, probe.timeout));
  }
}

}  // namespace ringmaster::kubelet
