// Observes a job once: what the API server has about it, and what its sidecars answer.
//
// Thread rule: free functions that block; nothing is kept.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/cli/connection.h"
#include "operator/cli/job_inspection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

Outcome<kube::Json> ReadJob(const Connection& to, const std::string& ns, const std::string& name);
Outcome<std::vector<kube::Json>> ReadPods(const Connection& to, const std::string& ns,
                                          const std::string& job);
// Reads the pods, and asks all their sidecars at the same time.
Outcome<Inspection> Inspect(const Connection& to, kube::Json job);
// Like Inspect, for a job of the connection's namespace.
Outcome<Inspection> Look(const Connection& to, const std::string& name);
// Asks the sidecars of these pods directly, all at the same time, and returns the answers by pod.
// It asks only those running pods whose recorded address is their own. View and changes are kept
// only from the sidecar that knows most (KnowsMore), because each sidecar reports all of them and
// there may be very many pods.
std::map<std::string, SidecarStatus> AskSidecars(const std::vector<kube::Json>& pods,
                                                 const std::string& token);
// The sidecar with the longest history of the training; empty if none has one.
std::string OldestHistory(const Inspection& inspection);
// That history, as JSON (docs/contracts.md, section 5); null if it is not available.
kube::Json HistoryOf(const Connection& to, const Inspection& inspection);
// The same, directly from the pod's own address.
kube::Json HistoryFrom(const Inspection& inspection, const std::string& token);
// Prints to standard error which sidecars did not answer, and why.
void SaySilent(const Inspection& inspection);
// If events can't be listed, prints that to standard error and adds none.
void AddEvents(const Connection& to, Inspection* inspection);

// The token for the sidecars' status. Empty if there is none or we may not read it; the latter is
// printed to standard error. What the API server knows is shown in either case.
std::string TokenOf(const Connection& to, const std::string& ns, const std::string& job);

}  // namespace ringmaster::cli
