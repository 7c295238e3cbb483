#include "operator/scheduler/reservation.h"

#include "operator/api/object_key.h"

namespace ringmaster::scheduler {
namespace {

// Most jobs tried in one pass: each try costs a look at all nodes and pods.
constexpr int kMostReservationsTried = 16;

}  // namespace

void Reservation::MakeFor(const WaitingJob& waiting) {
  if (job_ != nullptr) return;
  if (grants_.BoundOf(waiting.shapes.front()) == 0) return;  // nothing is free that could be kept
  // Of many jobs that are alike and can never fit only the first costs a try.
  const ShapePtr& shape = waiting.shapes.front();
  const auto alone = alone_.find(shape);
  if (alone != alone_.end() && alone->second < waiting.request.Least()) return;
  if (tried_++ >= kMostReservationsTried) return;
  auto prospect = std::make_shared<const Prospect>(capacity_, shape);
  alone_[shape] = prospect->Alone();
  if (prospect->Beside(waiting.request.job) < waiting.request.Least()) return;
  job_ = &waiting;
  prospect_ = std::move(prospect);
  Hold();
  if (paths_.empty()) Lift();
}

void Reservation::GrowBeside(WaitingJob* waiting, int target) {
  const int before = waiting->answer.fit;
  grants_.Grow(waiting, target);
  if (waiting->answer.fit > before || !IsInTheWayOf(*waiting)) return;
  Release();
  grants_.ForgetBounds();
  grants_.Grow(waiting, target);
  if (waiting->answer.fit == before) refused_.insert(waiting->shapes[before]);
  Hold();
}

bool Reservation::IsInTheWayOf(const WaitingJob& waiting) const {
  const AdmissionRequest& request = waiting.request;
  if (job_ == nullptr || waiting.answer.fit >= request.Most()) return false;
  if (request.state != GangState::kRuns) return false;
  if (refused_.count(waiting.shapes[waiting.answer.fit]) != 0) return false;
  return prospect_->Beside(request.job) < job_->request.Least();
}

void Reservation::Hold() {
  const AdmissionRequest& request = job_->request;
  for (int i = 0; i < request.Least(); ++i) {
    const auto node = capacity_.nodes().Place(*job_->shapes[i]);
    if (!node) break;
    capacity_.Hold(*request.pods[i], job_->shapes[i], *node, request.job);
    paths_.push_back(api::KeyOf(*request.pods[i]));
  }
}

void Reservation::Release() {
  for (const std::string& path : paths_) capacity_.Undo(path);
  paths_.clear();
}

void Reservation::Lift() {
  Release();
  job_ = nullptr;
  prospect_.reset();
  refused_.clear();
}

}  // namespace ringmaster::scheduler
