// Status: the result of every function of the C++ API that can fail.
//
// Thread rule: a value.
#pragma once

#include <string>
#include <utility>

#include "ringmaster/types.h"

namespace ringmaster {

// Success, or an error: `code` tells the caller what to do, `message` tells people why.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(rm_status code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == RM_OK; }
  rm_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  rm_status code_ = RM_OK;
  std::string message_;
};

}  // namespace ringmaster
