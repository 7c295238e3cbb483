#include "collectives/elastic/request_reader.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace ringmaster::elastic {
namespace {

using engine::Kind;
using testing::HasSubstr;
using Operations = std::vector<std::shared_ptr<engine::Operation>>;

const size_t kShape[] = {4, 3};
float data[12];
const std::vector<std::string> kWorkers = {"a", "b"};
Asker Here() {
  return {"a", [](int) { return kWorkers; }, [](int) { return kWorkers; }};
}

rm_request Good(rm_kind kind, const char* name = "x") {
  rm_request request = rm_request_of(kind, name);
  request.shape = kShape;
  request.dimensions = 2;
  request.dtype = RM_FLOAT32;
  request.in = request.out = data;
  request.root = kind == RM_BROADCAST_BYTES ? "a" : "a worker";
  return request;
}

TEST(RequestReaderTest, EveryKindBecomesAnOperation) {
  const struct {
    rm_kind kind;
    Kind read;
    uint64_t count;
    size_t rows;
  } cases[] = {
      {RM_ALLREDUCE, Kind::kAllreduce, 12, 0}, {RM_ALLGATHER, Kind::kAllgather, 3, 4},
      {RM_BROADCAST, Kind::kBroadcast, 12, 0}, {RM_BROADCAST_BYTES, Kind::kAllgather, 3, 4},
      {RM_BARRIER, Kind::kBarrier, 0, 0},      {RM_REDUCESCATTER, Kind::kReducescatter, 12, 0},
      {RM_ALLTOALL, Kind::kAlltoall, 3, 4},    {RM_JOIN, Kind::kJoin, 0, 0},
      {RM_SEND, Kind::kTransfer, 12, 0},       {RM_RECEIVE, Kind::kTransfer, 12, 0}};
  for (const auto& one : cases) {
    const rm_request request = Good(one.kind);
    Operations operations;
    const Status status = ReadRequests(&request, 1, Here(), &operations);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(operations[0]->request.kind, one.read);
    EXPECT_EQ(operations[0]->request.count, one.count);
    EXPECT_EQ(operations[0]->rows, one.rows);
    EXPECT_EQ(operations[0]->request.group.size, 0u);
  }
}

TEST(RequestReaderTest, WhatIsWrongIsNamed) {
  const struct {
    std::function<void(rm_request*)> spoil;
    const char* says;
  } cases[] = {
      {[](rm_request* r) { r->name = nullptr; }, "name is empty"},
      {[](rm_request* r) { r->name = "\x01x"; }, "reserved"},
      {[](rm_request* r) {
         r->name =
             "x\x02"
             "1";
       },
       "reserved"},
      {[](rm_request* r) { r->kind = static_cast<rm_kind>(0); }, "kind is 0"},
      {[](rm_request* r) { r->kind = static_cast<rm_kind>(-3); }, "kind is -3"},
      {[](rm_request* r) { r->in = nullptr; }, "buffer is null"},
      {[](rm_request* r) { r->out = nullptr; }, "buffer is null"},
      {[](rm_request* r) { r->shape = nullptr; }, "shape"},
      {[](rm_request* r) { r->dimensions = -1; }, "shape"},
      {[](rm_request* r) { r->dtype = static_cast<rm_dtype>(13); }, "dtype is 13"},
      {[](rm_request* r) { r->op = static_cast<rm_op>(-1); }, "op is -1"},
      {[](rm_request* r) { r->dtype = RM_BOOL, r->op = RM_AVERAGE; }, "bool"},
      {[](rm_request* r) { r->dtype = RM_INT32, r->op = RM_ADASUM; }, "dtype is int32"},
      {[](rm_request* r) { r->kind = RM_REDUCESCATTER, r->op = RM_ADASUM; }, "op is 5"},
      {[](rm_request* r) { r->op = RM_ADASUM, r->postscale = NAN; }, "finite"},
      {[](rm_request* r) { r->prescale = std::numeric_limits<double>::infinity(); }, "finite"},
      {[](rm_request* r) { r->device = -1; }, "device is -1"},
      {[](rm_request* r) { r->ready_event = r; }, "ready_event"},
      {[](rm_request* r) { r->process_set = -1; }, "process_set is -1"},
      {[](rm_request* r) { r->size = 8; }, "size is 8"},
      {[](rm_request* r) { r->kind = RM_BROADCAST, r->root = ""; }, "root"},
      {[](rm_request* r) { r->kind = RM_SEND, r->root = nullptr; }, "root is ''"},
      {[](rm_request* r) { r->kind = RM_SEND, r->root = "a"; }, "another worker of the view"},
      {[](rm_request* r) { r->kind = RM_SEND, r->in = nullptr; }, "buffer is null"},
      {[](rm_request* r) { r->kind = RM_RECEIVE, r->out = nullptr; }, "buffer is null"},
      {[](rm_request* r) { r->kind = RM_RECEIVE, r->device = 1; }, "device is 1"},
  };
  for (const auto& one : cases) {
    rm_request request = Good(RM_ALLREDUCE);
    one.spoil(&request);
    Operations operations;
    const Status status = ReadRequests(&request, 1, Here(), &operations);
    EXPECT_EQ(status.code(), RM_ERR_INVALID) << one.says;
    EXPECT_THAT(status.message(), HasSubstr(one.says));
    EXPECT_TRUE(operations.empty());
  }
  Operations operations;
  EXPECT_EQ(ReadRequests(nullptr, 1, Here(), &operations).code(), RM_ERR_INVALID);
}

TEST(RequestReaderTest, ASendAndItsReceiveAskForTheSame) {
  rm_request send = Good(RM_SEND), receive = Good(RM_RECEIVE);
  send.root = "b";
  receive.root = "a";
  Operations operations;
  Asker there = Here();
  there.worker = "b";
  ASSERT_TRUE(ReadRequests(&send, 1, Here(), &operations).ok());
  ASSERT_TRUE(ReadRequests(&receive, 1, there, &operations).ok());
  EXPECT_EQ(operations[0]->request, operations[1]->request);
  EXPECT_EQ(operations[0]->request.members, kWorkers);
  EXPECT_EQ(operations[0]->request.root, "a");
  EXPECT_EQ(operations[0]->out, nullptr);
  EXPECT_EQ(operations[1]->in, nullptr);
}

TEST(RequestReaderTest, ManyAreAGroupOfTheirNamesInTheirOrder) {
  rm_request requests[] = {Good(RM_ALLREDUCE, "a"), Good(RM_ALLGATHER, "b")};
  Operations operations, turned;
  ASSERT_TRUE(ReadRequests(requests, 2, Here(), &operations).ok());
  EXPECT_EQ(operations[0]->request.group, operations[1]->request.group);
  EXPECT_EQ(operations[0]->request.group.size, 2u);
  requests[1].name = "c";
  ASSERT_TRUE(ReadRequests(requests, 2, Here(), &turned).ok());
  EXPECT_NE(operations[0]->request.group, turned[0]->request.group);

  requests[1] = Good(RM_BARRIER, "b");
  EXPECT_THAT(ReadRequests(requests, 2, Here(), &turned).message(), HasSubstr("barrier"));
  requests[1] = Good(RM_ALLREDUCE, "b");
  requests[1].size += 8;
  EXPECT_THAT(ReadRequests(requests, 2, Here(), &turned).message(), HasSubstr("size is"));
  requests[1] = Good(RM_ALLREDUCE, "b");
  requests[1].process_set = 1;
  EXPECT_THAT(ReadRequests(requests, 2, Here(), &turned).message(), HasSubstr("process_set is 1"));
}

rm_request OfPrepared(const size_t* shape, int dimensions) {
  rm_request request = Good(RM_ALLREDUCE, nullptr);
  request.shape = shape;
  request.dimensions = dimensions;
  return request;
}

TEST(RequestReaderTest, APreparedGroupIsOneRequestWithTheShapesOfItsTensors) {
  const size_t five = 5, none = 0;
  rm_request requests[] = {Good(RM_ALLREDUCE, nullptr), OfPrepared(&five, 1),
                           OfPrepared(nullptr, 0), OfPrepared(&none, 1)};
  float out[5];
  requests[1].out = out;
  for (rm_request& request : requests) request.postscale = 0.25;
  PreparedGroup group;
  const Status status = ReadPrepared("group", requests, 4, &group);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(group.request.name, "group");
  EXPECT_EQ(group.request.pieces, "[4, 3][5][1][0]");
  EXPECT_EQ(group.request.count, 18u);
  EXPECT_TRUE(group.request.shape.empty());
  EXPECT_EQ(group.request.postscale, 0.25);
  const auto first = group.Ask(nullptr), second = group.Ask(nullptr);
  EXPECT_EQ(first->pieces, second->pieces) << "nothing is described again";
  EXPECT_EQ((*first->pieces)[1].in, data);
  EXPECT_EQ((*first->pieces)[1].out, out);
}

TEST(RequestReaderTest, OfWhatCannotBePreparedTheGroupTheTensorAndTheFieldAreNamed) {
  const size_t huge = SIZE_MAX / 9;
  const struct {
    std::function<void(rm_request*)> spoil;
    const char* says;
  } cases[] = {
      {[](rm_request* r) { r->kind = RM_ALLGATHER; }, "kind is 2, and only allreduces"},
      {[](rm_request* r) { r->op = RM_ADASUM; }, "op is adasum"},
      {[](rm_request* r) { r->op = RM_MAX; }, "op is"},
      {[](rm_request* r) { r->dtype = RM_FLOAT64; }, "dtype is 7, and of the group's first 6"},
      {[](rm_request* r) { r->prescale = 2; }, "prescale is 2"},
      {[](rm_request* r) { r->postscale = 2; }, "postscale is 2"},
      {[](rm_request* r) { r->postscale = NAN; }, "must be finite"},
      {[](rm_request* r) { r->process_set = 3; }, "process_set is 3, and of the group's first 0"},
      {[](rm_request* r) { r->device = 1; }, "device is 1, and of the group's first 0"},
      {[](rm_request* r) { r->priority = 1; }, "priority is 1"},
      {[](rm_request* r) { r->ready_event = r; }, "ready_event must be NULL"},
      {[](rm_request* r) { r->in = nullptr; }, "buffer is null"},
      {[&](rm_request* r) { r->shape = &huge, r->dimensions = 1; }, "more bytes than memory"},
      {[](rm_request* r) { r->size += 8; }, "size is"},
  };
  for (const auto& one : cases) {
    rm_request requests[] = {Good(RM_ALLREDUCE), Good(RM_ALLREDUCE), Good(RM_ALLREDUCE)};
    if (one.says == std::string("more bytes than memory")) one.spoil(&requests[1]);
    one.spoil(&requests[2]);
    PreparedGroup group;
    const Status status = ReadPrepared("group", requests, 3, &group);
    EXPECT_EQ(status.code(), RM_ERR_INVALID) << one.says;
    EXPECT_THAT(status.message(), HasSubstr(one.says));
    if (one.says == std::string("size is")) continue;
    EXPECT_THAT(status.message(), HasSubstr("prepared group 'group', tensor 2: "));
  }
  PreparedGroup group;
  const rm_request good = Good(RM_ALLREDUCE);
  EXPECT_THAT(ReadPrepared("", &good, 1, &group).message(), HasSubstr("name is empty"));
  EXPECT_THAT(ReadPrepared("x", &good, 0, &group).message(), HasSubstr("n is 0"));
}

TEST(RequestReaderTest, SplitsThatDoNotFitAreAProblemForAllRanks) {
  const struct {
    std::vector<size_t> splits;
    const char* says;
  } cases[] = {{{1, 3}, ""},
               {{4, 0}, ""},
               {{1, 2}, "the sum of splits is 3, the tensor has 4 rows"},
               {{3, 3}, "the sum of splits is 6 or more, the tensor has 4 rows"},
               {{SIZE_MAX, 5}, "or more, the tensor has 4 rows"},
               {{4}, "splits has 1 entries, there are 2 ranks"},
               {{}, "splits has 0 entries"}};
  for (const auto& one : cases) {
    rm_request request = Good(RM_ALLTOALL);
    const size_t none = 0;
    request.splits = one.splits.empty() ? &none : one.splits.data();
    request.splits_count = one.splits.size();
    Operations operations;
    const Status status = ReadRequests(&request, 1, Here(), &operations);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_THAT(operations[0]->request.problem, HasSubstr(one.says));
    EXPECT_EQ(operations[0]->request.problem.empty(), one.says[0] == '\0');
  }
}

TEST(RequestReaderTest, BytesOfAnotherThanTheRootAreAProblemForAllRanks) {
  const size_t none = 0;
  rm_request request = Good(RM_BROADCAST_BYTES);
  request.shape = &none;
  request.dimensions = 1;
  request.root = "b";
  Operations operations;
  ASSERT_TRUE(ReadRequests(&request, 1, Here(), &operations).ok());
  EXPECT_EQ(operations[0]->request.problem, "");
  const size_t some = 4;
  request.shape = &some;
  ASSERT_TRUE(ReadRequests(&request, 1, Here(), &operations).ok());
  EXPECT_EQ(operations[1]->request.problem, "only the root, b, gives bytes, and 4 were given");
  request.root = "a";
  ASSERT_TRUE(ReadRequests(&request, 1, Here(), &operations).ok());
  EXPECT_EQ(operations[2]->request.problem, "");
}

TEST(RequestReaderTest, WithoutSplitsRowsAreSharedEvenlyOrNotAtAll) {
  rm_request request = Good(RM_ALLTOALL);
  Operations operations;
  ASSERT_TRUE(ReadRequests(&request, 1, Here(), &operations).ok());
  EXPECT_EQ(operations[0]->splits.rows, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(operations[0]->splits.workers, kWorkers);
  const size_t odd[] = {3, 3};
  request.shape = odd;
  ASSERT_TRUE(ReadRequests(&request, 1, Here(), &operations).ok());
  EXPECT_THAT(operations[1]->request.problem, HasSubstr("3 rows can't be shared evenly by 2"));
}

// Worker a has died since the step began.
TEST(RequestReaderTest, SplitsAreForTheWorkersOfTheStepOrForThoseThatAreLeft) {
  Asker asker = Here();
  asker.worker = "b";
  asker.members = [](int) { return std::vector<std::string>{"a", "b", "c"}; };
  asker.members_now = [](int) { return std::vector<std::string>{"b", "c"}; };
  const size_t splits[] = {1, 2, 1}, fewer[] = {3, 1}, wrong[] = {4};
  rm_request request = Good(RM_ALLTOALL);
  Operations operations;
  const auto read = [&](const size_t* given, size_t count) {
    request.splits = given;
    request.splits_count = count;
    EXPECT_TRUE(ReadRequests(&request, 1, asker, &operations).ok());
    return operations.back();
  };
  EXPECT_EQ(read(splits, 3)->splits.workers, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(operations.back()->request.problem, "");
  EXPECT_EQ(read(fewer, 2)->splits.workers, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(operations.back()->request.problem, "");
  EXPECT_EQ(read(wrong, 1)->request.problem, "splits has 1 entries, there are 3 ranks");
  const size_t six[] = {6, 3};
  request.shape = six;
  EXPECT_EQ(read(nullptr, 0)->splits.rows, (std::vector<uint64_t>{2, 2, 2}));
  const size_t four[] = {4, 3}, five[] = {5, 3};
  request.shape = four;
  EXPECT_EQ(read(nullptr, 0)->splits.rows, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(operations.back()->splits.workers, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(operations.back()->request.problem, "");
  request.shape = five;
  EXPECT_THAT(read(nullptr, 0)->request.problem, HasSubstr("shared evenly by 3 ranks"));
}

// A later version of rm_request, with fields that this one doesn't know.
struct Later {
  rm_request known;
  uint64_t added;
};

TEST(RequestReaderTest, ANewerCallerIsUnderstoodAsLongAsItUsesNothingNew) {
  Later requests[] = {{Good(RM_ALLREDUCE, "a"), 0}, {Good(RM_ALLREDUCE, "b"), 0}};
  for (Later& later : requests) later.known.size = sizeof(Later);
  Operations operations;
  ASSERT_TRUE(ReadRequests(&requests[0].known, 2, Here(), &operations).ok());
  EXPECT_EQ(operations[1]->request.name, "b");
  requests[1].added = 1;
  EXPECT_THAT(ReadRequests(&requests[0].known, 2, Here(), &operations).message(),
              HasSubstr("not know"));
}

}  // namespace
}  // namespace ringmaster::elastic
