// The C ABI's timeline.
#include "collectives/elastic/library.h"

using ringmaster::Status;
using ringmaster::elastic::CurrentWorker;
using ringmaster::elastic::Guarded;
using ringmaster::elastic::Library;
using ringmaster::elastic::NotInitialised;

extern "C" {

rm_status rm_timeline_start(const char* path) {
  return Guarded([&]() -> Status {
    if (path == nullptr || *path == '\0')
      return {RM_ERR_INVALID, "rm_timeline_start: path is empty, must name a file"};
    const auto worker = CurrentWorker();
    return worker ? worker->StartTimeline(path) : NotInitialised();
  });
}

rm_status rm_timeline_stop(void) {
  return Guarded([]() -> Status { return Library::Get().timeline.Stop(); });
}

}  // extern "C"
