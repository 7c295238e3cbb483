// What one connection to a gRPC server may take of it, whoever made it. Connections that don't
// finish their handshake end soon.
#pragma once

#include <grpcpp/server_builder.h>

namespace ringmaster::rpc {

inline constexpr int kMostStreams = 32;  // at a time, for each connection
inline constexpr int kMostMetadataBytes = 16 << 10;
inline constexpr int kHandshakeMs = 30'000;

inline void LimitConnections(grpc::ServerBuilder* server) {
  server->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  server->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadataBytes);
  server->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
}

}  // namespace ringmaster::rpc
