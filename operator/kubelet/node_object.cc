#include "operator/kubelet/node_object.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace ringmaster::kubelet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

int CountGpus() {
  int count = 0;
  while (fs::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

}  // namespace

Json MakeNode(const NodeFigures& figures) {
  const std::string& name = figures.name;
  const int gpus = CountGpus();
  const int cpus = figures.cpus > 0
                       ? figures.cpus
                       : 64 * static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  struct sysinfo info {};
  sysinfo(&info);
  uint64_t memory = static_cast<uint64_t>(info.totalram) * info.mem_unit;
  Json amounts = {{"cpu", std::to_string(cpus)},
                  {"memory", std::to_string(memory / 1024) + "Ki"},
                  {"pods", std::to_string(figures.pods)}};
  if (gpus > 0) amounts["nvidia.com/gpu"] = std::to_string(gpus);
  return {
      {"metadata",
       {{"name", name},
        {"labels",
         {{"kubernetes.io/hostname", name},
          {"kubernetes.io/os", "linux"},
          {"topology.kubernetes.io/zone", "local"}}}}},
      {"spec", Json::object()},
      {"status",
       {{"capacity", amounts},
        {"allocatable", amounts},
        {"nodeInfo", {{"bootID", BootId()}, {"machineID", name}, {"systemUUID", name}}},
        {"addresses",
         {{{"type", "InternalIP"}, {"address", figures.address}},
          {{"type", "Hostname"}, {"address", name}}}},
        {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}}}}}}};
}

}  // namespace ringmaster::kubelet
