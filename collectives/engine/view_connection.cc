#include "collectives/engine/view_connection.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace ringmaster::engine {
namespace {

// Long: a rank that can't be reached is the membership protocol's to find out, and its stop ends
// the attempt.
constexpr std::chrono::seconds kConnectTimeout{60};

}  // namespace

bool ViewConnection::Takes(uint64_t epoch) const {
  return epoch > std::max(view_.epoch, stopped_epoch_);
}

Status ViewConnection::Connect(View view) {
  view_ = std::move(view);
  active_ = false;
  broken_link_ = -1;
  return host_->Connect(factory_, OptionsFor(view_));
}

CommunicatorOptions ViewConnection::OptionsFor(const View& view) {
  CommunicatorOptions options;
  options.epoch = view.epoch;
  options.rank = view.self;
  options.peers = view.peers;
  options.connect_timeout = kConnectTimeout;
  options.on_suspect = [listener = listener_, epoch = view.epoch](int rank,
                                                                  const std::string& why) {
    listener->OnSuspect(epoch, rank, why);
  };
  options.on_broken_link = [this](int rank, const std::string&) { broken_link_ = rank; };
  return options;
}

void ViewConnection::Leave() {
  active_ = false;
  host_->Drop();
}

bool ViewConnection::Stop(uint64_t epoch) {
  stopped_epoch_ = std::max(stopped_epoch_, epoch);
  return view_.epoch <= epoch;
}

bool ViewConnection::Break(const Status& why) {
  active_ = false;
  if (communicator() != nullptr) communicator()->Abort(why.message());
  // A death or a stop brings the next view. No memory or a defect can't get better by itself.
  if (why.code() != RM_ERR_EPOCH_MOVED && why.code() != RM_ERR_TIMEOUT) return false;
  // Where somebody has died others know it as well. Where a connection broke between two that live
  // nobody else does.
  if (!host_->Aborted(view_.epoch)) {
    listener_->OnBroken(view_.epoch, broken_link_, why.message());
  }
  return true;
}

}  // namespace ringmaster::engine
