// The page over HTTP on 127.0.0.1, for who runs a command (page_answers.h says what it serves).
//
// Whoever opens it needs the token, which the address that is printed carries: other users of the
// machine don't get in. The token becomes a cookie, and requests for another host than this one are
// refused (a page of somebody else's that has been given our address by its name server).
//
// Thread rule: Start and the destructor from one thread; it serves on one of its own.
#pragma once

#include <memory>
#include <string>

#include "operator/page/observatory.h"
#include "tl/expected.hpp"

namespace ringmaster::page {

class UiServer {
 public:
  // `port` 0: a free one. The error is a sentence.
  static tl::expected<std::unique_ptr<UiServer>, std::string> Start(Observatory* observatory,
                                                                    int port);
  virtual ~UiServer() = default;
  // What people open, with the token.
  virtual std::string address() const = 0;
};

}  // namespace ringmaster::page
