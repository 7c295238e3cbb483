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
#include <numeric>
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
constexpr unsigned kHangSeconds = 30;  // a process that lives longer hangs and is killed by SIGALRM

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

// kSubset: shared memory, in a subset over a channel of its own.
enum class Paths { kShm, kTcp, kPairs, kSubset };
const char* kPathNames[] = {"Shm", "Tcp", "Pairs", "Subset"};

struct Scenario {
  Paths paths;
  Op op;
  int victim = -1;     // nobody
  std::string point;   // where the victim is killed
  int occurrence = 1;  // at which of its passes there: 1 is the first
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

// What a rank gives: the sum of any of these shows whose parts are in it.
float PartOf(int rank) { return static_cast<float>(1 << rank); }
float AllParts(const Communicator& c) { return static_cast<float>((1 << c.size()) - 1); }

bool AllAre(const float* begin, size_t n, float value) {
  return std::all_of(begin, begin + n, [&](float x) { return x == value; });
}
// `buffer` has `each` elements of every rank.
bool HasPartOfEach(const Communicator& c, const float* buffer, size_t each) {
  for (int rank = 0; rank < c.size(); ++rank) {
    if (!AllAre(buffer + static_cast<size_t>(rank) * each, each, PartOf(rank))) return false;
  }
  return true;
}

// These run one operation of `count` elements with the result in `buffer`. False: it is done, and
// the result is wrong.
bool RunAllreduce(Communicator& c, float* buffer, size_t count, Status* status) {
  std::fill_n(buffer, count, PartOf(c.rank()));
  *status = c.Allreduce(buffer, buffer, count, RM_FLOAT32, RM_SUM);
  return !status->ok() || AllAre(buffer, count, AllParts(c));
}

bool RunBroadcast(Communicator& c, float* buffer, size_t count, Status* status) {
  const int root = c.size() - 1;
  std::fill_n(buffer, count, PartOf(c.rank()));
  *status = c.Broadcast(buffer, count * sizeof(float), root);
  return !status->ok() || AllAre(buffer, count, PartOf(root));
}

bool RunAllgather(Communicator& c, float* buffer, size_t count, Status* status) {
  const size_t each = count / kRanks;
  const std::vector<size_t> bytes(static_cast<size_t>(c.size()), each * sizeof(float));
  const std::vector<float> mine(each, PartOf(c.rank()));
  *status = c.Allgatherv(mine.data(), buffer, bytes);
  return !status->ok() || HasPartOfEach(c, buffer, each);
}

bool RunReduceScatter(Communicator& c, float* buffer, size_t count, Status* status) {
  const std::vector<size_t> counts(static_cast<size_t>(c.size()), count / kRanks);
  const std::vector<float> in(counts[0] * counts.size(), PartOf(c.rank()));
  *status = c.ReduceScatter(in.data(), buffer, counts, RM_FLOAT32, RM_SUM);
  return !status->ok() || AllAre(buffer, counts[0], AllParts(c));
}

bool RunAlltoall(Communicator& c, float* buffer, size_t count, Status* status) {
  const size_t n = static_cast<size_t>(c.size()), each = count / kRanks;
  const std::vector<size_t> bytes(n * n, each * sizeof(float));
  const std::vector<float> in(each * n, PartOf(c.rank()));
  *status = c.Alltoallv(in.data(), buffer, bytes);
  return !status->ok() || HasPartOfEach(c, buffer, each);
}

// Runs one operation with inputs such that the result shows every rank's part. False: it is done,
// and the result is wrong.
bool RunOp(Communicator& c, Op op, std::vector<float>& data, Status* status) {
  const size_t count = CountOf(op);
  float* buffer = data.data();
  switch (op) {
    case Op::kBarrier:
      *status = c.Barrier();
      return true;
    case Op::kBroadcast:
    case Op::kLargeBroadcast:
      return RunBroadcast(c, buffer, count, status);
    case Op::kAllgather:
      return RunAllgather(c, buffer, count, status);
    case Op::kReduceScatter:
      return RunReduceScatter(c, buffer, count, status);
    case Op::kAlltoall:
      return RunAlltoall(c, buffer, count, status);
    case Op::kArena:
      if (const auto arena = c.ArenaBuffer(count * sizeof(float)); !arena.empty())
        buffer = reinterpret_cast<float*>(arena.data());
      break;
    case Op::kSmall:
    case Op::kLarge:
      break;
  }
  return RunAllreduce(c, buffer, count, status);
}

// Tells the parent where this rank listens, and hears where all do.
bool ExchangeAddresses(const Endpoint& endpoint, int from_parent, int to_parent,
                       std::vector<WireAddress>* all) {
  WireAddress own;
  std::snprintf(own.tcp, sizeof(own.tcp), "%s", endpoint.Address().tcp.c_str());
  std::snprintf(own.shm, sizeof(own.shm), "%s", endpoint.Address().shm.c_str());
  WriteAll(to_parent, &own, sizeof(own));
  all->resize(kRanks);
  return ReadAll(from_parent, all->data(), all->size() * sizeof(WireAddress));
}

// The communicator that the scenario's operations run on: all ranks of `whole`.
Communicator& OperationsOn(Communicator& whole, const Scenario& scenario,
                           std::unique_ptr<Communicator>* subset) {
  if (scenario.paths != Paths::kSubset) return whole;
  std::vector<int> ranks(static_cast<size_t>(whole.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!whole.Subset(ranks, kSubsetChannels, subset).ok()) return whole;
  return **subset;
}

// In the first view, which ends with the victim's death. The return value is the exit code of a
// rank that has seen something wrong.
int RunFirstView(Endpoint* endpoint, const CommunicatorOptions& options, const Scenario& scenario,
                 Status* status, std::map<std::string, int>* passed) {
  std::vector<float> data(CountOf(Op::kLarge));
  std::unique_ptr<Communicator> communicator, subset;
  *status = Communicator::Create(endpoint, options, &communicator);
  if (status->ok()) {
    Communicator& on = OperationsOn(*communicator, scenario, &subset);
    for (int round = 0; status->ok() && round < kRounds; ++round) {
      if (!RunOp(on, scenario.op, data, status)) return kWrongResult;
    }
  }
  *passed = fault.passed;
  // The root of a broadcast waits for nobody, so it may not have noticed the death yet.
  if (status->ok()) *status = communicator->Barrier();
  return kFine;
}

// A rehearsal counts how often this rank passes each point.
int EndRehearsal(const Status& status, const std::map<std::string, int>& passed, int to_parent) {
  for (const auto& [point, times] : passed) {
    char line[64] = {};
    std::snprintf(line, sizeof(line), "%s", point.c_str());
    WriteAll(to_parent, line, sizeof(line));
  }
  return status.ok() ? kFine : kWrongError;
}

// The survivors' next view.
int RunNextView(Endpoint* endpoint, CommunicatorOptions options, const Scenario& scenario) {
  options.epoch = 2;
  options.peers.erase(options.peers.begin() + scenario.victim);
  if (options.rank > scenario.victim) --options.rank;
  std::vector<float> data(CountOf(Op::kLarge));
  std::unique_ptr<Communicator> communicator, subset;
  Status status = Communicator::Create(endpoint, options, &communicator);
  if (!status.ok()) return kNoNextView;
  Communicator& on = OperationsOn(*communicator, scenario, &subset);
  if (!RunOp(on, scenario.op, data, &status)) return kWrongResult;
  if (status.ok() && !RunOp(*communicator, Op::kLarge, data, &status)) return kWrongResult;
  return status.ok() ? kFine : kNoNextView;
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
  std::vector<WireAddress> all;
  if (!ExchangeAddresses(*endpoint, from_parent, to_parent, &all)) return kNoStart;

  std::set<int> suspects;
  CommunicatorOptions options;
  options.epoch = 1;
  options.rank = rank;
  options.peers = PeersSeenFrom(rank, scenario.paths, all);
  options.allow_shm = scenario.paths != Paths::kTcp;
  options.on_suspect = [&](int suspect, const std::string&) { suspects.insert(suspect); };
  Status status;
  std::map<std::string, int> passed;
  const int seen = RunFirstView(endpoint.get(), options, scenario, &status, &passed);
  if (seen != kFine) return seen;
  if (scenario.victim < 0) return EndRehearsal(status, passed, to_parent);
  if (status.ok()) return kNoError;
  if (status.code() != RM_ERR_EPOCH_MOVED) return kWrongError;
  for (int suspect : suspects) {
    if (suspect != scenario.victim) return kWrongSuspect;
  }
  const char suspected = suspects.empty() ? 'n' : 'y';
  WriteAll(to_parent, &suspected, 1);
  return RunNextView(endpoint.get(), options, scenario);
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

// The victim if there is time for only one: a different one for each operation and path. In a
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
      // A point that is passed once in a view must kill the first time. How often a socket is full
      // depends on the machine, so there the victim may survive.
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
    ::testing::Combine(::testing::Values(Paths::kShm, Paths::kTcp, Paths::kPairs, Paths::kSubset),
                       ::testing::ValuesIn(kOps)),
    [](const auto& info) {
      return std::string(kPathNames[static_cast<int>(std::get<0>(info.param))]) +
             kOpNames[static_cast<int>(std::get<1>(info.param))];
    });

}  // namespace
}  // namespace ringmaster
