// A connection to a unix socket on which frames go both ways; it never blocks.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/worker_link/frame.h"
#include "ringmaster/status.h"

namespace ringmaster::sidecar_client {

class FrameConnection {
 public:
  FrameConnection() = default;
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;
  ~FrameConnection() { Close(); }

  // RM_ERR_UNAVAILABLE: why there is no connection.
  Status Open(const std::string& path);
  void Close();  // what was not written is forgotten
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  void Put(const std::string& frames) { out_ += frames; }
  bool wants_to_write() const { return !out_.empty(); }
  // Sends as much as the socket takes at once. RM_ERR_UNAVAILABLE: how the connection has ended.
  Status Write();
  // Hands over what has come, frame by frame. RM_ERR_UNAVAILABLE: how the connection has ended.
  Status Read(const std::function<void(const nlohmann::json&)>& handle);

 private:
  Status HandleFrames(const std::function<void(const nlohmann::json&)>& handle);

  int fd_ = -1;
  worker_link::FrameReader reader_;
  std::string out_;
};

}  // namespace ringmaster::sidecar_client
