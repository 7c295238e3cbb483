// The inside of Member. Private to this folder.
//
// Every event changes some facts; then Settle() looks at all facts and does what follows from them.
// Settle() is idempotent, so an event that repeats does no harm. The parts:
//   member.cc           events in, views learned, who lives
//   member_vote.cc      the acceptor: promise, accept, resign (rules 4, 5, 7)
//   member_campaign.cc  the proposer: ballots, quorums, decided (rules 4, 6, 11)
//   member_plan.cc      planned change: arm, boundary, drain (rule 12)
//   member_join.cc      the joiner, and the coordinator's list of joiners (rule 13)
//   member_quorum_loss.cc  making way for a new lineage (rule 9)
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/next_view.h"
#include "common/membership/quorum.h"

namespace ringmaster::membership {

// Something said again until it is answered, ever more slowly.
struct Repeat {
  std::optional<TimePoint> at;
  int times = 0;

  void Stop() { *this = {}; }
};

class MemberImpl {
 public:
  MemberImpl(Config config, PersistentState state);

  void Step(const Event& event, TimePoint now, std::vector<Action>* out);
  std::optional<TimePoint> NextDeadline() const;

  Role role() const;
  bool IsCoordinator() const { return self_ >= 0 && view().coordinator == config_.self.uid; }
  bool Changing() const {
    return campaign_.phase != Phase::kIdle || pending_.has_value() || state_.accepted_value;
  }
  // Out by plan, and the record has the view that says so or will never take it.
  bool Done() const { return left_ && (record_knows_ >= view().epoch || Frozen()); }
  bool Able() const { return Voting() && !Frozen() && !Fault(); }
  bool StateLost() const;
  bool Draining() const { return draining_.contains(config_.self.uid); }
  const PersistentState& state() const { return state_; }
  const MemberCounters& counters() const { return counters_; }

 private:
  // What is known about a pod of the current view.
  struct Facts {
    bool suspected = false;  // by this member; taken back when it is heard
    bool replaced = false;   // its pod runs with a newer incarnation: it will not come back
    bool boundary = false;
    std::optional<Resignation> resignation;
  };

  enum class Phase : std::uint8_t { kIdle, kPreparing, kStopping, kProposing };
  // An attempt of this member to decide the successor of the current view.
  struct Campaign {
    Phase phase = Phase::kIdle;
    Ballot ballot;
    VoterSet promises;
    Ballot adopted;  // the highest ballot reported as accepted, with its value
    ViewPtr value;
    Repeat repeat;
  };
  // A proposal that waits for the local workers to stop.
  struct Pending {
    Ballot ballot;
    ViewPtr value;
  };
  struct Tally {
    Ballot ballot;
    ViewPtr value;
    VoterSet yes;
  };
  struct Applicant {
    Joiner joiner;
    TimePoint renewed;
  };

  const View& view() const { return *state_.view; }
  bool Holds(Clause clause) const { return !config_.without.Has(clause); }
  const std::string& uid() const { return config_.self.uid; }
  // In the current view and not resigned from it.
  bool Voting() const;
  // Has promised a higher lineage than that of its view: takes no part in anything until it comes.
  bool Frozen() const { return state_.lineage > EpochLineage(EpochOf(state_.view)); }

  // member.cc
  void Handle(const MessageReceived& event);
  void HandlePeer(const Message& message, const std::string& address);
  void HandleForView(const Message& message, int from);
  void HandleRecord(const Message& message);
  void HandleHeard(const PodHeard& event);
  void HandleSuspected(const PodSuspected& event);
  void HandleWorkers(const WorkersChanged& event);
  void HandleStarted();
  void Learn(const ViewPtr& next);
  void ForgetView();
  void EnterView(bool newly);
  void Settle();
  void CheckWorkers();
  void Report();
  void ReportLosses();
  void CheckRecord();

  // member_vote.cc
  void OnPrepare(const Message& message);
  void OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from);
  void OnResign(const Message& message, int from);
  void CheckPending();
  void Accept(const Ballot& ballot, const ViewPtr& value, bool resigning);
  void ResignSelf();
  Message ResignMessage() const;
  void BroadcastResign();
  void EnsureStopped();
  void AnswerOutsider(const Message& message);

