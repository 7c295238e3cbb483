// What other threads hand to the client's thread: frames to be sent, the wish to know that all of
// them were heard, and the end. And what the client's thread tells them: why there is no
// connection.
//
// Thread rule: any thread, but those named below are called on the client's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::sidecar_client {

class FrameQueue {
 public:
  void Put(const std::string& frame) {
    sync::MutexLock lock(&mu_);
    frames_ += frame;
  }
  void Close() {
    sync::MutexLock lock(&mu_);
    closing_ = true;
  }
  std::string trouble() const {
    sync::MutexLock lock(&mu_);
    return trouble_;
  }

  // Asks for the answer to a ping that is sent after everything that has been put until now.
  // AwaitAnswer() waits for it: false means that the deadline has passed. One waiter at a time.
  void AskForAnswer() {
    sync::MutexLock lock(&mu_);
    waiting_ = true;
    awaited_ping_ = 0;
  }
  bool AwaitAnswer(std::chrono::steady_clock::time_point deadline) {
    sync::MutexLock lock(&mu_);
    while (waiting_) {
      if (!heard_.WaitUntil(&mu_, deadline) && waiting_) {
        waiting_ = false;
        return false;
      }
    }
    return true;
  }

  // On the client's thread.
  std::string Take() {
    sync::MutexLock lock(&mu_);
    return std::exchange(frames_, {});
  }
  bool closing() const {
    sync::MutexLock lock(&mu_);
    return closing_;
  }
  void SetTrouble(const std::string& why) {
    sync::MutexLock lock(&mu_);
    trouble_ = why;
  }
  // Somebody waits for the answer to a ping that was not sent yet.
  bool NeedsPing() const {
    sync::MutexLock lock(&mu_);
    return waiting_ && awaited_ping_ == 0;
  }
  void Pinged(uint64_t number) {
    sync::MutexLock lock(&mu_);
    awaited_ping_ = number;
  }
  void Answered(uint64_t number) {
    sync::MutexLock lock(&mu_);
    if (!waiting_ || awaited_ping_ == 0 || number < awaited_ping_) return;
    waiting_ = false;
    heard_.NotifyAll();
  }
  // The pings of this connection will not be answered any more.
  void Disconnected(const std::string& why) {
    sync::MutexLock lock(&mu_);
    awaited_ping_ = 0;
    trouble_ = why;
  }

 private:
  mutable sync::Mutex mu_;
  std::string frames_ GUARDED_BY(mu_);
  bool closing_ GUARDED_BY(mu_) = false;
  std::string trouble_ GUARDED_BY(mu_);
  sync::CondVar heard_;
  bool waiting_ GUARDED_BY(mu_) = false;
  // The answer to this ping ends the wait; 0: it was not sent yet.
  uint64_t awaited_ping_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::sidecar_client
