// ringmaster-launcher -- COMMAND [ARGUMENT...]: the first process of the worker container.
#include "sidecar/launcher/launcher.h"
#include "sidecar/launcher/log.h"

int main(int argc, char** argv, char** environment) {
  auto options = ringmaster::launcher::ParseOptions(argc, argv, environment);
  if (!options) {
    ringmaster::launcher::LogError(options.error());
    return 2;
  }
  return ringmaster::launcher::Launcher(std::move(*options)).Run();
}
