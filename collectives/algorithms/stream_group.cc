#include "collectives/algorithms/stream_group.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "collectives/algorithms/reduce.h"
#include "collectives/element/element.h"
#include "collectives/transport/fault_point.h"

namespace ringmaster::algorithms {

using transport::FaultPoint;
using transport::FrameReceiver;
using transport::FrameSender;
using transport::Progress;

namespace {

// The size of the buffer in which received bytes wait for their reduction. It fits the second-level
// cache.
constexpr size_t kScratchBytes = 128 << 10;
// Up to this size the number of messages determines the time, above it their bytes do.
constexpr size_t kDoublingBytes = 64 << 10;
constexpr size_t kTreeBroadcastBytes = 32 << 10;
constexpr size_t kBroadcastSegmentBytes = 256 << 10;

}  // namespace

StreamGroup::StreamGroup(transport::LivenessMonitor* liveness, uint64_t epoch,
                         std::vector<int> ranks, int self)
    : liveness_(liveness), epoch_(epoch), ranks_(std::move(ranks)), self_(self) {}

// ---- the transfer ----

class StreamGroup::TransferLoop {
 public:
  TransferLoop(StreamGroup* group, const Transfer& transfer) : group_(*group), transfer_(transfer) {
    StartSending();
    StartReceiving();
  }

  Status Go() {
    for (int idle = 0; sending() || receiving();) {
      Progress sent = sending() ? Send() : Progress::kNone;
      if (sent != Progress::kNone && sent != Progress::kSome) return Explain(sent, transfer_.to);
      Progress got = receiving() ? Receive() : Progress::kNone;
      if (got != Progress::kNone && got != Progress::kSome) return Explain(got, transfer_.from);
      if (sent == Progress::kSome || got == Progress::kSome) {
        idle = 0;
        continue;
      }
      Status status = Wait(idle++);
      if (!status.ok()) return status;
    }
    return Status();
  }

 private:
  bool sending() const { return out_ < transfer_.out_segments.size(); }
  bool receiving() const { return in_ < transfer_.in_segments.size(); }

  Status Explain(Progress progress, int member) {
    return group_.liveness_->Explain(progress, group_.ranks_[static_cast<size_t>(member)]);
  }

  void StartSending() {
    if (!sending()) return;
    const Segment& segment = transfer_.out_segments[out_];
    sender_ = FrameSender(group_.ConnectionTo(transfer_.to), group_.epoch_, group_.op_number_,
                          segment.data, segment.bytes);
  }
  void StartReceiving() {
    if (!receiving()) return;
    const Segment& segment = transfer_.in_segments[in_];
    receiver_ = FrameReceiver(group_.ConnectionTo(transfer_.from), group_.epoch_, group_.op_number_,
                              segment.bytes);
    finished_ = 0;
    held_ = 0;
  }

  // How many bytes of the current outgoing segment may be sent now.
  size_t Available() const {
    size_t bytes = transfer_.out_segments[out_].bytes;
    if (out_ < transfer_.ready) return bytes;
    size_t source = out_ - transfer_.ready;
    if (source < in_) return bytes;
    return source == in_ ? finished_ : 0;
  }

  Progress Send() {
    size_t available = Available();
    if (available == 0 && transfer_.out_segments[out_].bytes > 0) return Progress::kNone;
    if (available == 0 && out_ >= transfer_.ready && out_ - transfer_.ready >= in_)
      return Progress::kNone;
    Progress progress = sender_.Push(available);
    if (sender_.done()) {
      ++out_;
      FaultPoint("stream_after_send");
      StartSending();
    } else if (progress == Progress::kSome) {
      FaultPoint("stream_half_sent");
    }
    return progress;
  }

  Progress Receive() {
    const Segment& segment = transfer_.in_segments[in_];
    Progress progress =
        segment.other == nullptr ? ReceivePlain(segment) : ReceiveAndReduce(segment);
    if (receiver_.done()) {
      ++in_;
      FaultPoint("stream_after_receive");
      StartReceiving();
    }
    return progress;
  }

