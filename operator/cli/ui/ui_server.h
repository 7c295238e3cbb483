// The page: its files, and what it shows as JSON and server-sent events, over HTTP on 127.0.0.1.
//
// Whoever opens it needs the token, which the address that is printed carries: other users of the
// machine don't get in. The token becomes a cookie, and requests for another host than this one are
// refused (a page of somebody else's that has been given our address by its name server).
//
//   GET /                                   the page
//   GET /api/jobs                           Observatory::Jobs()
//   GET /api/job?job=NAMESPACE/NAME         Observatory::Job()
//   GET /api/stream?job=NAMESPACE/NAME      an event with Observatory::Newer() for each look
//   GET /api/log?namespace=N&pod=P&lines=L  text
//
// Thread rule: Start and the destructor from one thread. Each open stream has a thread of its own.
#pragma once

#include <memory>
#include <string>

#include "operator/cli/ui/observatory.h"
#include "tl/expected.hpp"

namespace ringmaster::ui {

class UiServer {
 public:
  // `port` 0: a free one. The error is a sentence.
  static tl::expected<std::unique_ptr<UiServer>, std::string> Start(const Observatory* observatory,
                                                                    int port);
  virtual ~UiServer() = default;
  // What people open, with the token.
  virtual std::string address() const = 0;
};

}  // namespace ringmaster::ui
