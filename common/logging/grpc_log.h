// gRPC's own log lines, which it would print to stderr in a form of its own. What goes wrong with a
// connection comes to its user as a status, and is judged there: here it is for whoever looks for
// the cause of one.
#pragma once

namespace ringmaster::logging {

// From its construction on they are ours, on level debug. Make one in main(), after Begin().
class GrpcLines {
 public:
  GrpcLines();
  ~GrpcLines();
  GrpcLines(const GrpcLines&) = delete;
  GrpcLines& operator=(const GrpcLines&) = delete;
};

}  // namespace ringmaster::logging