  Progress ReceivePlain(const Segment& segment) {
    return receiver_.Pull(segment.data + finished_, segment.bytes - finished_, &finished_);
  }

  Progress ReceiveAndReduce(const Segment& segment) {
    std::vector<std::byte>& scratch = group_.scratch_;
    if (scratch.empty()) scratch.resize(kScratchBytes);
    size_t got = held_;
    Progress progress = receiver_.Pull(scratch.data() + held_, scratch.size() - held_, &got);
    size_t element_bytes = element::Size(transfer_.how->dtype);
    size_t elements = got / element_bytes;
    held_ = got;
    if (elements > 0) {
      const void* sources[] = {scratch.data(), segment.other + finished_};
      Reduce(segment.data + finished_, sources, elements, transfer_.how->dtype, transfer_.how->op,
             segment.last ? transfer_.how->divisor : 1);
      size_t used = elements * element_bytes;
      finished_ += used;
      held_ = got - used;  // part of an element: the rest comes with the next bytes
      std::memmove(scratch.data(), scratch.data() + used, held_);
    }
    return progress;
  }

  Status Wait(int idle) {
    pollfd wanted[2];
    size_t count = 0;
    bool can_send = sending() && (out_ < transfer_.ready || Available() > sender_.sent());
    if (can_send) wanted[count++] = {group_.ConnectionTo(transfer_.to)->fd(), POLLOUT, 0};
    if (receiving()) wanted[count++] = {group_.ConnectionTo(transfer_.from)->fd(), POLLIN, 0};
    return group_.liveness_->WaitIo({wanted, count}, idle, group_.op_number_);
  }

  StreamGroup& group_;
  const Transfer& transfer_;
  FrameSender sender_;
  FrameReceiver receiver_;
  size_t out_ = 0;       // index of the segment being sent
  size_t in_ = 0;        // index of the segment being received
  size_t finished_ = 0;  // bytes of the incoming segment that are in place, reduced
  size_t held_ = 0;      // bytes in scratch
};

Status StreamGroup::Run(const Transfer& transfer) { return TransferLoop(this, transfer).Go(); }

Status StreamGroup::Exchange(int peer, const void* send, void* recv, size_t bytes) {
  Segment out{static_cast<std::byte*>(const_cast<void*>(send)), bytes};
  Segment in{static_cast<std::byte*>(recv), bytes};
  return Run({peer, peer, {&out, 1}, {&in, 1}, 1, nullptr});
}

Status StreamGroup::SendTo(int peer, const void* data, size_t bytes) {
  Segment out{static_cast<std::byte*>(const_cast<void*>(data)), bytes};
  return Run({peer, peer, {&out, 1}, {}, 1, nullptr});
}

Status StreamGroup::ReceiveFrom(int peer, void* data, size_t bytes) {
  Segment in{static_cast<std::byte*>(data), bytes};
  return Run({peer, peer, {}, {&in, 1}, 0, nullptr});
}

// ---- allreduce ----

Status StreamGroup::Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                              uint64_t op_number) {
  op_number_ = op_number;
  size_t bytes = count * element::Size(how.dtype);
  bool small = bytes <= kDoublingBytes;
  FaultPoint("stream_before_send");
  Status status =
      small ? RecursiveDoubling(in, out, count, how) : RingAllreduce(in, out, count, how);
  if (status.ok()) FaultPoint("stream_before_return");
  return status;
}

