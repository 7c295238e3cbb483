// The simulated world: pods with sidecars and workers, network, operators. Private to this folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/quorum_record.h"
#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {

using Micros = std::int64_t;
inline constexpr Micros kMs = 1000;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::int64_t Below(std::int64_t n) { return static_cast<std::int64_t>(Next() % n); }
  std::int64_t Between(std::int64_t low, std::int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int per_thousand) { return Below(1000) < per_thousand; }

 private:
  std::uint64_t state_;
};

struct SimWorker {
  std::uint64_t incarnation = 1;
  bool alive = true;
  bool ready = false;
  bool used = false;  // has been in a view
  Epoch installed = 0;
  Epoch newest = 0;   // the newest view that it was given
  Epoch stopped = 0;  // it uses no view up to this one any more
  Epoch armed = 0;
  Epoch boundary = 0;      // stands at the boundary of this view
  bool holds = false;      // it holds the job's state
  std::int64_t step = -1;  // -1: no state at all
  std::uint64_t hash = 0;
};

struct SimPod {
  std::string uid;
  Pod pod;
  std::uint32_t life = 0;  // rises when the sidecar dies
  bool up = false;
  bool gone = false;      // dead for good
  bool started = false;   // its sidecar has run
  Micros proven_at = -1;  // when its death is proven; -1: never
  bool leaving = false;
  Micros paused_until = 0;
  std::uint64_t next_incarnation = 1;
  std::optional<PersistentState> disk;
  std::unique_ptr<Member> member;
  std::vector<SimWorker> workers;
  int crash_after = -1;  // the sidecar dies after so many more actions

  // The sidecar's memory.
  Epoch stop_wanted = 0;
  Epoch arm_wanted = 0;
  // When the last frame in each direction of the worker link arrives: frames keep their order.
  Micros to_workers = 0, from_workers = 0;
  Micros timer = -1;
  std::vector<Micros> heard;
};

// Behind each kind stands what the fields of its SimEvent mean; `a` alone is a pod.
enum class Kind : std::uint8_t {
  kDeliver,      // a, b: from, to; message
  kToRecord,     // a: from; message; b: operator
  kFromRecord,   // b: to; message
  kTimer,        // a; x: life
  kHeartbeats,   // a; x: life
  kToWorker,     // a, b: pod, slot; command; x: epoch; y: worker incarnation
  kFromWorker,   // the same, but y: worker incarnation << 32 | life of the sidecar
  kWorkersSeen,  // a; x: life
  kStep,         // x: epoch
  kFault,
  kStartSidecar,  // a
  kStartWorker,   // a, b
  kReset,         // a hears at once that b is gone
  kNotifyView,    // a: ViewDecided
  kHeal,
  kCheck,
  kEndCut,          // a, b
  kRecovery,        // b: operator
  kAsked,           // a; x: lineage; y: begin again with fresh workers
  kRecoveryReport,  // a: from; b: operator; message: index of the report
};

enum class Command : std::uint8_t { kStop, kView, kArm, kStopped, kBoundary, kRan, kEnter };

