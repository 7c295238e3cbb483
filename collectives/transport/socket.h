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

// kNoDescriptor: this process has no room for a socket, which says nothing about the peer.
enum class DialResult { kConnected, kInProgress, kRefused, kFailed, kNoDescriptor };
// Nonblocking; after kInProgress wait for POLLOUT and call DialFinished.
DialResult DialTcp(const std::string& host_port, UniqueFd* out, std::string* why);
DialResult DialUnix(const std::string& name, UniqueFd* out, std::string* why);
DialResult DialFinished(int fd, std::string* why);

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