  // member_campaign.cc
  void OnPromise(const Message& message, std::size_t voter);
  void OnAccepted(const Message& message, std::size_t voter);
  void OnRefused(const Message& message);
  void OnSuspect(const Message& message, int from);
  bool Gone(int pod) const;
  bool CanAnswer(int pod) const;
  bool Fault() const;
  bool Feasible() const;
  bool RoundZeroFree() const;
  bool RecordNeeded() const;
  int Position() const;
  Duration Patience(int position);
  void CheckFault();
  void Begin();
  void BeginPrepare();
  void CheckPromises();
  bool Overtaken() const;
  void CheckCampaign();
  void Propose(bool resigning);
  Message CampaignMessage() const;
  void Resend();
  void AskAgain(const std::string& pod);
  void GiveUp();
  ViewPtr FreeValue(bool without_self);
  Tally* TallyFor(const Ballot& ballot, const ViewPtr& value);
  void CheckTallies();
  std::vector<const Resignation*> Resignations() const;
  void Decide(const ViewPtr& value, Quorum quorum);

  // member_plan.cc
  void OnPlan(const Message& message);
  void OnBoundary(const Message& message, int from);
  bool AllAtBoundary() const;
  std::uint64_t PlanNumber() const;
  void StartPlan(std::uint64_t number);
  bool PlanWanted() const;
  void CheckPlan();
  void SendPlan();
  void Arm();
  void CheckDrain();
  std::vector<std::string> LeavingPods() const;

  // member_quorum_loss.cc
  void OnRecoveryReport(const RecoveryAsked& event);
  void CheckRecovery();
  void ReportToOperator(std::uint64_t lineage);

  // member_join.cc
  void OnJoin(const Message& message, const std::string& address);
  std::vector<Joiner> Admissible() const;
  bool Fresh(const Applicant& applicant) const;
  std::optional<Message> JoinMessage() const;
  bool Replaced() const;
  void CheckJoin();

  // Output.
  template <typename T>
  void Emit(T&& action) {
    out_->emplace_back(std::forward<T>(action));
  }
  void Say(std::string text) { Emit(Log{std::move(text)}); }
  void Store() { Emit(Persist{state_}); }
  Message Make(MessageKind kind) const;
  void SendTo(const std::string& to, Message message);
  void SendToOthers(const Message& message);
  bool TellView(const std::string& to);
  const std::string& AddressOf(const std::string& pod) const;
  void Again(Repeat* repeat, Duration first);
  bool Due(const Repeat& repeat) const { return repeat.at && *repeat.at <= now_; }
  std::uint64_t Random();

  // Constant after construction.
  Config config_;

  PersistentState state_;
  MemberCounters counters_;
  TimePoint now_{};
  std::vector<Action>* out_ = nullptr;
  std::uint64_t random_;

  // About this pod, over all views.
  bool workers_known_ = false;
  std::vector<Worker> workers_;
  std::set<std::string> draining_;
  std::optional<TimePoint> drain_deadline_;
  bool left_ = false;
  Epoch finishing_ = 0;
  std::uint64_t asked_lineage_ = 0;     // not answered yet
  std::uint64_t reported_lineage_ = 0;  // answered; said again when the workers change
  Epoch way_asked_ = 0;                 // the workers have been asked to stop all views up to this
  Epoch way_stopped_ = 0;               // and have
  std::uint32_t expected_pods_ = 0;
  Reason join_reason_ = Reason::kPodJoined;
  std::map<std::string, Applicant> applicants_;
  std::optional<TimePoint> applied_since_;
  std::map<std::string, std::string> addresses_;  // of pods outside the current view
  std::map<std::string, TimePoint> told_;         // when a pod that is behind was last told
  Repeat join_repeat_;
  Repeat record_repeat_;
  Epoch record_knows_ = 0;

  // About the current view; forgotten when a newer one is learned.
  int self_ = -1;  // index of this pod, -1: not in it
  std::vector<Facts> facts_;
  std::vector<bool> lost_;  // one for each rank
  std::vector<std::pair<int, int>> accusations_;
  bool ran_ = false;
  bool stop_sent_ = false;
  bool stopped_ = false;
  bool all_dead_ = false;  // all workers of this pod in this view are dead or stopped for good
  bool armed_ = false;
  bool boundary_ = false;
  bool expired_ = false;  // the drain deadline has passed
  std::uint64_t plan_ = 0;
  std::uint64_t plan_seen_ = 0;
  Repeat plan_repeat_;
  Repeat report_repeat_;
  std::optional<TimePoint> campaign_at_;
  std::int64_t max_round_ = 0;
  Campaign campaign_;
  std::optional<Pending> pending_;
  std::vector<Tally> tallies_;
};

}  // namespace ringmaster::membership
