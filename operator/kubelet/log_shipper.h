// Sends what containers of a node print to the API server, in the order in which they print it, and
// again from where it got to when the server was away.
//
// Owner and thread: NodeProcess; one thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/kubelet/kubelet.h"

namespace ringmaster::kubelet {

class LogShipper {
 public:
  // `list`: the logs that there are; one that was there and is no longer has ended.
  LogShipper(std::shared_ptr<kube::KubeApi> api, std::function<std::vector<PodLogFile>()> list);
  ~LogShipper();

  void Start();
  // When all containers have ended: sends what is there, for as long as `patience`, and ends.
  // False: the server has not got all of it.
  bool Stop(std::chrono::milliseconds patience);

 private:
  struct Log {
    PodLogFile file;
    std::uint64_t sent = 0;
    bool begun = false;
    bool ended = false;  // the server was told that no more comes
  };

  void Run(std::stop_token stop);
  // False: the server doesn't take it.
  bool ShipAll();
  bool Ship(Log* log);
  void TakeNew();

  const std::shared_ptr<kube::KubeApi> api_;
  const std::function<std::vector<PodLogFile>()> list_;
  // Its thread alone; Stop's when that has ended.
  std::map<std::string, Log> logs_;  // by pod uid and container
  std::jthread thread_;
};

}  // namespace ringmaster::kubelet
