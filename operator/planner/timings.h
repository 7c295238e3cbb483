// How long the planner waits for what. Constants only.
#pragma once

#include <chrono>

namespace ringmaster::planner {

// After minReplicas pods are ready, how long the others are waited for since the last of them
// became ready.
inline constexpr std::chrono::seconds kSettle{3};
// A pod that ended with 0: how long its sidecar's word that all ranks agreed to end may take.
inline constexpr std::chrono::seconds kFinishGrace{10};

// For so long a view's coordinator may take to report it, before other sidecars are asked for it.
inline constexpr std::chrono::seconds kCoordinatorReports{1};

// So long an operator that has taken a job over waits for sidecars before their silence means
// anything: they may need 10 s to notice that the former one is gone, and some more to find it.
inline constexpr std::chrono::seconds kSidecarsReturn{20};

// Sidecars that are told that all pods leave may take so long to say that they know: those of
// earlier versions never do.
inline constexpr std::chrono::seconds kAllHear{3};

// No view was able to train for so long: then, and only then, there is a recovery from quorum loss.
inline constexpr std::chrono::seconds kStallPatience{5};
// For so long that nobody trains is not even said.
inline constexpr std::chrono::seconds kStallSaid{1};

}  // namespace ringmaster::planner
