// What a TrainJob changes in the pods of its runtime: podTemplateOverrides, podSpecOverrides of
// older Trainers, runtimePatches of newer ones. Pure.
#pragma once

#include "operator/cli/convert_parts.h"

namespace ringmaster::cli::conversion {

// A pod template with all that the TrainJob's spec adds to the pods that train, in the order in
// which it stands there; a later entry wins. Its one container has no name, image or command yet.
Json OverriddenTemplate(const Json& spec, Notes* notes);

}  // namespace ringmaster::cli::conversion
