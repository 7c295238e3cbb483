// For tests: a process that knows everything in a job's status but doesn't hold its ring key.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "collectives/transport/socket.h"
#include "collectives/transport/wire.h"
#include "ringmaster/endpoint.h"

namespace ringmaster::communicator {

// While it exists it dials all peers as rank 2 of the view, of the next view and of one with the
// highest epoch, which would make every other view outdated. It sends what a member would send.
class Stranger {
 public:
  Stranger(std::vector<PeerEndpoint> peers, std::string job, uint64_t epoch)
      : peers_(std::move(peers)),
        job_(std::move(job)),
        epoch_(epoch),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) CallAll();
        }) {}

  void AwaitCalls(int count) const {
    const auto deadline = transport::Clock::now() + std::chrono::seconds(30);
    while (calls_ < count && transport::Clock::now() < deadline) std::this_thread::yield();
    EXPECT_GE(calls_, count);
  }

 private:
  void CallAll() {
    for (const PeerEndpoint& peer : peers_) {
      for (uint64_t epoch : {epoch_, epoch_ + 1, ~uint64_t{0}}) {
        Call(peer, epoch, transport::kWireVersion);
        Call(peer, epoch, transport::kKeyedWireVersion);
      }
    }
  }

  void Call(const PeerEndpoint& peer, uint64_t epoch, uint32_t version) {
    transport::UniqueFd fd;
    transport::DialResult result;
    if (!transport::DialTcp(peer.tcp, &fd, &result).ok()) return;
    transport::WaitFor(fd.get(), POLLOUT, transport::Clock::now() + std::chrono::seconds(1));
    transport::Hello hello;
    hello.version = version;
    hello.rank = 2;
    hello.epoch = epoch;
    transport::CopyName(job_, hello.job);
    (void)transport::SendSmall(fd.get(), &hello, sizeof(hello));
    if (version == transport::kKeyedWireVersion) {
      const transport::KeyRequest request;
      const transport::Proof proof = {};
      (void)transport::SendSmall(fd.get(), &request, sizeof(request));
      (void)transport::SendSmall(fd.get(), proof.data(), proof.size());
    }
    transport::FrameHeader frame;
    frame.epoch = epoch;
    frame.op = 1;
    (void)transport::SendSmall(fd.get(), &frame, sizeof(frame));
    ++calls_;
  }

  const std::vector<PeerEndpoint> peers_;
  const std::string job_;
  const uint64_t epoch_;
  std::atomic<int> calls_{0};
  std::jthread thread_;
};

}  // namespace ringmaster::communicator
