// A new view: connect, learn who holds what, hand over, give state to joiners.
#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/engine/engine.h"
#include "collectives/engine/exchange.h"

namespace ringmaster::engine {
namespace {

// Long: who can't be reached is the membership protocol's to find out, and its stop ends the
// attempt.
constexpr std::chrono::seconds kConnectTimeout{60};
constexpr size_t kChunk = size_t{64} << 20;

double Seconds(Engine::Clock::duration d) { return std::chrono::duration<double>(d).count(); }

Status Interrupted() { return {RM_ERR_EPOCH_MOVED, "the view was stopped"}; }

}  // namespace

void Engine::Install(View view, Clock::time_point since) {
  {
    std::lock_guard lock(mu_);
    if (view.epoch <= std::max(view_.epoch, stopped_epoch_) || ended_) return;
  }
  if (view.self < 0) {
    view_.epoch = view.epoch;
    return Detach();
  }

  const bool first = !entered_;
  // The first view of a job, or of one that begins again: everybody has what it began with, also
  // who was welcomed as a joiner of the view that died.
  if (first && !detached_ && view.reason == "Bootstrap") has_state_ = true;
  view_ = std::move(view);
  rebuilt_pending_ = false;
  synced_ = false;
  phase_ = Phase::kNoView;
  std::shared_ptr<Communicator> communicator;
  if (Status s = Connect(view_, &communicator); !s.ok()) return;  // the next view will come
  times_.epoch = view_.epoch;
  times_.reason = view_.reason;
  times_.connect = Seconds(Clock::now() - since);
  {
    std::lock_guard lock(mu_);
    const Membership membership = MembershipOf(view_);
    membership_ = membership;
    communicator_ = communicator;
    if (mail_.stop && *mail_.stop >= view_.epoch) return communicator_.reset();
  }
  options_.listener->OnInstalled(view_.epoch, times_.connect);

  const auto redo_begin = Clock::now();
  RecoveryPlan plan;
  Reach(FaultPoint::kBeforeExchange);
  if (Status s = Recover(&plan); !s.ok()) return Break(s);
  if (phase_ == Phase::kBroken) return;
  times_.redo = Seconds(Clock::now() - redo_begin);
  redo_done_ = Clock::now();
  rebuilt_pending_ = !first;
  Enter(plan);
}

Status Engine::Connect(const View& view, std::shared_ptr<Communicator>* out) {
  CommunicatorOptions options;
  options.epoch = view.epoch;
  options.rank = view.self;
  options.peers = view.peers;
  options.connect_timeout = kConnectTimeout;
  options.on_suspect = [listener = options_.listener, epoch = view.epoch](int rank,
                                                                          const std::string& why) {
    listener->OnSuspect(epoch, rank, why);
  };
  {
    std::lock_guard lock(mu_);
    communicator_ = nullptr;
    connecting_ = std::stop_source();
    connecting_epoch_ = view.epoch;
    if (mail_.stop || mail_.end || mail_.close) connecting_.request_stop();
    options.stop = connecting_.get_token();
  }
  Status status;
  std::unique_ptr<Communicator> made;
  status = options_.communicators->Create(options, &made);
  std::lock_guard lock(mu_);
  connecting_epoch_ = 0;
  if (!status.ok()) return status;
  *out = std::move(made);
  return {};
}

Status Engine::Recover(RecoveryPlan* plan) {
  Holding mine{has_state_, boundary_ != nullptr || !entered_, next_number_, step_, {}};
  for (const Retained& r : retained_) mine.results.push_back({r.response, r.bytes, r.rows_by_rank});
  std::vector<std::vector<std::byte>> messages;
  if (Status s = ExchangeMessages(communicator_.get(), WriteHolding(mine), &messages); !s.ok())
    return s;
  std::vector<Holding> by_rank(messages.size());
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (!ReadHolding(messages[rank], &by_rank[rank])) {
      return {RM_ERR_INTERNAL,
              "rank " + std::to_string(rank) + " speaks another version of the library"};
    }
  }
  if (Status s = PlanRecovery(by_rank, plan); !s.ok()) return s;
  Reach(FaultPoint::kAfterExchange);

  for (const auto& handover : plan->handovers) {
    if (Status s = HandOver(handover); !s.ok()) return s;
    Reach(FaultPoint::kAfterHandover, handover.result.response.number);
    bool ended;
    {
      std::lock_guard lock(mu_);
      ended = ended_.has_value();
    }
    if (ended) return {RM_ERR_EPOCH_MOVED, "the job was shut down"};
  }
  negotiator_.Reset();
  new_submission_ = true;
  next_round_ = {};
  if (!plan->fresh.empty()) {
    if (Status s = SyncState(*plan); !s.ok()) return s;
    Reach(FaultPoint::kAfterSync);
  }
  return {};
}

