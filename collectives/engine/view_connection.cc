#include "collectives/engine/view_connection.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace ringmaster::engine {
namespace {

// It is long, because the membership protocol finds out that a rank can't be reached; the stop of
// the view then ends the attempt to connect.
constexpr std::chrono::seconds kConnectTimeout{60};

// Where nobody can take a silent rank's place, there is no hurry to call it dead: on a machine with
// too many processes it may be silent for seconds, and who started it ends all if it has died.
constexpr std::chrono::seconds kProbeLimitOfOnlyView{10};

}  // namespace

bool ViewConnection::Takes(uint64_t epoch) const {
  return epoch > std::max(view_.epoch, stopped_epoch_);
}

Status ViewConnection::Connect(WorkerView view) {
  view_ = std::move(view);
  active_ = false;
  broken_link_ = -1;
  return host_->Connect(factory_, OptionsFor(view_));
}

CommunicatorOptions ViewConnection::OptionsFor(const WorkerView& view) {
  CommunicatorOptions options;
  options.epoch = view.epoch;
  options.rank = view.self;
  options.peers = view.peers;
  options.connect_timeout = kConnectTimeout;
  if (view.only) options.probe_limit = kProbeLimitOfOnlyView;
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
  // After a death or a stop there is a next view. Another view does not help against a defect or
  // too little memory.
  if (why.code() != RM_ERR_EPOCH_MOVED && why.code() != RM_ERR_TIMEOUT) return false;
  // If a connection broke between two workers that live, nobody else knows that the view is over.
  // (If a worker has died others see that, too.)
  if (!host_->Aborted(view_.epoch)) {
    listener_->OnBroken(view_.epoch, broken_link_, why.message());
  }
  return true;
}

}  // namespace ringmaster::engine
