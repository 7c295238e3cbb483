// How long a message between operator and sidecars may be: a proposal to the record has two views
// as JSON, 10 MB of them in the largest job that is accepted. gRPC's own limit is 4 MiB.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace ringmaster::rpc {

// What the codecs take, too (fields::Limits of common/fields/parse.h).
inline constexpr int kMostMessageBytes = 16 << 20;

inline void LimitMessages(grpc::ChannelArguments* client) {
  client->SetMaxReceiveMessageSize(kMostMessageBytes);
}

inline void LimitMessages(grpc::ServerBuilder* server) {
  server->SetMaxReceiveMessageSize(kMostMessageBytes);
}

}  // namespace ringmaster::rpc
