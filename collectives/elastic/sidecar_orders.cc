#include "collectives/elastic/sidecar_orders.h"

#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "collectives/elastic/timeline_request.h"
#include "collectives/elastic/view_frame.h"
#include "common/ring_key/ring_key.h"

namespace ringmaster::elastic {
namespace {

engine::Membership ExpectedFrom(const nlohmann::json& frame) {
  engine::Membership expected;
  expected.rank = frame.value("rank", 0);
  expected.size = frame.value("size", 1);
  expected.local_rank = frame.value("localRank", 0);
  expected.local_size = frame.value("localSize", 1);
  expected.cross_size = 1;
  return expected;
}

}  // namespace

nlohmann::json SidecarOrders::Hello() {
  nlohmann::json hello = registration_->Hello(endpoint_->Address());
  // The sidecar asks only the workers that say so: others would not know the frame.
  if (timeline_ != nullptr && timeline_->keeps_recent()) hello["timeline"] = true;
  return hello;
}

nlohmann::json SidecarOrders::PingFields() { return facts_->Fields(engine_->info()); }

void SidecarOrders::OnFrame(const nlohmann::json& frame) {
  const std::string type = frame.at("t");
  if (type == "welcome") return OnWelcome(frame);
  if (type == "promoted") return OnPromoted(frame);
  if (type == "view") return OnView(frame);
  if (type == "stop") return engine_->PostStop(frame.at("epoch").get<uint64_t>());
  if (type == "arm") return engine_->PostArmed(frame.at("epoch").get<uint64_t>(), true);
  if (type == "timeline") return OnTimeline(frame);
  if (type == "left") return OnLeft(frame);
  if (type == "error") return OnError(frame);
  std::fprintf(stderr, "ringmaster: unknown frame '%s' from the sidecar ignored\n", type.c_str());
}

void SidecarOrders::OnTimeline(const nlohmann::json& frame) {
  if (timeline_ == nullptr) return;
  const TimelineRequest request = ReadTimelineRequest(frame);
  std::vector<std::string> pieces;
  try {
    pieces = timeline_->Recent(request.recent);
  } catch (const std::bad_alloc&) {  // not worth ending a training for
    pieces = {""};
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    frames_->TimelinePiece(request.number, pieces[i], i + 1 == pieces.size());
}

void SidecarOrders::OnLeft(const nlohmann::json& frame) {
  engine_->PostEnd(
      {RM_ERR_LEFT, "this worker has left the job: " + frame.value("reason", "drained")});
}

void SidecarOrders::OnError(const nlohmann::json& frame) {
  const std::string message = frame.value("message", "the sidecar gave up");
  engine_->PostEnd({RM_ERR_INTERNAL, message});
  registration_->Failed(message);
}

void SidecarOrders::OnWelcome(const nlohmann::json& frame) {
  if (!TakeRingKey(frame)) return;
  facts_->SayGpuAgain();
  const Role role = RoleIn(frame);
  if (role == Role::kJoining) {
    // The worker is new, or it was dropped by a wrong suspicion while the connection was down. The
    // state that it holds doesn't count any more.
    entry_->Unfence();
    engine_->PostDropped("the sidecar calls this worker a joiner: the job goes on without it");
  }
  if (role != Role::kMember) engine_->ExpectMembership(ExpectedFrom(frame));
  const WorkerRegistration::Repeat repeat = registration_->Welcomed(frame);
  SayAgain(repeat, rest_->Welcomed(frame.value("rests", false)));
}

void SidecarOrders::SayAgain(const WorkerRegistration::Repeat& repeat,
                             const RestStatus::Repeat& rest) {
  if (repeat.enter) entry_->AskAgain();
  for (const auto& trouble : repeat.troubles) frames_->Trouble(trouble);
  if (rest.resting_epoch != 0) {
    frames_->Resting(rest.resting_epoch);
    // The script may have begun again meanwhile, and its `woken` may have gone before this
    // `resting`. So it is sent once more.
    if (rest_->resting() == 0) frames_->Woken();
  }
  if (rest.finished_epoch != 0) frames_->Finished(rest.finished_epoch);
  if (repeat.boundary_epoch != 0 && repeat.boundary_step == engine_->info().step)
    frames_->Boundary(repeat.boundary_epoch, repeat.boundary_step);
}

// A welcome without a key leaves the key of an earlier welcome as it is.
bool SidecarOrders::TakeRingKey(const nlohmann::json& frame) {
  const auto text = frame.find("ringKey");
  if (text == frame.end()) return true;
  const auto key = text->is_string() ? ring_key::Decode(text->get_ref<const std::string&>())
                                     : std::optional<std::string>();
  const Status taken =
      key ? endpoint_->SetKey(*key) : Status(RM_ERR_INTERNAL, "the sidecar's ringKey is no key");
  if (taken.ok()) return true;
  engine_->PostEnd(taken);
  registration_->Failed(taken.message());
  return false;
}

void SidecarOrders::OnPromoted(const nlohmann::json& frame) {
  entry_->Unfence();
  engine_->PostDropped("promoted");
  engine_->ExpectMembership(ExpectedFrom(frame));
  registration_->Promoted(frame);
}

void SidecarOrders::OnView(const nlohmann::json& frame) {
  engine::WorkerView view;
  Status status = ParseView(frame.at("view"), frame.value("self", -1), &view);
  if (!status.ok()) {
    return engine_->PostEnd(
        {RM_ERR_INTERNAL, "the sidecar sent a view that can't be read: " + status.message()});
  }
  // A fenced worker whose sidecar still counts on it in the view that it has left is not let in by
  // that: it goes on to wait, and ends if nothing else comes.
  if (view.self >= 0 && !registration_->Given(view.epoch)) return entry_->FenceAgain();
  entry_->Unfence();
  const bool enter_again = view.self < 0 && registration_->Dropped();
  engine_->PostView(std::move(view));
  if (enter_again) entry_->AskAgain();
}

void SidecarOrders::OnHeardAgain() { registration_->SidecarHeard(); }

void SidecarOrders::OnFenced(const std::string& why) {
  entry_->Fence();
  engine_->PostDropped(why);
  if (registration_->Dropped()) entry_->AskAgain();
}

}  // namespace ringmaster::elastic
