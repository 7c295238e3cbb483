// The page over HTTP on 127.0.0.1, for the user who runs a command (page_answers.h says what it
// serves).
//
// Opening the page requires the token in the printed address, so other users of the machine have no
// access. The token becomes a cookie. Requests for another host name than this one are refused,
// because another site could point its host name to our address.
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
  // `port` 0: any free port. The error is a sentence.
  static tl::expected<std::unique_ptr<UiServer>, std::string> Start(Observatory* observatory,
                                                                    int port);
  virtual ~UiServer() = default;
  // The address for people to open, with the token.
  virtual std::string address() const = 0;
};

}  // namespace ringmaster::page
