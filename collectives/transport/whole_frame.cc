#include "collectives/transport/whole_frame.h"

#include <functional>
#include <string>

namespace ringmaster::transport {
namespace {

// The connection and direction of a frame, the operation that it belongs to, and until when it may
// take.
struct Way {
  const Connection& connection;
  short events;
  uint64_t op;
  Clock::time_point deadline;
};

// Repeats `step` of the frame until it is `done`.
Status Finish(LivenessMonitor* liveness, const Way& way, const std::function<bool()>& done,
              const std::function<Progress()>& step) {
  const int peer = way.connection.peer();
  for (int idle = 0; !done();) {
    Progress progress = step();
    if (progress == Progress::kSome) {
      idle = 0;
      continue;
    }
    Status status = liveness->Explain(progress, peer);
    pollfd wanted{way.connection.fd(), way.events, 0};
    if (status.ok()) status = liveness->WaitIo({&wanted, 1}, idle++, way.op);
    if (status.ok() && Clock::now() >= way.deadline) {
      status = liveness->Fail(RM_ERR_TIMEOUT,
                              "rank " + std::to_string(peer) + " did not answer in time");
    }
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace

Status SendFrame(LivenessMonitor* liveness, FrameSender* frame, size_t bytes, uint64_t op,
                 Clock::time_point deadline) {
  return Finish(
      liveness, {*frame->connection(), POLLOUT, op, deadline}, [&] { return frame->done(); },
      [&] { return frame->Push(bytes); });
}

Status ReceiveFrame(LivenessMonitor* liveness, FrameReceiver* frame, void* into, size_t bytes,
                    uint64_t op, Clock::time_point deadline) {
  auto pull = [&] {
    size_t at = frame->received();
    size_t got = 0;
    return frame->Pull(static_cast<std::byte*>(into) + at, bytes - at, &got);
  };
  return Finish(
      liveness, {*frame->connection(), POLLIN, op, deadline}, [&] { return frame->done(); }, pull);
}

}  // namespace ringmaster::transport
