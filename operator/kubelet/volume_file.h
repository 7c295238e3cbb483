// A file of a volume: from a ConfigMap, a Secret or a field of the pod.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace ringmaster::kubelet {

// `path` lies below `dir`: one that is absolute or has ".." in it is refused. Folders on the way
// are made. The error names the file.
tl::expected<void, std::string> WriteVolumeFile(const std::filesystem::path& dir,
                                                const std::string& path, std::string_view bytes);

}  // namespace ringmaster::kubelet
