// Kubeconfigs, as files. Programs that they name are not run; files that they name are read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "operator/kube/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("kubeconfig", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    return -1;
  }
  (void)ringmaster::kube::LoadKubeconfig(path, "");
  (void)ringmaster::kube::LoadKubeconfig(path, "a");
  return 0;
}
