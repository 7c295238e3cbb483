#include "collectives/mpi/real_mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/algorithms/reduce.h"
#include "collectives/shared_library/shared_library.h"

namespace ringmaster::mpi {
namespace {

using Protocol = process_manager::Launch::Protocol;

constexpr const char kOpenMpi[] = "libringmaster_openmpi.so", kMpich[] = "libringmaster_mpich.so";

// What MPI calls in a reduction. The order of the operands is MPI's.
void Kernel(const void* in, void* inout, size_t count, rm_dtype dtype, rm_op op) {
  const std::array<const void*, 2> both = {in, inout};
  algorithms::Reduce(inout, both, count, dtype, op);
}

std::string WithSpaces(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

class RealMpi : public MpiApi {
 public:
  explicit RealMpi(const rm_mpi_plugin* plugin) : mpi_(*plugin) {}

  // The first line of what it says: later ones are about how it was built.
  std::string loaded() const override {
    const std::string text = mpi_.loaded();
    return WithSpaces(text.substr(0, text.find_first_of("\n,")));
  }
  Code Begin(bool* started, Threads* threads) override {
    int by_us = 0;
    const Code code = mpi_.begin(Kernel, &by_us, threads);
    *started = by_us != 0;
    return code;
  }
  bool Finished() override { return mpi_.finished() != 0; }
  Code Finish() override { return mpi_.finish(); }
  Code Place(int* rank, int* size) override { return mpi_.place(rank, size); }
  std::string Explain(Code code) override {
    char text[512] = {};
    mpi_.explain(code, text, sizeof(text));
    return text;
  }
  Code DupWorld(Comm* comm, Request* request) override { return mpi_.dup_world(comm, request); }
  Code Group(Comm comm, std::span<const int> ranks, int tag, Comm* out) override {
    return mpi_.group(comm, ranks.data(), static_cast<int>(ranks.size()), tag, out);
  }
  void FreeComm(Comm comm) override { mpi_.free_comm(comm); }
  Code Allreduce(Comm comm, const void* in, void* out, int count, rm_dtype dtype, rm_op op,
                 Request* request) override {
    return mpi_.allreduce(comm, in, out, count, dtype, op, request);
  }
  Code ReduceScatter(Comm comm, const void* in, void* out, std::span<const int> counts,
                     rm_dtype dtype, rm_op op, Request* request) override {
    return mpi_.reduce_scatter(comm, in, out, counts.data(), static_cast<int>(counts.size()), dtype,
                               op, request);
  }
  Code Allgatherv(Comm comm, const void* send, int send_bytes, void* recv,
                  std::span<const int> bytes, std::span<const int> at, Request* request) override {
    return mpi_.allgatherv(comm, send, send_bytes, recv, bytes.data(), at.data(),
                           static_cast<int>(bytes.size()), request);
  }
  Code Broadcast(Comm comm, void* data, int bytes, int root, Request* request) override {
    return mpi_.broadcast(comm, data, bytes, root, request);
  }
  Code Alltoallv(Comm comm, const void* send, std::span<const int> send_bytes,
                 std::span<const int> send_at, void* recv, std::span<const int> recv_bytes,
                 std::span<const int> recv_at, Request* request) override {
    return mpi_.alltoallv(comm, send, send_bytes.data(), send_at.data(), recv, recv_bytes.data(),
                          recv_at.data(), static_cast<int>(send_bytes.size()), request);
  }
  Code Barrier(Comm comm, Request* request) override { return mpi_.barrier(comm, request); }
  Code Test(Request request, bool* done) override {
    int is_done = 0;
    const Code code = mpi_.test(request, &is_done);
    *done = is_done != 0;
    return code;
  }

 private:
  const rm_mpi_plugin mpi_;
};

Status CheckPlugin(const std::string& file, const rm_mpi_plugin* plugin) {
  if (plugin->version != RM_MPI_PLUGIN_VERSION) {
    return {RM_ERR_UNAVAILABLE, file + " has version " + std::to_string(plugin->version) +
                                    " of the interface for MPI, and version " +
                                    std::to_string(RM_MPI_PLUGIN_VERSION) +
                                    " is needed: compile it with this version of Ringmaster"};
  }
  const std::string wanted = plugin->compiled_for, loaded = plugin->loaded();
  // Intel MPI has MPICH's binary interface.
  const bool fits = loaded.find(wanted) != loaded.npos ||
                    (wanted == "MPICH" && loaded.find("Intel") != loaded.npos);
  if (fits) return {};
  return {RM_ERR_UNAVAILABLE, file + " was compiled for " + wanted +
                                  ", and this process has loaded another MPI, which says of "
                                  "itself: " +
                                  loaded.substr(0, loaded.find('\n'))};
}

}  // namespace

std::vector<std::string> Candidates(const std::string& named, const std::string& folder,
                                    Protocol protocol) {
  if (!named.empty()) return {named};
  std::vector<std::string> files;
  const std::string in = folder.empty() ? "" : folder + "/";
  if (protocol != Protocol::kPmi1) files.push_back(in + kOpenMpi);
  if (protocol != Protocol::kPmix) files.push_back(in + kMpich);
  return files;
}

std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr)
    return "";
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == file.npos ? "" : file.substr(0, slash);
}

Status LoadMpi(const std::vector<std::string>& files, std::unique_ptr<MpiApi>* out) {
  std::vector<const char*> names;
  for (const std::string& file : files) names.push_back(file.c_str());
  SharedLibrary library;
  if (Status s = SharedLibrary::Open(names, &library); !s.ok()) {
    return {s.code(), "there is no MPI for collectives: " + s.message() +
                          ". Install the MPI whose launcher starts the script, or name the "
                          "plug-in for it in RINGMASTER_MPI_LIBRARY (docs/horovod.md)"};
  }
  const rm_mpi_plugin* (*get)() = nullptr;
  library.Resolve("rm_mpi_plugin_get", &get);
  if (Status s = library.CheckResolved(); !s.ok()) return s;
  if (Status s = CheckPlugin(library.name(), get()); !s.ok()) return s;
  *out = std::make_unique<RealMpi>(get());
  return {};
}

}  // namespace ringmaster::mpi
