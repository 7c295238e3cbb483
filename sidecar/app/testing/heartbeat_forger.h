#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <thread>

#include "sidecar/rendezvous/heartbeat.h"

namespace ringmaster::app {

// Answers heartbeats as the sidecar of that pod would, without the job's key.
class HeartbeatForger {
 public:
  HeartbeatForger(const std::string& address, const std::string& uid) {
    rendezvous::HeartbeatOptions options;
    options.port = std::stoi(address.substr(address.rfind(':') + 1));
    options.job = "job-uid";
    options.self = uid;
    auto heartbeats = rendezvous::Heartbeats::Listen(&loop_, options, {});
    EXPECT_TRUE(heartbeats) << heartbeats.error();
    heartbeats_ = std::move(*heartbeats);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~HeartbeatForger() {
    loop_.stop();
    thread_.join();
  }

 private:
  asio::io_context loop_;
  std::unique_ptr<rendezvous::Heartbeats> heartbeats_;
  std::thread thread_;
};

}  // namespace ringmaster::app
