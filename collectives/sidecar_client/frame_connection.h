// A connection to a unix socket on which frames go both ways; it never blocks.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/worker_link/frame.h"

namespace ringmaster::sidecar_client {

class FrameConnection {
 public:
  FrameConnection() = default;
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;
  ~FrameConnection() { Close(); }

  // Empty, or why it can't be had.
  std::string Open(const std::string& path);
  void Close();  // what was not written is forgotten
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  void Put(const std::string& frames) { out_ += frames; }
  bool wants_to_write() const { return !out_.empty(); }
  // As much as goes out at once. Empty, or how the connection has ended.
  std::string Write();
  // What has come, frame by frame. Empty, or how the connection has ended.
  std::string Read(const std::function<void(const nlohmann::json&)>& handle);

 private:
  std::string HandleFrames(const std::function<void(const nlohmann::json&)>& handle);

  int fd_ = -1;
  worker_link::FrameReader reader_;
  std::string out_;
};

}  // namespace ringmaster::sidecar_client
