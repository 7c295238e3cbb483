#include "common/process/file_limit.h"

#include <sys/resource.h>

namespace ringmaster::process {
namespace {

bool raised = false;
rlimit before{};

}  // namespace

void RaiseFileLimit() {
  if (raised || getrlimit(RLIMIT_NOFILE, &before) != 0) return;
  rlimit most = before;
  most.rlim_cur = most.rlim_max;
  raised = setrlimit(RLIMIT_NOFILE, &most) == 0;
}

void RestoreFileLimit() {
  if (raised) setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace ringmaster::process
