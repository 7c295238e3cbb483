// Two ranks that a process manager of the test has started, in threads.
#include "collectives/elastic/fixed_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "collectives/elastic/mpi_agreement.h"
#include "ringmaster/communicator.h"

namespace ringmaster::elastic {
namespace {

using engine::Engine;
using engine::Operation;
using testing::HasSubstr;
using testing::Not;

Engine::Clock::time_point Soon() { return Engine::Clock::now() + std::chrono::seconds(30); }

// What the processes have told each other.
struct Board {
  std::mutex mu;
  std::condition_variable came;
  std::map<std::string, std::map<int, std::string>> said;  // by name and rank
  // The last rank hears where the workers are only when the others have heard and wait again.
  bool last_hears_late = false;
};

class BoardManager : public process_manager::ProcessManager {
 public:
  BoardManager(Board* board, int rank, int size) : board_(board), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string job() const override { return "test"; }
  Status Exchange(const std::string& name, const std::string& mine,
                  process_manager::Clock::time_point deadline,
                  std::vector<std::string>* said) override {
    std::unique_lock lock(board_->mu);
    auto& all = board_->said[name];
    all[rank_] = mine;
    board_->came.notify_all();
    const auto complete = [&] { return static_cast<int>(all.size()) == size_; };
    if (!board_->came.wait_until(lock, deadline, complete)) return {RM_ERR_TIMEOUT, "too few"};
    said->clear();
    for (const auto& [rank, text] : all) said->push_back(text);
    if (name != "worker" || rank_ != size_ - 1 || !board_->last_hears_late) return {};
    const auto others_wait = [&] {
      const auto next = board_->said.find("has key");
      return next != board_->said.end() && static_cast<int>(next->second.size()) == size_ - 1;
    };
    if (!board_->came.wait_until(lock, deadline, others_wait))
      return {RM_ERR_TIMEOUT, "the others do not wait for the last rank"};
    return {};
  }

 private:
  Board* const board_;
  const int rank_, size_;
};

// One process of this world.
class Rank : public engine::CommunicatorFactory {
 public:
  Rank(Board* board, int rank, int size) : manager_(board, rank, size), reports_(&facts_) {}
  ~Rank() override {
    if (engine_) engine_->Close();
  }

  Status Found() {
    engine::WorkerView view;
    if (Status s = FoundWorld(&manager_, WorkerOptions(), Soon(), &endpoint_, &view); !s.ok())
      return s;
    engine::EngineOptions options;
    options.communicators = this;
    options.listener = &reports_;
    options.state = &state_;
    engine_ = std::make_unique<Engine>(options);
    reports_.Attach(engine_.get());
    engine_->PostView(view);
    return engine_->AwaitEntered(Soon());
  }
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    return Communicator::Create(endpoint_.get(), options, out);
  }
  Status Sum(std::vector<float>* data) {
    engine::Request request{
        "sum", engine::Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data->size(), 1, 1};
    const auto operation =
        std::make_shared<Operation>(std::move(request), data->data(), data->data());
    if (Status s = engine_->Submit(operation); !s.ok()) return s;
    if (!operation->WaitUntil(Soon())) return {RM_ERR_TIMEOUT, "the operation hangs"};
    return operation->status();
  }
  engine::Membership membership() const { return engine_->info().membership(); }

 private:
  BoardManager manager_;
  PingFacts facts_;
  FixedWorldReports reports_;
  engine::StateRegistry state_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Engine> engine_;  // destroyed first
};

class FixedWorldTest : public testing::Test {
 protected:
  void Start() {
    for (int rank = 0; rank < 2; ++rank) ranks_[rank] = std::make_unique<Rank>(&board_, rank, 2);
    std::vector<std::jthread> threads;
    for (auto& rank : ranks_) {
      threads.emplace_back([&rank] {
        const Status status = rank->Found();
        EXPECT_TRUE(status.ok()) << status.message();
      });
    }
  }
  Board board_;
  std::unique_ptr<Rank> ranks_[2];
};

TEST_F(FixedWorldTest, RanksFindEachOtherAndReduce) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::vector<float> data[2] = {{1, 2}, {10, 20}};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] { EXPECT_TRUE(ranks_[rank]->Sum(&data[rank]).ok()); });
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(data[rank], (std::vector<float>{11, 22}));
    const engine::Membership membership = ranks_[rank]->membership();
    EXPECT_EQ(membership.rank, rank);
    EXPECT_EQ(membership.size, 2);
    EXPECT_EQ(membership.local_size, 2) << "they are on one host";
  }
}

// As on a machine with more processes than cores. Before it has heard, it has no key.
TEST_F(FixedWorldTest, ARankThatHearsOfTheOthersLateIsWaitedFor) {
  board_.last_hears_late = true;
  ASSERT_NO_FATAL_FAILURE(Start());
}