Status Engine::HandOver(const RecoveryPlan::Handover& handover) {
  const Response& response = handover.result.response;
  const bool lacking = has_state_ && next_number_ <= response.number;
  Retained result{response, nullptr, handover.result.bytes, handover.result.rows_by_rank};
  if (result.bytes > 0) {
    if (handover.holder == view_.self) {
      const auto held = std::find_if(retained_.begin(), retained_.end(), [&](const Retained& r) {
        return r.response.number == response.number;
      });
      result.data = held->data;
    } else {
      // Also those that hold it, or need nothing, take part; what they receive is dropped.
      result.data = Buffer::Make(result.bytes);
      if (result.data == nullptr)
        return {RM_ERR_UNAVAILABLE, "no memory for a result that is handed over"};
    }
    Status s = communicator_->Broadcast(result.data->data(), result.bytes, handover.holder);
    if (!s.ok()) return s;
  }
  if (!lacking) return {};
  retained_.push_back(std::move(result));
  ++next_number_;
  Finish(retained_.back());
  return {};
}

// ---- State for joiners
// ----------------------------------------------------------------------------------------------

Status Engine::SyncState(const RecoveryPlan& plan) {
  const bool donor = view_.self == plan.donor;
  auto segments = std::make_shared<std::vector<StateSegment>>();
  Status saved;
  if (donor) {
    auto save = [state = options_.state, segments] { return state->Save(segments.get()); };
    if (!user_tasks_.Run(view_.epoch, save, &saved)) return Interrupted();
  }
  ByteWriter header;
  header.Put(static_cast<uint32_t>(saved.code()));
  header.PutString(saved.message());
  header.Put(static_cast<uint32_t>(segments->size()));
  for (const StateSegment& segment : *segments) {
    header.PutString(segment.name);
    header.Put(segment.bytes);
  }
  std::vector<std::byte> bytes = header.bytes();
  uint64_t length = bytes.size();
  if (Status s = communicator_->Broadcast(&length, sizeof(length), plan.donor); !s.ok()) return s;
  bytes.resize(length);
  if (Status s = communicator_->Broadcast(bytes.data(), length, plan.donor); !s.ok()) return s;

  std::shared_ptr<void> staged;
  if (!donor) {
    ByteReader in(bytes);
    const auto code = static_cast<rm_status>(in.Get<uint32_t>());
    saved = {code, in.GetString()};
    segments->resize(in.Get<uint32_t>());
    uint64_t total = 0;
    for (StateSegment& segment : *segments) {
      segment.name = in.GetString();
      segment.bytes = in.Get<uint64_t>();
      total += has_state_ ? 0 : segment.bytes;
    }
    // A joiner stages all of it, so that a fault in the middle leaves its memory as it was. The
    // others pass it on.
    auto memory = Buffer::Make(has_state_ ? kChunk : total);
    if (memory == nullptr) return {RM_ERR_UNAVAILABLE, "no memory for the state of the job"};
    std::byte* at = memory->data();
    for (StateSegment& segment : *segments) {
      segment.data = at;
      if (!has_state_) at += segment.bytes;
    }
    staged = memory;
  }
  for (const StateSegment& segment : *segments) {
    for (uint64_t done = 0; done < segment.bytes; done += kChunk) {
      auto* at = static_cast<std::byte*>(segment.data) + (donor || !has_state_ ? done : 0);
      const size_t part = std::min<uint64_t>(kChunk, segment.bytes - done);
      if (Status s = communicator_->Broadcast(at, part, plan.donor); !s.ok()) return s;
    }
  }

  Status loaded = saved;
  if (!has_state_ && saved.ok()) {
    auto load = [state = options_.state, segments, staged] { return state->Load(*segments); };
    if (!user_tasks_.Run(view_.epoch, load, &loaded)) return Interrupted();
  }
  // After this all know that the joiners are done: whoever leaves step_end leaves no joiner without
  // state behind.
  uint8_t mine = 1, all = 0;
  if (!has_state_ && loaded.ok()) {
    has_state_ = true;
    next_number_ = plan.next_number;
    step_ = plan.step;
    step_shown_ = step_;
    retained_.clear();
  }
  if (Status s = communicator_->Allreduce(&mine, &all, 1, RM_UINT8, RM_MIN); !s.ok()) return s;
  if (!has_state_) return loaded;
  synced_ = saved.ok();
  return {};
}

void Engine::Detach() {
  {
    std::lock_guard lock(mu_);
    communicator_ = nullptr;
  }
  phase_ = Phase::kNoView;
  const bool had_state = std::exchange(has_state_, false);
  if (view_.epoch == 0 || !had_state)
    return;  // has not been in a view yet: still waits for its first
  detached_ = true;
  entered_ = false;
  retained_.clear();
  if (boundary_) return options_.listener->OnReadyToEnter();
  for (auto& operation : pending_.TakeAll()) CompleteLocally(operation);
  user_tasks_.Notify();
}

void Engine::Enter(const RecoveryPlan& plan) {
  phase_ = Phase::kActive;
  detached_ = false;
  if (!view_.train && plan.all_at_boundary) {
    // Below minReplicas: everybody stands at a boundary already and stays there.
    return options_.listener->OnBoundary(view_.epoch, step_);
  }
  entered_ = true;
  ReleaseBoundary();
  user_tasks_.Notify();
}

}  // namespace ringmaster::engine
