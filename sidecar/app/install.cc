#include "sidecar/app/install.h"

#include <system_error>
#include <vector>

#include "sidecar/launcher/layout.h"

namespace ringmaster::app {
namespace {

namespace fs = std::filesystem;

struct Item {
  fs::path name;                    // below the target, too
  std::vector<const char*> places;  // relative to the binary, the first that exists counts
};

const Item kItems[] = {
    {launcher::kLauncherFile, {"ringmaster-launcher"}},
    {launcher::kBenchFile, {"ringmaster-bench"}},
    {fs::path(launcher::kLibraryDir) / "libringmaster.so",
     {"libringmaster.so", "../lib/libringmaster.so",
      "../../libringmaster.so"}},  // the last: in a wheel, the Python package has it
    {launcher::kPythonDir, {"python", "../python", "../lib/ringmaster/python"}},
};

// By this name programs that are linked with the library look for it.
constexpr char kLinkedName[] = "libringmaster.so.0";

fs::path FindItem(const fs::path& binary_dir, const Item& item) {
  std::error_code ignored;
  for (const char* place : item.places) {
    fs::path path = (binary_dir / place).lexically_normal();
    if (fs::exists(path, ignored)) return path;
  }
  return {};
}

// The worker may run as any user.
void OpenToAll(const fs::path& path, std::error_code& error) {
  const fs::perms owner = fs::symlink_status(path, error).permissions();
  fs::perms more = fs::perms::group_read | fs::perms::others_read;
  if ((owner & fs::perms::owner_exec) != fs::perms::none) {
    more |= fs::perms::group_exec | fs::perms::others_exec;
  }
  if (!error) fs::permissions(path, more, fs::perm_options::add, error);
}

void OpenAllToAll(const fs::path& path, std::error_code& error) {
  OpenToAll(path, error);
  if (error || !fs::is_directory(path)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, error)) {
    if (!error && !entry.is_symlink()) OpenToAll(entry.path(), error);
  }
}

}  // namespace

tl::expected<void, std::string> Install(const fs::path& binary_dir, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return tl::unexpected("cannot make " + to.string() + ": " + error.message());
  for (const Item& item : kItems) {
    fs::path from = FindItem(binary_dir, item);
    if (from.empty())
      return tl::unexpected(item.name.string() + " is not beside " + binary_dir.string());
    const fs::path target = to / item.name;
    const fs::path temporary = target.parent_path() / ("." + target.filename().string() + ".new");
    fs::create_directories(target.parent_path(), error);
    fs::remove_all(temporary, error);
    // A library is a link to its version; its readers need the file.
    fs::copy(from, temporary, fs::copy_options::recursive, error);
    if (!error) OpenAllToAll(temporary, error);
    if (!error && target.parent_path() != to) OpenToAll(target.parent_path(), error);
    if (!error && fs::is_directory(temporary)) fs::remove_all(target, error);
    if (!error) fs::rename(temporary, target, error);
    if (error)
      return tl::unexpected("cannot copy " + from.string() + " to " + target.string() + ": " +
                            error.message());
  }
  const fs::path link = to / launcher::kLibraryDir / kLinkedName;
  fs::remove(link, error);
  fs::create_symlink("libringmaster.so", link, error);
  if (error) return tl::unexpected("cannot make " + link.string() + ": " + error.message());
  return {};
}

}  // namespace ringmaster::app