TEST_F(FixedWorldTest, TheOthersOfARankThatGoesAreToldAndDoNotWait) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ranks_[1].reset();
  std::vector<float> data = {1};
  const Status status = ranks_[0]->Sum(&data);
  EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 "));
  EXPECT_THAT(status.message(), HasSubstr("have no successors"));
}

TEST_F(FixedWorldTest, WhoSaysSomethingElseIsNamed) {
  board_.said["host"][1] = "localhost";
  board_.said["worker"][1] = "hello";
  Rank rank(&board_, 0, 2);
  const Status status = rank.Found();
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 says 'hello'"));
}

TEST_F(FixedWorldTest, WhoSaysAnotherTypeIsNamed) {
  for (const char* said :
       {R"({"tcp":7,"shm":""})", R"({"tcp":null})", R"({"shm":"s"})", R"(["tcp"])", ""}) {
    Board board;
    board.said["host"][1] = "localhost";
    board.said["worker"][1] = said;
    const Status status = Rank(&board, 0, 2).Found();
    EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE) << said;
    EXPECT_THAT(status.message(), HasSubstr("rank 1 says '" + std::string(said) + "'"));
  }
}

// A ring without a key would take in anybody who reaches it.
TEST_F(FixedWorldTest, WithoutTheKeyOfRank0ThereIsNoRing) {
  const std::string half(22, 'A');
  for (const std::string& key : {std::string("7"), std::string("null"), "\"" + half + "\"",
                                 std::string("\"not base64!\""), std::string("\"\"")}) {
    Board board;
    board.said["host"][0] = "localhost";
    board.said["worker"][0] = R"({"tcp":"127.0.0.1:1","shm":"","key":)" + key + "}";
    const Status status = Rank(&board, 1, 2).Found();
    EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE) << key;
    EXPECT_THAT(status.message(), HasSubstr("rank 0 says no key of the ring"));
    EXPECT_THAT(status.message(), Not(HasSubstr(half))) << "nobody logs a key";
  }
  board_.said["host"][0] = "localhost";
  board_.said["worker"][0] = R"({"tcp":"127.0.0.1:1","shm":""})";
  EXPECT_EQ(Rank(&board_, 1, 2).Found().code(), RM_ERR_UNAVAILABLE);
}

TEST_F(FixedWorldTest, MpiIsForAllRanksOrForNone) {
  board_.said["host"][1] = "localhost";
  board_.said["worker"][1] = R"({"tcp":"127.0.0.1:1","shm":"","mpi":true})";
  const Status status = Rank(&board_, 0, 2).Found();
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_EQ(
      status.message(),
      "RINGMASTER_BACKEND is to be mpi in all ranks or in none: rank 0 does not have it, rank "
      "1 has it");
}

// What rank 0 answers where the other one has said this.
Status AgreeWith(const std::string& said, const Status& own) {
  Board board;
  board.said["mpi"][1] = said;
  BoardManager manager(&board, 0, 2);
  return AgreeOnMpi(&manager, "mpi", own, "Open MPI 4", Soon());
}

TEST(MpiAgreementTest, ARankThatHasNoMpiIsNamedByTheOthersWithItsReason) {
  EXPECT_TRUE(AgreeWith("+Open MPI 4", {}).ok());
  EXPECT_EQ(AgreeWith("-no such file", {}).message(), "rank 1 can't use MPI: no such file");
  EXPECT_EQ(AgreeWith("", {}).code(), RM_ERR_UNAVAILABLE);
  EXPECT_EQ(AgreeWith("+MPICH 4", {}).message(),
            "the ranks have different MPIs: rank 0 has Open MPI 4, rank 1 has MPICH 4");
  EXPECT_EQ(AgreeWith("+Open MPI 4", {RM_ERR_UNAVAILABLE, "mine"}).message(), "mine");
}

TEST(MpiAgreementTest, ALongReasonIsCutToWhatLaunchersCarry) {
  Board board;
  board.said["mpi"][1] = "+";
  BoardManager manager(&board, 0, 2);
  (void)AgreeOnMpi(&manager, "mpi", {RM_ERR_UNAVAILABLE, std::string(5000, 'x')}, "", Soon());
  EXPECT_LE(board.said["mpi"][0].size(), 500u);
}

TEST_F(FixedWorldTest, WhatRank0SaysIsNotShown) {
  board_.said["host"][0] = "localhost";
  board_.said["worker"][0] = R"({"tcp":"127.0.0.1:1","key":"SECRET)";
  const Status status = Rank(&board_, 1, 2).Found();
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 says something, which is not"));
  EXPECT_THAT(status.message(), Not(HasSubstr("SECRET")));
}

}  // namespace
}  // namespace ringmaster::elastic
