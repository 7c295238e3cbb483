// Waiting for what can only be looked at from outside: another process, an API server. Where there
// is something to be notified by, wait for that.
#ifndef RINGMASTER_TESTS_SUPPORT_UNTIL_H_
#define RINGMASTER_TESTS_SUPPORT_UNTIL_H_

#include <chrono>
#include <thread>

namespace ringmaster::support {

// A test that waits longer than this has failed. (The garbage collector of a real cluster looks for
// new kinds every 30 s.)
inline constexpr std::chrono::seconds kPatience{75};

// Looks until `so` is true; false: it never was.
template <class F>
bool Until(F&& so, std::chrono::milliseconds patience = kPatience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace ringmaster::support

#endif  // RINGMASTER_TESTS_SUPPORT_UNTIL_H_
