#include "collectives/algorithms/stream_group.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "collectives/algorithms/reduce.h"
#include "collectives/transport/fault_point.h"

namespace ringmaster::algorithms {

using transport::FaultPoint;
using transport::FrameReceiver;
using transport::FrameSender;
using transport::Progress;

namespace {

// What arrives waits here for its reduction: within the second-level cache.
constexpr size_t kScratchBytes = 128 << 10;
// Up to this the number of messages counts, above it their bytes.
constexpr size_t kDoublingBytes = 64 << 10;
constexpr size_t kTreeBroadcastBytes = 32 << 10;
constexpr size_t kBroadcastPieceBytes = 256 << 10;

}  // namespace

StreamGroup::StreamGroup(transport::Watch* watch, uint64_t epoch, std::vector<int> ranks, int self)
    : watch_(watch),
      epoch_(epoch),
      ranks_(std::move(ranks)),
      self_(self),
      scratch_(kScratchBytes) {}

// ---- the motion ----

class StreamGroup::Run {
 public:
  Run(StreamGroup* group, const Motion& motion) : group_(*group), motion_(motion) {
    StartSending();
    StartReceiving();
  }

  Status Go() {
    for (int idle = 0; sending() || receiving();) {
      Progress sent = sending() ? Send() : Progress::kNone;
      if (sent != Progress::kNone && sent != Progress::kSome) return Explain(sent, motion_.to);
      Progress got = receiving() ? Receive() : Progress::kNone;
      if (got != Progress::kNone && got != Progress::kSome) return Explain(got, motion_.from);
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
  bool sending() const { return out_ < motion_.out_pieces.size(); }
  bool receiving() const { return in_ < motion_.in_pieces.size(); }

  Status Explain(Progress progress, int member) {
    return group_.watch_->Explain(progress, group_.ranks_[static_cast<size_t>(member)]);
  }

  void StartSending() {
    if (!sending()) return;
    const Piece& piece = motion_.out_pieces[out_];
    sender_ = FrameSender(group_.LinkTo(motion_.to), group_.epoch_, group_.op_number_, piece.data,
                          piece.bytes);
  }
  void StartReceiving() {
    if (!receiving()) return;
    const Piece& piece = motion_.in_pieces[in_];
    receiver_ =
        FrameReceiver(group_.LinkTo(motion_.from), group_.epoch_, group_.op_number_, piece.bytes);
    finished_ = 0;
    held_ = 0;
  }

  // Bytes of the current outgoing piece that may go.
  size_t Available() const {
    size_t bytes = motion_.out_pieces[out_].bytes;
    if (out_ < motion_.ready) return bytes;
    size_t source = out_ - motion_.ready;
    if (source < in_) return bytes;
    return source == in_ ? finished_ : 0;
  }

  Progress Send() {
    size_t available = Available();
    if (available == 0 && motion_.out_pieces[out_].bytes > 0) return Progress::kNone;
    if (available == 0 && out_ >= motion_.ready && out_ - motion_.ready >= in_)
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
    const Piece& piece = motion_.in_pieces[in_];
    Progress progress = piece.other == nullptr ? ReceivePlain(piece) : ReceiveAndReduce(piece);
    if (receiver_.done()) {
      ++in_;
      FaultPoint("stream_after_receive");
      StartReceiving();
    }
    return progress;
  }

  Progress ReceivePlain(const Piece& piece) {
    return receiver_.Pull(piece.data + finished_, piece.bytes - finished_, &finished_);
  }

  Progress ReceiveAndReduce(const Piece& piece) {
    std::vector<std::byte>& scratch = group_.scratch_;
    size_t got = held_;
    Progress progress = receiver_.Pull(scratch.data() + held_, scratch.size() - held_, &got);
    size_t element_bytes = ElementBytes(motion_.how->dtype);
    size_t elements = got / element_bytes;
    held_ = got;
    if (elements > 0) {
      const void* sources[] = {scratch.data(), piece.other + finished_};
      Reduce(piece.data + finished_, sources, elements, motion_.how->dtype, motion_.how->op,
             piece.last ? motion_.how->divisor : 1);
      size_t used = elements * element_bytes;
      finished_ += used;
      held_ = got - used;  // a piece of an element: the rest comes with the next bytes
      std::memmove(scratch.data(), scratch.data() + used, held_);
    }
    return progress;
  }

  Status Wait(int idle) {
    pollfd wanted[2];
    size_t count = 0;
    bool can_send = sending() && (out_ < motion_.ready || Available() > sender_.sent());
    if (can_send) wanted[count++] = {group_.LinkTo(motion_.to)->fd(), POLLOUT, 0};
    if (receiving()) wanted[count++] = {group_.LinkTo(motion_.from)->fd(), POLLIN, 0};
    return group_.watch_->WaitIo({wanted, count}, idle, group_.op_number_);
  }

  StreamGroup& group_;
  const Motion& motion_;
  FrameSender sender_;
  FrameReceiver receiver_;
  size_t out_ = 0;       // index of the piece being sent
  size_t in_ = 0;        // index of the piece being received
  size_t finished_ = 0;  // bytes of the incoming piece that are in their place
  size_t held_ = 0;      // bytes in scratch
};

Status StreamGroup::Move(const Motion& motion) { return Run(this, motion).Go(); }

Status StreamGroup::Exchange(int peer, const void* send, void* recv, size_t bytes) {
  Piece out{static_cast<std::byte*>(const_cast<void*>(send)), bytes};
  Piece in{static_cast<std::byte*>(recv), bytes};
  return Move({peer, peer, {&out, 1}, {&in, 1}, 1, nullptr});
}

Status StreamGroup::SendTo(int peer, const void* data, size_t bytes) {
  Piece out{static_cast<std::byte*>(const_cast<void*>(data)), bytes};
  return Move({peer, peer, {&out, 1}, {}, 1, nullptr});
}

Status StreamGroup::ReceiveFrom(int peer, void* data, size_t bytes) {
  Piece in{static_cast<std::byte*>(data), bytes};
  return Move({peer, peer, {}, {&in, 1}, 0, nullptr});
}

// ---- allreduce ----

Status StreamGroup::Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                              uint64_t op_number) {
  op_number_ = op_number;
  size_t bytes = count * ElementBytes(how.dtype);
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
  size_t bytes = count * ElementBytes(how.dtype);
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
  int place = self_ < 2 * extra ? self_ / 2 : self_ - extra;
  for (int mask = 1; mask < power; mask *= 2) {
    int partner = place ^ mask;
    int member = partner < extra ? partner * 2 : partner + extra;
    status = Exchange(member, out, arrived_.data(), bytes);
    if (!status.ok()) return status;
    // The same order of operands on both sides.
    partner > place ? combine(out, arrived_.data()) : combine(arrived_.data(), out);
  }
  if (how.divisor > 1) {
    const void* sources[] = {out};
    Reduce(out, sources, count, how.dtype, how.op, how.divisor);
  }
  return self_ < 2 * extra ? SendTo(self_ + 1, out, bytes) : Status();
}

// Step s sends segment (self - s) and receives segment (self - s - 1): the first n-1 steps reduce,
// the others only pass on. So what is sent in a step is what came in the one before.
Status StreamGroup::RingAllreduce(const void* in, void* out, size_t count, const Reduction& how) {
  size_t n = static_cast<size_t>(size());
  size_t element_bytes = ElementBytes(how.dtype);
  size_t steps = 2 * (n - 1);
  auto* source = static_cast<const std::byte*>(in);
  auto* result = static_cast<std::byte*>(out);
  std::vector<Piece> out_pieces(steps), in_pieces(steps);
  for (size_t s = 0; s < steps; ++s) {
    auto segment = [&](size_t k) {
      size_t begin = count * k / n * element_bytes;
      return Piece{result + begin, count * (k + 1) / n * element_bytes - begin};
    };
    size_t self = static_cast<size_t>(self_);
    out_pieces[s] = segment((self + 2 * n - s) % n);
    in_pieces[s] = segment((self + 2 * n - s - 1) % n);
    if (s < n - 1) {
      in_pieces[s].other = source + (in_pieces[s].data - result);
      in_pieces[s].last = s == n - 2;
    }
  }
  out_pieces[0].data = const_cast<std::byte*>(source) + (out_pieces[0].data - result);
  int next = (self_ + 1) % size();
  int previous = (self_ + size() - 1) % size();
  return Move({next, previous, out_pieces, in_pieces, 1, &how});
}

// ---- broadcast and allgather ----

Status StreamGroup::Broadcast(void* data, size_t bytes, int root, uint64_t op_number) {
  op_number_ = op_number;
  FaultPoint("stream_before_send");
  return bytes <= kTreeBroadcastBytes ? TreeBroadcast(data, bytes, root)
                                      : ChainBroadcast(data, bytes, root);
}

Status StreamGroup::TreeBroadcast(void* data, size_t bytes, int root) {
  int place = (self_ - root + size()) % size();
  int mask = 1;
  while (mask < size() && (place & mask) == 0) mask *= 2;
  if (place != 0) {
    Status status = ReceiveFrom((place - mask + root) % size(), data, bytes);
    if (!status.ok()) return status;
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (place + mask >= size()) continue;
    Status status = SendTo((place + mask + root) % size(), data, bytes);
    if (!status.ok()) return status;
  }
  return Status();
}

Status StreamGroup::ChainBroadcast(void* data, size_t bytes, int root) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < bytes; at += kBroadcastPieceBytes) {
    pieces.push_back(
        {static_cast<std::byte*>(data) + at, std::min(kBroadcastPieceBytes, bytes - at)});
  }
  int place = (self_ - root + size()) % size();
  Motion motion;
  if (place + 1 < size()) {
    motion.to = (self_ + 1) % size();
    motion.out_pieces = pieces;
  }
  if (place > 0) {
    motion.from = (self_ + size() - 1) % size();
    motion.in_pieces = pieces;
  } else {
    motion.ready = pieces.size();
  }
  return Move(motion);
}

Status StreamGroup::Allgatherv(std::span<const std::vector<std::span<std::byte>>> blocks,
                               uint64_t op_number) {
  op_number_ = op_number;
  FaultPoint("stream_before_send");
  size_t n = blocks.size();
  std::vector<Piece> out_pieces, in_pieces;
  auto append = [&](std::vector<Piece>* to, size_t k) {
    for (const auto& part : blocks[k % n]) to->push_back({part.data(), part.size()});
  };
  for (size_t s = 0; s + 1 < n; ++s) {
    append(&out_pieces, static_cast<size_t>(self_) + n - s);
    append(&in_pieces, static_cast<size_t>(self_) + 2 * n - s - 1);
  }
  size_t ready = blocks[static_cast<size_t>(self_)].size();
  return Move(
      {(self_ + 1) % size(), (self_ + size() - 1) % size(), out_pieces, in_pieces, ready, nullptr});
}

}  // namespace ringmaster::algorithms
