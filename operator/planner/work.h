// What the phases of one Plan() call hand on to each other. Private to the planner.
#pragma once

#include <string>
#include <vector>

#include "operator/planner/decision.h"
#include "operator/planner/planner.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

struct Verdict {
  bool succeeded = false;
  bool failed = false;
  std::string reason;
  std::string message;
  bool ended() const { return succeeded || failed; }
};

struct Work {
  const Snapshot& in;
  Decision out;
  Verdict verdict;
  bool suspended = false;
  bool finishing = false;  // all ranks agreed to end: nothing is rebuilt
  int wanted = 0;
  // What keeps the job from training that only an arbitration can mend; empty: nothing.
  std::string stall_reason;
  std::string stall_message;
  std::vector<const PodFacts*> active;   // run or are coming, and stay
  std::vector<const PodFacts*> leaving;  // drained or deleted, not ended

  std::string waits_for_room;  // why gated pods stay so; empty: none does

  void LookAgainAt(Time time);
  void Say(bool warning, std::string reason, std::string message, std::string pod = "");
};

const SidecarFacts* FindSidecar(const Snapshot& in, const std::string& pod_uid);
const PodFacts* FindPod(const Snapshot& in, const std::string& pod_uid);
bool InView(const Snapshot& in, const std::string& pod_uid);
// The pod can take no more part in anything: ended, or its object is gone.
bool IsGone(const Snapshot& in, const std::string& pod_uid);
bool IsAccounted(const Snapshot& in, const std::string& pod_uid);
// Why a pod that runs is not ready, for people.
std::string WhatIsMissing(const SidecarFacts* sidecar);
std::string Plural(std::size_t n, const std::string& noun);

void CountEnds(Work& work);
void Judge(Work& work);
void CleanUp(Work& work);
void Size(Work& work);
void Admit(Work& work);
void MakeView(Work& work);
void Arbitrate(Work& work);
// Attending pods that can begin a lineage: ready, not leaving, and where `fresh` with workers that
// have been in no view. Null: not enough of them yet.
membership::ViewPtr FoundingOf(Work& work, std::uint64_t lineage);
void TellSidecars(Work& work);
void WriteStatus(Work& work);

}  // namespace ringmaster::planner
