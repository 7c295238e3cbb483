#include "collectives/algorithms/shm_peers.h"

namespace ringmaster::algorithms {

Status ShmPeers::Wait(int rank, FlagMember flag, uint64_t count) {
  if (count == 0)
    return Status();  // nothing to wait for, and the flag may still carry an older view's tag
  return liveness_->WaitFlag(&((*this)[rank].control()->*flag), tag_, count, op_number_);
}

Status ShmPeers::WaitAll(FlagMember flag, uint64_t count) {
  // Each begins with its neighbour, so that not all look at the same line.
  for (int i = 1; i < size(); ++i) {
    Status status = Wait((self_ + i) % size(), flag, count);
    if (!status.ok()) return status;
  }
  return Status();
}

// Chunk c lies in the slot that chunk c - kStageSlots has used: free when all ranks have consumed
// that one, and a flag counts what is done, so one more than the chunk's number.
Status ShmPeers::WaitForStageSlot(uint64_t chunk) {
  if (chunk < transport::kStageSlots) return Status();
  return WaitAll(&transport::ControlBlock::consumed, chunk - transport::kStageSlots + 1);
}

}  // namespace ringmaster::algorithms
