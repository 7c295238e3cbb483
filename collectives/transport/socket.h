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

// What came of dialling. The first two are no errors. kBusy: too many wait at that listener, so its
// process lives. kNoDescriptor: this process has no room for a socket, which says nothing about the
// peer.
enum class DialResult { kConnected, kInProgress, kRefused, kBusy, kFailed, kNoDescriptor };
// Nonblocking; after kInProgress wait for POLLOUT and call DialFinished. An error
// (RM_ERR_UNAVAILABLE, or RM_ERR_INVALID for what is no address) says why there is no connection,
// and *result of which kind that is.
Status DialTcp(const std::string& host_port, UniqueFd* out, DialResult* result);
Status DialUnix(const std::string& name, UniqueFd* out, DialResult* result);
Status DialFinished(int fd, DialResult* result);

void SetUpTcp(int fd);
bool SameUser(int unix_fd);

// One message of `bytes` with an optional descriptor. True if all of it went out at once (it fits
// any socket buffer).
bool SendSmall(int fd, const void* data, size_t bytes, int attached_fd = -1);

enum class IoResult { kDone, kAgain, kClosed };
// Adds to *got until `bytes` are there. An attached descriptor goes to *attached.
IoResult RecvSmall(int fd, void* data, size_t bytes, size_t* got, UniqueFd* attached);

// Does a process listen on that abstract socket?
bool UnixListenerExists(const std::string& name);

// Waits for `events`; false: the deadline has passed.
bool WaitFor(int fd, short events, Clock::time_point deadline);

// Milliseconds until `deadline` for poll(), at least 0, at most `most`.
int PollMillis(Clock::time_point deadline, int most);

}  // namespace ringmaster::transport