// The ranks beyond a power of two give their data to a neighbour first and get the result from it
// afterwards.
Status StreamGroup::RecursiveDoubling(const void* in, void* out, size_t count,
                                      const Reduction& how) {
  size_t bytes = count * element::Size(how.dtype);
  if (out != in && bytes > 0) std::memcpy(out, in, bytes);
  arrived_.resize(std::max(arrived_.size(), bytes));
  int power = 1;
  while (power * 2 <= size()) power *= 2;
  int extra = size() - power;
  if (self_ < 2 * extra && self_ % 2 == 1) {
    Status status = SendTo(self_ - 1, out, bytes);
    return status.ok() ? ReceiveFrom(self_ - 1, out, bytes) : status;
  }
  auto combine = [&](const void* first, const void* second) {
    const void* sources[] = {first, second};
    Reduce(out, sources, count, how.dtype, how.op);
  };
  Status status;
  if (self_ < 2 * extra) {
    status = ReceiveFrom(self_ + 1, arrived_.data(), bytes);
    if (!status.ok()) return status;
    combine(out, arrived_.data());
  }
  int vrank = self_ < 2 * extra ? self_ / 2 : self_ - extra;
  for (int mask = 1; mask < power; mask *= 2) {
    int partner = vrank ^ mask;
    int member = partner < extra ? partner * 2 : partner + extra;
    status = Exchange(member, out, arrived_.data(), bytes);
    if (!status.ok()) return status;
    // Both sides use the same order of operands.
    partner > vrank ? combine(out, arrived_.data()) : combine(arrived_.data(), out);
  }
  if (how.divisor > 1) {
    const void* sources[] = {out};
    Reduce(out, sources, count, how.dtype, how.op, how.divisor);
  }
  return self_ < 2 * extra ? SendTo(self_ + 1, out, bytes) : Status();
}

// Step s sends segment (self - s) and receives segment (self - s - 1). The first n-1 steps reduce,
// the others only pass on. So what a step sends is what came in the step before.
Status StreamGroup::RingAllreduce(const void* in, void* out, size_t count, const Reduction& how) {
  size_t n = static_cast<size_t>(size());
  size_t element_bytes = element::Size(how.dtype);
  size_t steps = 2 * (n - 1);
  auto* source = static_cast<const std::byte*>(in);
  auto* result = static_cast<std::byte*>(out);
  std::vector<Segment> out_segments(steps), in_segments(steps);
  for (size_t s = 0; s < steps; ++s) {
    auto segment = [&](size_t k) {
      size_t begin = count * k / n * element_bytes;
      return Segment{result + begin, count * (k + 1) / n * element_bytes - begin};
    };
    size_t self = static_cast<size_t>(self_);
    out_segments[s] = segment((self + 2 * n - s) % n);
    in_segments[s] = segment((self + 2 * n - s - 1) % n);
    if (s < n - 1) {
      in_segments[s].other = source + (in_segments[s].data - result);
      in_segments[s].last = s == n - 2;
    }
  }
  out_segments[0].data = const_cast<std::byte*>(source) + (out_segments[0].data - result);
  int next = (self_ + 1) % size();
  int previous = (self_ + size() - 1) % size();
  return Run({next, previous, out_segments, in_segments, 1, &how});
}

// ---- broadcast and allgather ----

Status StreamGroup::Broadcast(void* data, size_t bytes, int root, uint64_t op_number) {
  op_number_ = op_number;
  FaultPoint("stream_before_send");
  return bytes <= kTreeBroadcastBytes ? TreeBroadcast(data, bytes, root)
                                      : ChainBroadcast(data, bytes, root);
}

Status StreamGroup::TreeBroadcast(void* data, size_t bytes, int root) {
  int vrank = (self_ - root + size()) % size();
  int mask = 1;
  while (mask < size() && (vrank & mask) == 0) mask *= 2;
  if (vrank != 0) {
    Status status = ReceiveFrom((vrank - mask + root) % size(), data, bytes);
    if (!status.ok()) return status;
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (vrank + mask >= size()) continue;
    Status status = SendTo((vrank + mask + root) % size(), data, bytes);
    if (!status.ok()) return status;
  }
  return Status();
}

