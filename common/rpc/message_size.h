// How long a message between operator and sidecars may be. gRPC's own limit is 4 MiB, but a
// proposal to the record has two views as JSON, which take 10 MB in the largest job that is
// accepted.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace ringmaster::rpc {

// The codecs accept the same size (fields::ParseLimits of common/fields/parse_limits.h).
inline constexpr int kMostMessageBytes = 16 << 20;

inline void LimitMessages(grpc::ChannelArguments* client) {
  client->SetMaxReceiveMessageSize(kMostMessageBytes);
}

inline void LimitMessages(grpc::ServerBuilder* server) {
  server->SetMaxReceiveMessageSize(kMostMessageBytes);
}

}  // namespace ringmaster::rpc
