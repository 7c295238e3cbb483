// How sidecars and operator notice that the node of their peer is cut off. Such a peer sends
// nothing any more, not even the end of its connections, and TCP would go on trying for a quarter
// of an hour. So both ends ping, and close a connection on which no answer comes.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace ringmaster::rpc {

inline constexpr int kPingMs = 5000, kPingAnswerMs = 5000;

inline void KeepAlive(grpc::ChannelArguments* client) {
  client->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  client->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
  client->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
}

// Also lets clients ping that often: by default a gRPC server takes that for an attack and closes
// the connection.
inline void KeepAlive(grpc::ServerBuilder* server) {
  server->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  server->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
  server->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  server->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingMs / 5);
}

}  // namespace ringmaster::rpc
