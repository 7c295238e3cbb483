// Observes a job once: what the API server has about it, and what its sidecars answer.
//
// Thread rule: free functions that block; nothing is kept.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/inspection/connection.h"
#include "operator/inspection/job_inspection.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::inspection {

kube::Result<kube::Json> ReadJob(const Connection& to, const std::string& ns,
                                 const std::string& name);
kube::Result<std::vector<kube::Json>> ReadPods(const Connection& to, const std::string& ns,
                                               const std::string& job);
// The pods and what their sidecars say, all of them asked at the same time.
kube::Result<Inspection> Inspect(const Connection& to, kube::Json job);
// The same of a job of the connection's namespace, by its name.
kube::Result<Inspection> Look(const Connection& to, const std::string& name);
// What the sidecars of these pods say, by pod, asked at the same time and straight. Asked are those
// that run at the address that they are known to have. Of the view and its changes only the one
// that knows most tells (KnowsMore): each tells all of them, and there may be very many pods.
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
// The events of the job and of its pods; of very many pods those of the first ones, before all of
// those that are not well. What is left out, or can't be listed, is said on standard error.
void AddEvents(const Connection& to, Inspection* inspection);

// The token for the sidecars' status. Empty if there is none or we may not read it; the latter is
// printed to standard error. What the API server knows is shown in either case.
std::string TokenOf(const Connection& to, const std::string& ns, const std::string& job);

}  // namespace ringmaster::inspection
