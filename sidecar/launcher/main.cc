// ringmaster-launcher -- COMMAND [ARGUMENT...]: the first process of the worker container.
#include "sidecar/launcher/launcher.h"
#include "sidecar/launcher/log.h"

int main(int argc, char** argv, char** environment) {
  ringmaster::launcher::Options options;
  std::string error;
  if (!ringmaster::launcher::ParseOptions(argc, argv, environment, &options, &error)) {
    ringmaster::launcher::LogError(error);
    return 2;
  }
  return ringmaster::launcher::Launcher(std::move(options)).Run();
}
