// Where `ringmaster-sidecar install` puts things, below its target: what the launcher then tells
// its workers.
#pragma once

namespace ringmaster::launcher {

inline constexpr char kLauncherFile[] = "ringmaster-launcher";
inline constexpr char kBenchFile[] = "ringmaster-bench";
inline constexpr char kLibraryDir[] =
    "lib";  // for LD_LIBRARY_PATH: libringmaster.so and nothing else
inline constexpr char kPythonDir[] =
    "python";  // for PYTHONPATH; the package finds the library in ../lib

}  // namespace ringmaster::launcher
