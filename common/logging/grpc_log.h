// Takes over gRPC's own log lines, which gRPC would print to stderr in its own form. The code that
// uses a connection gets its errors as a status and decides there what they mean; these lines help
// people who look for the cause.
#pragma once

namespace ringmaster::logging {

// From its construction on gRPC's lines are logged by our logger, on level debug. Make one in
// main(), after Begin().
class GrpcLines {
 public:
  GrpcLines();
  ~GrpcLines();
  GrpcLines(const GrpcLines&) = delete;
  GrpcLines& operator=(const GrpcLines&) = delete;
};

}  // namespace ringmaster::logging
