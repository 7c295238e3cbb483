#include "collectives/algorithms/shm_peers.h"

namespace ringmaster::algorithms {

Status ShmPeers::Wait(int rank, FlagMember flag, uint64_t count) {
  if (count == 0)
    return Status();  // nothing to wait for, and the flag may still carry an older view's tag
  return liveness_->WaitFlag(&((*this)[rank].control()->*flag), tag_, count, op_number_);
}

Status ShmPeers::WaitAll(FlagMember flag, uint64_t count) {
  // Each rank begins with its neighbour, so that not all poll the same cache line.
  for (int i = 1; i < size(); ++i) {
    Status status = Wait((self_ + i) % size(), flag, count);
    if (!status.ok()) return status;
  }
  return Status();
}

// Chunk c goes into the slot of chunk c - kStageSlots, which is free when all ranks have consumed
// that chunk. Chunks are numbered from 0 and the flag counts them, so it has to reach one more than
// that chunk's number.
Status ShmPeers::WaitForStageSlot(uint64_t chunk) {
  if (chunk < transport::kStageSlots) return Status();
  return WaitAll(&transport::ControlBlock::consumed, chunk - transport::kStageSlots + 1);
}

}  // namespace ringmaster::algorithms