Status StreamGroup::ChainBroadcast(void* data, size_t bytes, int root) {
  std::vector<Segment> segments;
  for (size_t at = 0; at < bytes; at += kBroadcastSegmentBytes) {
    segments.push_back(
        {static_cast<std::byte*>(data) + at, std::min(kBroadcastSegmentBytes, bytes - at)});
  }
  int vrank = (self_ - root + size()) % size();
  Transfer transfer;
  if (vrank + 1 < size()) {
    transfer.to = (self_ + 1) % size();
    transfer.out_segments = segments;
  }
  if (vrank > 0) {
    transfer.from = (self_ + size() - 1) % size();
    transfer.in_segments = segments;
  } else {
    transfer.ready = segments.size();
  }
  return Run(transfer);
}

Status StreamGroup::Allgatherv(std::span<const std::vector<std::span<std::byte>>> blocks,
                               uint64_t op_number) {
  op_number_ = op_number;
  FaultPoint("stream_before_send");
  size_t n = blocks.size();
  std::vector<Segment> out_segments, in_segments;
  auto append = [&](std::vector<Segment>* to, size_t k) {
    for (const auto& part : blocks[k % n]) to->push_back({part.data(), part.size()});
  };
  for (size_t s = 0; s + 1 < n; ++s) {
    append(&out_segments, static_cast<size_t>(self_) + n - s);
    append(&in_segments, static_cast<size_t>(self_) + 2 * n - s - 1);
  }
  size_t ready = blocks[static_cast<size_t>(self_)].size();
  return Run({(self_ + 1) % size(), (self_ + size() - 1) % size(), out_segments, in_segments, ready,
              nullptr});
}

// ---- a block for each rank ----

// The first half of the ring: block k starts at the member after k, goes once round and ends at k,
// and each member that it passes adds its part.
Status StreamGroup::ReduceScatter(std::span<const std::span<const std::byte>> blocks, void* out,
                                  const Reduction& how, uint64_t op_number) {
  op_number_ = op_number;
  const size_t n = blocks.size();
  const size_t self = static_cast<size_t>(self_);
  std::vector<size_t> offsets(n + 1);
  for (size_t k = 0; k < n; ++k) offsets[k + 1] = offsets[k] + blocks[k].size();
  arrived_.resize(std::max(arrived_.size(), offsets[n]));
  std::vector<Segment> out_segments(n - 1), in_segments(n - 1);
  for (size_t s = 0; s + 1 < n; ++s) {
    const size_t leaves = (self + 2 * n - s - 1) % n;
    const size_t comes = (self + 2 * n - s - 2) % n;
    out_segments[s] = {arrived_.data() + offsets[leaves], blocks[leaves].size()};
    in_segments[s] = {arrived_.data() + offsets[comes], blocks[comes].size(), blocks[comes].data(),
                      s + 2 == n};
  }
  // The first block is sent from where it is, and the last one is received where it belongs.
  out_segments.front().data = const_cast<std::byte*>(blocks[(self + n - 1) % n].data());
  in_segments.back().data = static_cast<std::byte*>(out);
  FaultPoint("stream_before_send");
  Status status = Run(
      {(self_ + 1) % size(), (self_ + size() - 1) % size(), out_segments, in_segments, 1, &how});
  if (status.ok()) FaultPoint("stream_before_return");
  return status;
}

Status StreamGroup::Alltoallv(std::span<const std::span<const std::byte>> send,
                              std::span<const std::span<std::byte>> recv, uint64_t op_number) {
  op_number_ = op_number;
  FaultPoint("stream_before_send");
  for (int step = 1; step < size(); ++step) {
    const int to = (self_ + step) % size();
    const int from = (self_ + size() - step) % size();
    const auto& leaves = send[static_cast<size_t>(to)];
    const auto& comes = recv[static_cast<size_t>(from)];
    Segment out{const_cast<std::byte*>(leaves.data()), leaves.size()};
    Segment in{comes.data(), comes.size()};
    Transfer transfer{to, from, {}, {}, 1, nullptr};
    if (!leaves.empty()) transfer.out_segments = {&out, 1};
    if (!comes.empty()) transfer.in_segments = {&in, 1};
    if (Status status = Run(transfer); !status.ok()) return status;
  }
  FaultPoint("stream_before_return");
  return Status();
}

}  // namespace ringmaster::algorithms
