// Ranks as processes, one of which is killed at every fault point of every operation on every path:
// the others get RM_ERR_EPOCH_MOVED (or the right result, then RM_ERR_EPOCH_MOVED), nobody hangs,
// the dead rank and nobody else is suspected, and the survivors' next view gives right results.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/transport/fault_point.h"
#include "collectives/transport/unique_fd.h"
#include "ringmaster/communicator.h"
#include "tests/support/rounds.h"

namespace ringmaster {
namespace {

using transport::UniqueFd;

constexpr int kRanks = 4;
constexpr int kRounds = 30;            // of operations; a kill comes in the first ones
constexpr unsigned kHangSeconds = 30;  // a process that lives longer hangs, and dies by SIGALRM

enum Outcome {
  kFine = 0,
  kWrongResult = 10,
  kWrongError,
  kNoError,
  kWrongSuspect,
  kNoNextView,
  kNoStart
};

enum class Op {
  kSmall,
  kLarge,
  kArena,
  kBroadcast,
  kLargeBroadcast,
  kAllgather,
  kBarrier,
  kReduceScatter,
  kAlltoall
};
constexpr Op kOps[] = {Op::kSmall,     Op::kLarge,          Op::kArena,
                       Op::kBroadcast, Op::kLargeBroadcast, Op::kAllgather,
                       Op::kBarrier,   Op::kReduceScatter,  Op::kAlltoall};
const char* kOpNames[] = {"Small",     "Large",   "Arena",         "Broadcast", "LargeBroadcast",
                          "Allgather", "Barrier", "ReduceScatter", "Alltoall"};

enum class Paths { kShm, kTcp, kPairs };
const char* kPathNames[] = {"Shm", "Tcp", "Pairs"};

struct Scenario {
  Paths paths;
  Op op;
  int victim = -1;     // nobody
  std::string point;   // where the victim is killed
  int occurrence = 1;  // the how many-th time it passes there
};

// ---- in the processes of the ranks ----

struct FaultState {
  std::string point;
  int left = 0;
  std::map<std::string, int> passed;
};
FaultState fault;

void KillHere(const char* point) {
  ++fault.passed[point];
  if (fault.point == point && --fault.left == 0) {
    kill(getpid(), SIGKILL);
    while (true) pause();
  }
}

void WriteAll(int fd, const void* data, size_t bytes) {
  if (write(fd, data, bytes) != static_cast<ssize_t>(bytes)) _exit(kNoStart);
}

bool ReadAll(int fd, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t rc = read(fd, at, bytes);
    if (rc <= 0) return false;
    at += rc;
    bytes -= static_cast<size_t>(rc);
  }
  return true;
}

struct WireAddress {
  char tcp[64] = {};
  char shm[108] = {};
};

std::vector<PeerEndpoint> PeersSeenFrom(int rank, Paths paths,
                                        const std::vector<WireAddress>& all) {
  std::vector<PeerEndpoint> peers;
  for (int i = 0; i < kRanks; ++i) {
    PeerEndpoint peer{all[static_cast<size_t>(i)].tcp, all[static_cast<size_t>(i)].shm, i};
    if (paths == Paths::kPairs && i / 2 != rank / 2) peer.shm = "nobody-listens-here";
    peers.push_back(peer);
  }
  return peers;
}

size_t CountOf(Op op) {
  bool small = op == Op::kSmall || op == Op::kBroadcast;
  return small ? 100 : 400000;
}

// One operation with inputs whose result shows every rank's part. 0: done and right; kWrongResult;
// else `status`.
int RunOp(Communicator& c, Op op, std::vector<float>& data, Status* status) {
  size_t count = CountOf(op);
  float own = static_cast<float>(1 << c.rank());
  float all = static_cast<float>((1 << c.size()) - 1);
  auto is = [](const float* begin, size_t n, float value) {
    return std::all_of(begin, begin + n, [&](float x) { return x == value; });
  };
  float* buffer = data.data();
  if (op == Op::kArena && !c.ArenaBuffer(count * sizeof(float)).empty()) {
    buffer = reinterpret_cast<float*>(c.ArenaBuffer(count * sizeof(float)).data());
  }
  if (op == Op::kBarrier) {
    *status = c.Barrier();
    return kFine;
  }
  if (op == Op::kBroadcast || op == Op::kLargeBroadcast) {
    int root = c.size() - 1;
    std::fill_n(buffer, count, own);
    *status = c.Broadcast(buffer, count * sizeof(float), root);
    return !status->ok() || is(buffer, count, static_cast<float>(1 << root)) ? kFine : kWrongResult;
  }
  if (op == Op::kAllgather) {
    size_t each = count / 4;
    std::vector<size_t> bytes(static_cast<size_t>(c.size()), each * sizeof(float));
    std::vector<float> mine(each, own);
    *status = c.Allgatherv(mine.data(), buffer, bytes);
    for (int r = 0; status->ok() && r < c.size(); ++r) {
      if (!is(buffer + static_cast<size_t>(r) * each, each, static_cast<float>(1 << r)))
        return kWrongResult;
    }
    return kFine;
  }
  if (op == Op::kReduceScatter) {
    const std::vector<size_t> counts(static_cast<size_t>(c.size()), count / 4);
    std::vector<float> in(counts[0] * counts.size(), own);
    *status = c.ReduceScatter(in.data(), buffer, counts, RM_FLOAT32, RM_SUM);
    return !status->ok() || is(buffer, counts[0], all) ? kFine : kWrongResult;
  }
  if (op == Op::kAlltoall) {
    const size_t n = static_cast<size_t>(c.size()), each = count / 4;
    const std::vector<size_t> bytes(n * n, each * sizeof(float));
    const std::vector<float> in(each * n, own);
    *status = c.Alltoallv(in.data(), buffer, bytes);
    for (size_t r = 0; status->ok() && r < n; ++r) {
      if (!is(buffer + r * each, each, static_cast<float>(1 << r))) return kWrongResult;
    }
    return kFine;
  }
  std::fill_n(buffer, count, own);
  *status = c.Allreduce(buffer, buffer, count, RM_FLOAT32, RM_SUM);
  return !status->ok() || is(buffer, count, all) ? kFine : kWrongResult;
}

// What a rank does; the return value is the process's exit code.
int RankMain(const Scenario& scenario, int rank, int from_parent, int to_parent) {
  alarm(kHangSeconds);
  fault.point = rank == scenario.victim ? scenario.point : "";
  fault.left = scenario.occurrence;
  transport::fault_hook = KillHere;
  std::unique_ptr<Endpoint> endpoint;
  Endpoint::Options endpoint_options;
  endpoint_options.job = "fault-test";
  if (!Endpoint::Create(endpoint_options, &endpoint).ok()) return kNoStart;
  WireAddress own;
  std::snprintf(own.tcp, sizeof(own.tcp), "%s", endpoint->Address().tcp.c_str());
  std::snprintf(own.shm, sizeof(own.shm), "%s", endpoint->Address().shm.c_str());
  WriteAll(to_parent, &own, sizeof(own));
  std::vector<WireAddress> all(kRanks);
  if (!ReadAll(from_parent, all.data(), all.size() * sizeof(WireAddress))) return kNoStart;

  std::set<int> suspects;
  CommunicatorOptions options;
  options.epoch = 1;
  options.rank = rank;
  options.peers = PeersSeenFrom(rank, scenario.paths, all);
  options.allow_shm = scenario.paths != Paths::kTcp;
  options.on_suspect = [&](int suspect, const std::string&) { suspects.insert(suspect); };
  std::vector<float> data(CountOf(Op::kLarge));
  std::unique_ptr<Communicator> communicator;
  Status status = Communicator::Create(endpoint.get(), options, &communicator);
  for (int round = 0; status.ok() && round < kRounds; ++round) {
    int outcome = RunOp(*communicator, scenario.op, data, &status);
    if (outcome != kFine) return outcome;
  }
  std::map<std::string, int> passed = fault.passed;
  // A broadcast's root needs nobody's answer, so it may not have noticed yet.
  if (status.ok()) status = communicator->Barrier();
  communicator.reset();
  if (scenario.victim < 0) {  // rehearsal: which points does this rank pass, how often?
    for (const auto& [point, times] : passed) {
      char line[64] = {};
      std::snprintf(line, sizeof(line), "%s", point.c_str());
      WriteAll(to_parent, line, sizeof(line));
    }
    return status.ok() ? kFine : kWrongError;
  }
  if (status.ok()) return kNoError;
  if (status.code() != RM_ERR_EPOCH_MOVED) return kWrongError;
  for (int suspect : suspects) {
    if (suspect != scenario.victim) return kWrongSuspect;
  }
  char suspected = suspects.empty() ? 'n' : 'y';
  WriteAll(to_parent, &suspected, 1);

  options.epoch = 2;
  options.peers.erase(options.peers.begin() + scenario.victim);
  options.rank = rank > scenario.victim ? rank - 1 : rank;
  status = Communicator::Create(endpoint.get(), options, &communicator);
  if (!status.ok()) return kNoNextView;
  int outcome = RunOp(*communicator, scenario.op, data, &status);
  if (outcome != kFine) return outcome;
  if (status.ok()) outcome = RunOp(*communicator, Op::kLarge, data, &status);
  return status.ok() ? outcome : kNoNextView;
}

// ---- in the test's process ----

struct Process {
  pid_t pid = -1;
  UniqueFd to, from;
  int exit_status = -1;
  std::string said;
};

std::vector<Process> RunScenario(const Scenario& scenario) {
  std::vector<Process> processes(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) return {};
    pid_t pid = fork();
    if (pid == 0) {
      close(down[1]);
      close(up[0]);
      _exit(RankMain(scenario, rank, down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    Process& process = processes[static_cast<size_t>(rank)];
    process.pid = pid;
    process.to = UniqueFd(down[1]);
    process.from = UniqueFd(up[0]);
  }
  std::vector<WireAddress> all(kRanks);
  for (size_t i = 0; i < kRanks; ++i)
    ReadAll(processes[i].from.get(), &all[i], sizeof(WireAddress));
  for (Process& process : processes) {
    (void)!write(process.to.get(), all.data(), all.size() * sizeof(WireAddress));
  }
  for (Process& process : processes) {
    char buffer[4096];
    ssize_t n;
    while ((n = read(process.from.get(), buffer, sizeof(buffer))) > 0)
      process.said.append(buffer, static_cast<size_t>(n));
    waitpid(process.pid, &process.exit_status, 0);
  }
  return processes;
}

std::string Describe(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

// The victim where there is time for only one: another one for each operation and path. In a
// broadcast it is the root, because only the root passes points inside the operation on every path.
int OneVictim(const Scenario& scenario) {
  if (scenario.op == Op::kBroadcast || scenario.op == Op::kLargeBroadcast) return kRanks - 1;
  return (static_cast<int>(scenario.op) + static_cast<int>(scenario.paths)) % kRanks;
}

class KilledAtEveryPoint : public ::testing::TestWithParam<std::tuple<Paths, Op>> {};

TEST_P(KilledAtEveryPoint, SurvivorsMoveOnWithRightResults) {
  signal(SIGPIPE, SIG_IGN);
  Scenario scenario{std::get<0>(GetParam()), std::get<1>(GetParam())};
  std::vector<Process> rehearsal = RunScenario(scenario);
  int killed = 0;
  std::set<std::string> points;
  const int first = support::Rounds(0, OneVictim(scenario));
  const int victims = support::Rounds(kRanks, 1);
  for (int victim = first; victim < first + victims; ++victim) {
    const Process& process = rehearsal[static_cast<size_t>(victim)];
    ASSERT_EQ(process.exit_status, 0) << "rank " << victim << ": " << Describe(process.exit_status);
    for (size_t at = 0; at + 64 <= process.said.size(); at += 64) {
      scenario.victim = victim;
      scenario.point = process.said.substr(at).c_str();
      points.insert(scenario.point);
      scenario.occurrence = 1 + killed % 3;
      // What happens once in a view must be killed the first time; how often a socket is full is up
      // to the machine.
      bool by_chance = scenario.point == "stream_half_sent";
      if (scenario.point.starts_with("create") || by_chance) scenario.occurrence = 1;
      std::vector<Process> processes = RunScenario(scenario);
      if (by_chance && processes[static_cast<size_t>(victim)].exit_status == kNoError << 8)
        continue;
      bool someone_suspects = false;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Process& p = processes[static_cast<size_t>(rank)];
        std::string where = "victim " + std::to_string(victim) + " at " + scenario.point +
                            ", rank " + std::to_string(rank);
        if (rank == victim) {
          EXPECT_TRUE(WIFSIGNALED(p.exit_status) && WTERMSIG(p.exit_status) == SIGKILL)
              << where << ": " << Describe(p.exit_status);
        } else {
          EXPECT_EQ(p.exit_status, 0) << where << ": " << Describe(p.exit_status);
          someone_suspects |= p.said.find('y') != std::string::npos;
        }
      }
      EXPECT_TRUE(someone_suspects) << "victim " << victim << " at " << scenario.point;
      ++killed;
    }
  }
  std::string list;
  for (const std::string& point : points) list += (list.empty() ? "" : " ") + point;
  std::printf("killed %d times at: %s\n", killed, list.c_str());
  EXPECT_GE(killed, 4 * victims) << "too few fault points were reached";
}

INSTANTIATE_TEST_SUITE_P(
    Operations, KilledAtEveryPoint,
    ::testing::Combine(::testing::Values(Paths::kShm, Paths::kTcp, Paths::kPairs),
                       ::testing::ValuesIn(kOps)),
    [](const auto& info) {
      return std::string(kPathNames[static_cast<int>(std::get<0>(info.param))]) +
             kOpNames[static_cast<int>(std::get<1>(info.param))];
    });

}  // namespace
}  // namespace ringmaster
