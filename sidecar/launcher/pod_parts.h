// What the launcher lends to that part of it which runs the processes of the pod's slots
// (library_slots.h, foreign_slots.h).
//
// Owner: the Launcher, which outlives the borrower. Thread rule: the launcher's one thread.
#pragma once

#include <functional>
#include <string>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/link.h"
#include "sidecar/launcher/options.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/slots.h"

namespace ringmaster::launcher {

struct PodParts {
  const Options* options;
  Slots* slots;
  Children* children;
  Link* link;  // the launcher's own
  Shutdown* shutdown;
  std::function<void(int exit_code, const std::string& why)> fail;  // ends the pod
};

}  // namespace ringmaster::launcher
