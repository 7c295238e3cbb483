// For hack/wheel: the one function for which Debian's libstdc++ asks for glibc 2.36. std::random_device calls it.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}
