// Sockets as the ring needs them: nonblocking, close-on-exec, errors as values. No state, any
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/transport/unique_fd.h"
#include "ringmaster/status.h"

namespace ringmaster::transport {

using Clock = std::chrono::steady_clock;

Status ErrnoStatus(const std::string& what);

// "127.0.0.1:0", "[::1]:0", "host:port"
Status ListenTcp(const std::string& host_port, UniqueFd* out, std::string* address);
// `name` in the abstract namespace: nothing in the file system, gone with the process.
Status ListenUnix(const std::string& name, UniqueFd* out);

// The outcome of dialling. The first two are no errors. kBusy: too many connections wait at that
// listener, so its process lives. kNoDescriptor: this process can't open another socket, which says
// nothing about the peer.
enum class DialResult { kConnected, kInProgress, kRefused, kBusy, kFailed, kNoDescriptor };
// They don't block; after kInProgress wait for POLLOUT and call DialFinished. An error
// (RM_ERR_UNAVAILABLE, or RM_ERR_INVALID for what is no address) says why there is no connection,
// and *result of which kind that is.
Status DialTcp(const std::string& host_port, UniqueFd* out, DialResult* result);
Status DialUnix(const std::string& name, UniqueFd* out, DialResult* result);
Status DialFinished(int fd, DialResult* result);

// Sets the options of a TCP connection of the ring: no delay, keepalive, buffer size.
void SetUpTcp(int fd);
// Whether the process at the other end of a unix socket runs as the user of this one.
bool SameUser(int unix_fd);

// Sends one message of `bytes` with an optional descriptor. True if all of it was sent at once (it
// fits any socket buffer).
bool SendSmall(int fd, const void* data, size_t bytes, int attached_fd = -1);

enum class IoResult { kDone, kAgain, kClosed };
// Receives until *got, which it raises, has reached `bytes`. A descriptor that came with them goes
// to *attached.
IoResult RecvSmall(int fd, void* data, size_t bytes, size_t* got, UniqueFd* attached);

// Whether a process listens on that abstract socket; true also if this process has no descriptor
// left to find out.
bool UnixListenerExists(const std::string& name);

// Waits for `events` on the descriptor. False: the deadline has passed, or poll() has failed.
bool WaitFor(int fd, short events, Clock::time_point deadline);

// Milliseconds until `deadline` for poll(), at least 0, at most `most`.
int PollMillis(Clock::time_point deadline, int most);

}  // namespace ringmaster::transport
