#include "common/logging/grpc_log.h"

#include <grpc/support/log.h>

#include <string_view>

#include "common/logging/log.h"

namespace ringmaster::logging {
namespace {

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void Print(gpr_log_func_args* line) {
  logging::Debug("grpc at={}:{} severity={} text={}", BaseName(line->file), line->line,
                 gpr_log_severity_string(line->severity), Value(line->message));
}

void PrintNothing(gpr_log_func_args*) {}

}  // namespace

GrpcLines::GrpcLines() { gpr_set_log_function(Print); }
// gRPC's threads may still log after main(), when our logger is gone.
GrpcLines::~GrpcLines() { gpr_set_log_function(PrintNothing); }

}  // namespace ringmaster::logging
