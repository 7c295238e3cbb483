// Channels that are used until they can't connect, and replaced then.
//
// gRPC would try again by itself after a pause, but it waits for its timers until a moment of the
// wall clock (1.51): after a step of that clock a pause of half a second may last for hours, and
// with it the silence between two pods. Whoever has such a channel looks at its state before each
// use, and gives each attempt to connect a deadline of its own.
#pragma once

#include <grpcpp/support/channel_arguments.h>

namespace ringmaster::rendezvous {

inline void DialOnce(grpc::ChannelArguments* arguments) {
  constexpr int kNever = 24 * 60 * 60 * 1000;
  arguments->SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kNever);
  arguments->SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kNever);
}

}  // namespace ringmaster::rendezvous
