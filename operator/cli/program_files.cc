#include "operator/cli/program_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fnv/fnv.h"
#include "operator/cli/ssh.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::minutes kPackTime{5};

// The first existing place, in the layout of a build, an installation or a release; empty if there
// is none.
fs::path FirstOf(const fs::path& bin_dir, const std::vector<const char*>& places) {
  std::error_code ignored;
  for (const char* place : places) {
    const fs::path path = (bin_dir / place).lexically_normal();
    if (fs::exists(path, ignored)) return path;
  }
  return {};
}

std::string Described(const fs::path& file) {
  std::error_code ignored;
  return fmt::format("{} {} {}", file.filename().string(), fs::file_size(file, ignored),
                     fs::last_write_time(file, ignored).time_since_epoch().count());
}

bool IsCache(const fs::path& path) {
  return path.string().find("__pycache__") != std::string::npos;
}

}  // namespace

Outcome<std::vector<ProgramFile>> FindProgramFiles(const fs::path& bin_dir) {
  struct Item {
    const char* to;
    std::vector<const char*> places;
    bool optional = false;
  };
  const std::vector<Item> items = {
      {"bin/ringmaster", {"ringmaster"}},
      {"bin/ringmaster-sidecar", {"ringmaster-sidecar"}},
      {"bin/ringmaster-launcher", {"ringmaster-launcher"}},
      {"bin/ringmaster-bench", {"ringmaster-bench"}},
      {"lib/libringmaster.so",
       {"libringmaster.so", "../lib/libringmaster.so",
        // The last one is for a wheel, where the Python package contains the library.
        "../../libringmaster.so"}},
      // Libraries of a release, whose programs look for them in this place.
      {"lib/ringmaster/private", {"../lib/ringmaster/private"}, true},
      {"python", {"python", "../python", "../lib/ringmaster/python"}}};
  std::vector<ProgramFile> files;
  for (const Item& item : items) {
    const fs::path from = FirstOf(bin_dir, item.places);
    if (!from.empty()) {
      files.push_back({from, item.to});
    } else if (!item.optional) {
      return Fail(ExitCode::kMachineLacks,
                  fmt::format("{} is not beside {}, so it can't be brought to other machines",
                              fs::path(item.to).filename().string(), bin_dir.string()));
    }
  }
  return files;
}

std::string KeyOf(const std::vector<ProgramFile>& files) {
  std::vector<std::string> lines;
  std::error_code ignored;
  for (const ProgramFile& file : files) {
    lines.push_back(file.to.string() + " " + Described(file.from));
    if (!fs::is_directory(file.from, ignored)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(
             file.from, fs::directory_options::follow_directory_symlink, ignored)) {
      if (entry.is_regular_file(ignored) && !IsCache(entry.path()))
        lines.push_back(Described(entry.path()));
    }
  }
  std::sort(lines.begin() + static_cast<std::ptrdiff_t>(std::min(files.size(), lines.size())),
            lines.end());
  fnv::Hash hash;
  for (const std::string& line : lines) hash.Text(line);
  return fmt::format("{}-{:016x}", RINGMASTER_VERSION, hash.value());
}

Outcome<void> WriteArchive(const std::vector<ProgramFile>& files, const fs::path& archive,
                           const std::stop_token& stop) {
  const fs::path folder = archive.string() + ".files";
  std::error_code error;
  fs::remove_all(folder, error);  // of a run that was killed while it packed
  for (const ProgramFile& file : files) {
    fs::create_directories((folder / file.to).parent_path(), error);
    fs::create_symlink(fs::absolute(file.from), folder / file.to, error);
    if (error)
      return Fail(ExitCode::kMachineLacks,
                  fmt::format("{}: {}", (folder / file.to).string(), error.message()));
  }
  auto packed =
      Do({"tar", "--exclude=__pycache__", "-chf", archive.string(), "-C", folder.string(), "."}, "",
         kPackTime, stop);
  fs::remove_all(folder, error);
  if (!packed) return tl::unexpected(packed.error());
  if (packed->code != 0)
    return Fail(ExitCode::kMachineLacks, "the programs can't be packed: " + packed->error);
  return {};
}

// Unpacks beside the final place and moves the folder there as a whole, because machines may share
// a home directory. A folder in that place without the programs was left incomplete or was tampered
// with, so it is replaced.
std::string InstallScript(const fs::path& programs) {
  return fmt::format(
      "umask 077; d={}; mkdir -p {} && t=$(mktemp -d \"$d.XXXXXX\") || exit 1; "
      "trap 'rm -rf \"$t\" \"$t.old\"' EXIT; trap 'exit 1' HUP INT TERM; "
      "tar -xf - -C \"$t\" || exit 1; "
      "if ! mv -T \"$t\" \"$d\" 2>/dev/null && ! [ -x \"$d/bin/ringmaster\" ]; then "
      "mv -T \"$d\" \"$t.old\"; mv -T \"$t\" \"$d\"; "
      "fi; "
      "\"$d/bin/ringmaster\" version",
      Quoted(programs.string()), Quoted(programs.parent_path().string()));
}

}  // namespace ringmaster::cli
