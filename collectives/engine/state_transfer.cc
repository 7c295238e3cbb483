#include "collectives/engine/state_transfer.h"

#include <algorithm>

#include "collectives/engine/buffer.h"
#include "collectives/engine/wire.h"

namespace ringmaster::engine {
namespace {

constexpr size_t kStateChunk = size_t{64} << 20;

Status Interrupted() { return {RM_ERR_EPOCH_MOVED, "the view was stopped"}; }

}  // namespace

StateTransfer::StateTransfer(Communicator* communicator, StateRegistry* registry, UserTasks* users,
                             Part part)
    : communicator_(communicator),
      registry_(registry),
      users_(users),
      part_(part),
      segments_(std::make_shared<std::vector<StateSegment>>()) {}

Status StateTransfer::Run() {
  if (Status s = Save(); !s.ok()) return s;
  if (Status s = ShareManifest(); !s.ok()) return s;
  if (Status s = Stage(); !s.ok()) return s;
  if (Status s = Move(); !s.ok()) return s;
  return Load();
}

Status StateTransfer::Save() {
  if (!donates()) return {};
  auto save = [registry = registry_, segments = segments_] {
    return registry->Save(segments.get());
  };
  // The donor's user stands in step_end.
  const auto deadline = UserTasks::Clock::time_point::max();
  return users_->Run(communicator_->epoch(), save, deadline, &saved_) ? Status() : Interrupted();
}

Status StateTransfer::ShareManifest() {
  ByteWriter manifest;
  manifest.Put(static_cast<uint32_t>(saved_.code()));
  manifest.PutString(saved_.message());
  manifest.Put(static_cast<uint32_t>(segments_->size()));
  for (const StateSegment& segment : *segments_) {
    manifest.PutString(segment.name);
    manifest.Put(segment.bytes);
  }
  std::vector<std::byte> bytes = manifest.bytes();
  uint64_t length = bytes.size();
  if (Status s = communicator_->Broadcast(&length, sizeof(length), part_.donor); !s.ok()) return s;
  bytes.resize(length);
  if (Status s = communicator_->Broadcast(bytes.data(), length, part_.donor); !s.ok()) return s;
  if (!donates()) ReadManifest(bytes);
  return {};
}

void StateTransfer::ReadManifest(const std::vector<std::byte>& bytes) {
  ByteReader in(bytes);
  const rm_status code = ReadStatusCode(&in);
  saved_ = {code, in.GetString()};
  segments_->resize(in.Get<uint32_t>());
  for (StateSegment& segment : *segments_) {
    segment.name = in.GetString();
    segment.bytes = in.Get<uint64_t>();
  }
}

// A joiner needs room for all segments. The other ranks drop what they receive, so they need room
// for one chunk only.
Status StateTransfer::Stage() {
  if (donates()) return {};
  uint64_t bytes = part_.has_state ? kStateChunk : 0;
  if (!part_.has_state) {
    for (const StateSegment& segment : *segments_) bytes += segment.bytes;
  }
  auto memory = Buffer::Make(bytes);
  if (memory == nullptr) return {RM_ERR_OUT_OF_MEMORY, "no memory for the state of the job"};
  std::byte* at = memory->data();
  for (StateSegment& segment : *segments_) {
    segment.data = at;
    if (!part_.has_state) at += segment.bytes;
  }
  staged_ = memory;
  return {};
}

Status StateTransfer::Move() {
  const bool keeps = donates() || !part_.has_state;
  for (const StateSegment& segment : *segments_) {
    for (uint64_t done = 0; done < segment.bytes; done += kStateChunk) {
      auto* at = static_cast<std::byte*>(segment.data) + (keeps ? done : 0);
      const size_t bytes = std::min<uint64_t>(kStateChunk, segment.bytes - done);
      if (Status s = communicator_->Broadcast(at, bytes, part_.donor); !s.ok()) return s;
    }
  }
  return {};
}

Status StateTransfer::Load() {
  loaded_ = saved_;
  if (part_.has_state || !saved_.ok()) return {};
  auto load = [registry = registry_, segments = segments_, staged = staged_] {
    return registry->Load(*segments);
  };
  const auto deadline = UserTasks::Clock::now() + part_.patience;
  return users_->Run(communicator_->epoch(), load, deadline, &loaded_) ? Status() : Interrupted();
}

Status StateTransfer::AwaitAll() {
  uint8_t mine = 1, all = 0;
  return communicator_->Allreduce(&mine, &all, 1, RM_UINT8, RM_MIN);
}

}  // namespace ringmaster::engine
