#include "collectives/communicator/group_agreement.h"

#include "collectives/communicator/group_map.h"
#include "collectives/transport/connection.h"
#include "collectives/transport/fault_point.h"
#include "collectives/transport/whole_frame.h"

namespace ringmaster::communicator {

using transport::FaultPoint;
using transport::FrameKind;
using transport::FrameReceiver;
using transport::FrameSender;

Status AgreeOnGroups(transport::LivenessMonitor* liveness, RankAndSize place, uint64_t epoch,
                     transport::Clock::time_point deadline, const std::vector<uint8_t>& mapped,
                     std::vector<uint32_t>* groups) {
  const size_t n = mapped.size();
  groups->assign(n, 0);
  auto send = [&](int rank, const void* data, size_t bytes) {
    FrameSender frame(liveness->connection(rank), epoch, 0, data, bytes, FrameKind::kGroups);
    return transport::SendFrame(liveness, &frame, bytes, 0, deadline);
  };
  auto receive = [&](int rank, void* data, size_t bytes) {
    FrameReceiver frame(liveness->connection(rank), epoch, 0, bytes, FrameKind::kGroups);
    return transport::ReceiveFrame(liveness, &frame, data, bytes, 0, deadline);
  };
  Status status;
  if (place.rank != 0) {
    status = send(0, mapped.data(), n);
    FaultPoint("create_groups_sent");
    if (status.ok()) status = receive(0, groups->data(), n * sizeof(uint32_t));
    return status;
  }
  std::vector<std::vector<uint8_t>> can_map(n, mapped);
  for (int rank = 1; status.ok() && rank < place.size; ++rank) {
    status = receive(rank, can_map[static_cast<size_t>(rank)].data(), n);
  }
  if (status.ok()) *groups = FormGroups(can_map);
  for (int rank = 1; status.ok() && rank < place.size; ++rank) {
    status = send(rank, groups->data(), n * sizeof(uint32_t));
    FaultPoint("create_groups_sent");
  }
  return status;
}

}  // namespace ringmaster::communicator
