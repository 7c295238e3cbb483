#include "operator/runtime/leader_election.h"

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::runtime {
namespace {

int Number(const kube::Json& object, const char* field) {
  const auto at = object.find(field);
  return at != object.end() && at->is_number_integer() ? at->get<int>() : 0;
}

bool SameTerm(std::optional<LeaseFacts> a, const std::optional<LeaseFacts>& b) {
  if (a && b) a->resource_version = b->resource_version;
  return a == b;
}

}  // namespace

LeaseFacts ReadLease(const kube::Json& lease) {
  LeaseFacts facts;
  if (const auto meta = lease.find("metadata"); meta != lease.end() && meta->is_object()) {
    facts.resource_version = fields::Text(*meta, "resourceVersion");
  }
  const auto spec = lease.find("spec");
  if (spec == lease.end() || !spec->is_object()) return facts;
  facts.holder = fields::Text(*spec, "holderIdentity");
  facts.duration_seconds = Number(*spec, "leaseDurationSeconds");
  facts.acquired = fields::Text(*spec, "acquireTime");
  facts.renewed = fields::Text(*spec, "renewTime");
  facts.transitions = Number(*spec, "leaseTransitions");
  return facts;
}

kube::Json WriteLease(const LeaseFacts& facts, const std::string& ns, const std::string& name) {
  kube::Json lease = {{"apiVersion", kube::Leases().ApiVersion()},
                      {"kind", "Lease"},
                      {"metadata", {{"name", name}, {"namespace", ns}}},
                      {"spec",
                       {{"holderIdentity", facts.holder},
                        {"leaseDurationSeconds", facts.duration_seconds},
                        {"acquireTime", facts.acquired},
                        {"renewTime", facts.renewed},
                        {"leaseTransitions", facts.transitions}}}};
  if (!facts.resource_version.empty()) {
    lease["metadata"]["resourceVersion"] = facts.resource_version;
  }
  return lease;
}

void Election::Saw(const std::optional<LeaseFacts>& lease, Clock::time_point now) {
  // The holder was alive when it changed the lease. Other changes, such as an annotation, don't
  // show that.
  if (!SameTerm(lease, lease_)) changed_ = now;
  lease_ = lease;
  known_ = true;
  if (leading_ && holder() != options_.identity) leading_ = false;
}

void Election::Wrote(const LeaseFacts& lease, Clock::time_point asked) {
  lease_ = lease;
  known_ = true;
  changed_ = asked;
  leading_ = lease.holder == options_.identity;
  renewed_ = asked;
}

Election::Step Election::Next(Clock::time_point now) const {
  if (!known_) return Step::kLook;
  if (!lease_) return Step::kCreate;
  if (leading_) return Step::kRenew;
  // The lease is left from an earlier process with our identity, so no one leads by it.
  if (lease_->holder.empty() || lease_->holder == options_.identity) return Step::kTake;
  const auto duration =
      lease_->duration_seconds > 0
          ? std::chrono::milliseconds(std::chrono::seconds(lease_->duration_seconds))
          : options_.lease_duration;
  return now - changed_ >= duration ? Step::kTake : Step::kWait;
}

LeaseFacts Election::Claim(const std::string& wall) const {
  LeaseFacts claim;
  if (lease_) claim = *lease_;
  if (claim.holder != options_.identity) {
    claim.acquired = wall;
    if (lease_) ++claim.transitions;
  } else if (claim.acquired.empty()) {
    claim.acquired = wall;
  }
  claim.holder = options_.identity;
  claim.duration_seconds = std::max(
      1,
      static_cast<int>(std::chrono::ceil<std::chrono::seconds>(options_.lease_duration).count()));
  claim.renewed = wall;
  return claim;
}

LeaseFacts Election::Release(const std::string& wall) const {
  LeaseFacts release = Claim(wall);
  release.holder.clear();
  release.duration_seconds = 1;
  return release;
}

}  // namespace ringmaster::runtime
