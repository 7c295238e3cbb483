// A kubelet's httpGet and tcpSocket probes against a local address.
#pragma once

#include <chrono>
#include <string>

namespace ringmaster::kubelet {

// `path` empty: a TCP connection is enough; else an HTTP answer from 200 to 399 within the timeout.
bool ProbeSocket(const std::string& host_port, const std::string& path,
                 std::chrono::milliseconds timeout);

}  // namespace ringmaster::kubelet
