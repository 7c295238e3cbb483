// `ringmaster-sidecar install --to DIR`: what the init container does, so that users' images need
// nothing of ours.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::app {

// Copies the launcher, libringmaster.so and the Python package from beside the running binary (or
// from ../lib, ../python where a build or an installation has them) into `to`. A file that is there
// already is replaced in one step.
tl::expected<void, std::string> Install(const std::filesystem::path& binary_dir,
                                        const std::filesystem::path& to);

}  // namespace ringmaster::app
