// ringmaster-sidecar: one for each pod of a job. `ringmaster-sidecar install --to DIR` copies what
// workers need.
#include <signal.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "common/logging/grpc_log.h"
#include "common/logging/log.h"
#include "sidecar/app/install.h"
#include "sidecar/app/options.h"
#include "sidecar/app/probe.h"
#include "sidecar/app/sidecar.h"

namespace {

constexpr char kUsage[] =
    "usage: ringmaster-sidecar               run beside the workers of a pod; options come from "
    "RINGMASTER_* variables\n"
    "       ringmaster-sidecar install --to DIR   copy launcher, library and Python package into "
    "DIR\n"
    "       ringmaster-sidecar probe PATH    0 if the running sidecar answers PATH (/healthz, "
    "/readyz) with 200\n";

int Install(const char* to) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto done = ringmaster::app::Install(self.parent_path(), to);
  if (done) return 0;
  std::cerr << "ringmaster-sidecar: " << done.error() << "\n";
  return 1;
}

std::string Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

int Probe(const char* path) {
  auto options = ringmaster::app::ParseSidecarOptions(Variable);
  const std::string wrong = options ? ringmaster::app::Probe(*options, path) : options.error();
  if (wrong.empty()) return 0;
  std::cerr << "ringmaster-sidecar: " << wrong << "\n";
  return 1;
}

int Run() {
  auto options = ringmaster::app::ParseSidecarOptions(Variable);
  if (!options) {
    std::cerr << "ringmaster-sidecar: " << options.error() << "\n";
    return 2;
  }
  options->version = RINGMASTER_VERSION;
  const auto logging = ringmaster::logging::Begin(
      {.format = options->log_format,
       .level = options->log_level,
       .fields = {{"job", options->job_namespace + "/" + options->job_name},
                  {"pod", options->pod_name}}});
  if (!logging) {
    std::cerr << "ringmaster-sidecar: " << logging.error() << "\n";
    return 2;
  }
  const ringmaster::logging::GrpcLines grpc_lines;
  signal(SIGPIPE, SIG_IGN);

  asio::io_context loop(1);
  // Before anything else, because a signal that comes earlier would be lost to the first process of
  // a container.
  asio::signal_set signals(loop, SIGTERM, SIGINT);
  auto started = ringmaster::app::Sidecar::Start(&loop, *options);
  if (!started) {
    ringmaster::logging::Error("cannot start error={}",
                               ringmaster::logging::Value(started.error()));
    return 1;
  }
  std::unique_ptr<ringmaster::app::Sidecar> sidecar = std::move(*started);
  signals.async_wait([&](std::error_code cancelled, int) {
    if (!cancelled) sidecar->Terminate();
  });
  loop.run();
  const int exit_code = sidecar->exit_code();
  sidecar.reset();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return Run();
  if (argc == 4 && std::strcmp(argv[1], "install") == 0 && std::strcmp(argv[2], "--to") == 0)
    return Install(argv[3]);
  if (argc == 3 && std::strcmp(argv[1], "probe") == 0) return Probe(argv[2]);
  const bool help =
      argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0);
  (help ? std::cout : std::cerr) << kUsage;
  return help ? 0 : 2;
}
