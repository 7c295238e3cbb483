// The answers of RestServer that go on for as long as the client listens: watches and logs.
//
// Thread rule: called on a connection's thread, which then writes the stream.
#pragma once

#include <httplib.h>

#include <atomic>
#include <memory>

#include "operator/local/server/log_file.h"
#include "operator/local/server/request_path.h"
#include "operator/local/server/table.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {

// All outlive the streams.
struct StreamSources {
  Store* store;
  const CrdSchema* crd;
  const FindLog* find_log;
  const std::atomic<bool>* stopping;  // true: every stream ends
};

void StreamWatch(const StreamSources& sources, const httplib::Request& request,
                 const ApiRequest& api, httplib::Response& response);
void StreamLog(const StreamSources& sources, const httplib::Request& request, const ApiRequest& api,
               httplib::Response& response);

}  // namespace ringmaster::local