struct SimEvent {
  Micros at;
  std::uint64_t order;
  Kind kind;
  Command command;
  std::int16_t a, b;
  std::uint32_t message;
  std::uint64_t x, y;
  bool operator<(const SimEvent& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

// What an operator process believes about the record.
struct SimOperator {
  QuorumRecord state;  // without a view: the record was deleted
  ViewPtr heard;       // the newest view that any pod has told it of
  std::uint64_t version = 0;
  Micros down_until = 0;
  // Recovery from quorum loss.
  Epoch view = 0;                  // the view that `able_at` is about
  Micros able_at = 0;              // when a pod last reported that its view can train
  bool at_once = false;            // begins a recovery though nothing calls for it
  std::uint64_t lineage = 0;       // the lineage that `reports` are for
  std::vector<int> pods_at_begin;  // the pods that are asked where a test takes FreshPods out
  std::map<int, RecoveryReport> reports;
};

// A decided view and what became of it.
struct Decided {
  ViewPtr view;
  bool step_pending = false;
  bool ran = false;  // has completed a step
  Micros last_step = 0;
};

class World {
 public:
  explicit World(const Options& options);
  Outcome Run();

 private:
  // world.cc: set-up, time, network, sidecars
  void Bootstrap();
  int AddPod(bool bootstrap);
  void At(Micros at, Kind kind, int a = 0, int b = 0, std::uint64_t x = 0, std::uint64_t y = 0,
          Command command = Command::kStop, std::uint32_t message = 0);
  std::uint32_t Keep(Message&& message);
  Message Take(std::uint32_t index);
  void Handle(const SimEvent& event);
  // True: the pod is paused, so the event was put off to the end of the pause.
  bool PostponedByPause(const SimEvent& event);
  void Deliver(const SimEvent& event);
  void OnTimer(const SimEvent& event);
  void EndCut(int a, int b);
  void StepMember(int pod, const Event& event);
  void Apply(int pod, std::vector<Action>* actions);
  void ApplyOne(int pod, Action& action);
  void Post(int from, int to, const Message& message);
  bool Connected(int a, int b) const;
  bool ReachesOperators(int pod) const { return !operators_apart_ || side_[pod] == 0; }
  Micros Delay();
  void ArmTimer(int pod);
  void CheckNotBusy(int pod);
  void Heartbeats(int pod);
  void StartSidecar(int pod);
  void CrashSidecar(int pod);
  int IndexOf(const std::string& uid) const;
  Member* MemberOf(int pod) { return pods_[pod].up ? pods_[pod].member.get() : nullptr; }

  // operators.cc
  void AskRecord(int op, const Message& message, int from);
  void NotifyView(int pod);
  void OnAsked(int pod, std::uint64_t lineage, bool fresh_workers);
  void OnReport(int op, int from, const RecoveryReport& report);
  void Ask(int pod, std::uint64_t lineage, bool fresh_workers);
  bool WriteRecord(int op, const QuorumRecord& state, bool swap);
  void RunRecovery(int op);
  void BeginIfStalled(int op);
  void ReadRecord(int op);
  void HearPods(int op);
  ViewPtr KnownView(const SimOperator& op) const {
    return op.state.view ? op.state.view : op.heard;
  }
  void FinishIfHeard(int op, bool ask);
  void FinishWith(int op, const ViewPtr& view);
  void Restart(int op, const std::vector<std::string>& pods, bool ask);
  bool Proven(int pod) const { return pods_[pod].proven_at >= 0 && pods_[pod].proven_at <= now_; }
  std::vector<int> MustReport() const;

  // workers.cc
  void ToWorkers(int pod, Command command, Epoch epoch);
  void OnWorkerCommand(const SimEvent& event);
  void OnWorkerMessage(const SimEvent& event);
  void SendFromWorker(int pod, int slot, Command command, Epoch epoch);
  void WorkersSeen(int pod);
  void CheckStopped(int pod);
  void CheckBoundary(int pod);
  void BootstrapWorker(const View& view, SimWorker* worker);
  void KillWorker(int pod, int slot);
  void StartWorker(int pod, int slot);
  void TryStep(Epoch epoch);
  void CompleteStep(const View& view, const std::vector<SimWorker*>& workers);

  // faults.cc
  Fault DrawFault();
  void InjectFault();
  void Inject(Fault fault, int pod);
  void KillOne(int pod);
  void RestartSidecar(int pod, bool lose_file);
  void Partition(int pod);
  void CutLink(int pod);
  void SuspectWrongly();
  void BreakLink(int pod);
  void Drain(int pod);
  void StopOperators();
  void RecoverForNoReason();
  void Heal();
  int RandomPod();
  void KillPod(int pod);
  void KillMost();
  void ProveLater(int pod, int chance);
  void Reset(int pod);

  // checks.cc
  void Fail(const std::string& what);
  void Announce(const ViewPtr& view);
  void BeginLineage(const View& view);
  Decided& Of(Epoch epoch);
  bool Healthy();
  bool RightlyBlocked();
  void CheckEnd();

  template <typename Text>
  void Trace(Text text) {
    if (options_.trace) AppendTrace(text());
  }
  void AppendTrace(const std::string& text);
  TimePoint Now() const { return TimePoint(std::chrono::microseconds(now_)); }

  Options options_;
  Random random_;
  Profile profile_;
  Micros now_ = 1000 * kMs;
  std::uint64_t order_ = 0;
  std::priority_queue<SimEvent> queue_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::vector<Action>> spare_;

  std::vector<SimPod> pods_;
  std::vector<std::vector<char>> cut_;  // [from][to]: the link is down in this direction
  std::vector<int> side_;               // the side of the partition that each pod is on
  bool operators_apart_ = false;        // the partition's side 1 can't reach the operators
  int slots_ = 1;
  int loss_ = 0, repeat_ = 0, slow_ = 0;  // per thousand
  int fast_detection_ = 500;
  std::uint32_t min_pods_ = 1;
  int wanted_ = 1;

  QuorumRecord record_;  // without a view: it was deleted
  std::uint64_t record_version_ = 1;
  std::uint64_t lineage_written_ = 0;  // the highest lineage begun, written down apart from R
  SimOperator operators_[2];

  // What really happened, which no simulated process knows.
  std::vector<std::vector<Decided>> decided_;  // by lineage and number
  ViewPtr newest_;
  std::vector<RecoveryReport> reports_;  // under way
  Epoch trained_ = 0;                    // newest view that has completed a step
  std::int64_t step_ = 0;
  std::uint64_t hash_ = 0;
  bool healed_ = false;
  bool finished_ = false;
  Micros end_ = 0;
  std::string violation_;
  Coverage coverage_;
};

}  // namespace ringmaster::membership::sim
