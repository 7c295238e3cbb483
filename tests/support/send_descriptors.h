// Sends more descriptors with a message than the library itself ever does.
#ifndef RINGMASTER_TESTS_SUPPORT_SEND_DESCRIPTORS_H_
#define RINGMASTER_TESTS_SUPPORT_SEND_DESCRIPTORS_H_

#include <sys/socket.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::support {

// `fd`: a unix socket. False: it takes nothing.
inline bool SendWithDescriptors(int fd, std::string_view bytes, std::span<const int> attached) {
  std::vector<char> control(CMSG_SPACE(attached.size_bytes()));  // new memory suits any type
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(attached.size_bytes());
  std::memcpy(CMSG_DATA(header), attached.data(), attached.size_bytes());
  return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace ringmaster::support

#endif  // RINGMASTER_TESTS_SUPPORT_SEND_DESCRIPTORS_H_
