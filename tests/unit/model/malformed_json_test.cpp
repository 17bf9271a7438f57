// SPDX-License-Identifier: Apache-2.0
// Text that is no JSON document at all, or none that a careful reader takes.
#include "model/json.h"
#include "tests/unit/model/documents.h"

#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::snapshot_document;
using ::testing::StartsWith;
using testing::workload_document;

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

TEST(MalformedJson, EmptyInput) {
  EXPECT_EQ(error_of(""), "$: the document is empty");
  EXPECT_EQ(error_of(" \n\t"), "$: the document is empty");
}

TEST(MalformedJson, NamesLineAndColumn) {
  EXPECT_THAT(error_of("{\"schema\": \"berth.snapshot/1\",\n  \"topology\": }"),
              StartsWith("$.topology: line 2, column 15: "));
}

TEST(MalformedJson, NamesThePathWhereReadingStopped) {
  EXPECT_THAT(error_of(workload_document(R"(,"priority":1,"vcpus":x)")),
              StartsWith("$.workloads[0].vcpus: line 1"));
  EXPECT_THAT(error_of(R"({"workloads":[{},{"usage":[1,2,x]}]})"),
              StartsWith("$.workloads[1].usage[2]: line 1"));
}

TEST(MalformedJson, Truncated) {
  const std::string whole = snapshot_document("");
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_THAT(error_of(whole.substr(0, length)), HasSubstr("line 1, column ")) << length;
}

TEST(MalformedJson, TrailingGarbage) {
  EXPECT_THAT(error_of(snapshot_document("") + " x"), HasSubstr("line 1"));
  EXPECT_THAT(error_of(snapshot_document("") + snapshot_document("")), HasSubstr("line 1"));
}

TEST(MalformedJson, NanAndInfinityAreNoNumbers) {
  for (const char* token : {"NaN", "Infinity", "-Infinity", "nan", "-NaN"})
    EXPECT_THAT(error_of(workload_document(std::string(R"(,"cpu_quota":)") + token)),
                StartsWith("$.workloads[0].cpu_quota: line 1"))
        << token;
  EXPECT_THAT(error_of(snapshot_document("", R"(,"load1":NaN)")),
              HasSubstr("JSON has no NaN and no Infinity"));
}

TEST(MalformedJson, NumbersBeyondADouble) {
  EXPECT_THAT(error_of(snapshot_document("", R"(,"load1":1e999)")), StartsWith("$.load1: line 1"));
  EXPECT_THAT(error_of(snapshot_document("", R"(,"load1":-1e999)")), StartsWith("$.load1: line 1"));
}

TEST(MalformedJson, CommentsAndTrailingCommas) {
  EXPECT_THAT(error_of("/* x */ {}"), HasSubstr("line 1, column 1"));
  EXPECT_THAT(error_of("{\"schema\":\"berth.snapshot/1\",}"), HasSubstr("line 1, column "));
}

TEST(MalformedJson, InvalidUtf8) {
  EXPECT_THAT(error_of(workload_document(",\"service\":\"\xC3\x28\"")),
              StartsWith("$.workloads[0].service: line 1"));
  EXPECT_THAT(error_of(workload_document(",\"service\":\"\xED\xA0\x80\"")), HasSubstr("line 1"));
  EXPECT_THAT(error_of(workload_document(R"(,"service":"\ud800")")), HasSubstr("surrogate"));
  EXPECT_THAT(error_of("\xFF\xFE{}"), HasSubstr("line 1, column 1"));
}

TEST(MalformedJson, AMemberTwiceInOneObject) {
  EXPECT_EQ(error_of(workload_document(R"(,"vcpus":1,"vcpus":2)")), "$.workloads[0].vcpus: given twice");
  EXPECT_EQ(error_of(snapshot_document("", R"(,"workloads":[])")), "$.workloads: given twice");
  EXPECT_EQ(error_of(R"({"a":{"\u0062":1,"b":2}})"), "$.a.b: given twice");
}

TEST(MalformedJson, TheSameMemberInTwoObjectsIsFine) {
  EXPECT_EQ(
      error_of(snapshot_document(R"({"id":"a","class":"best-effort"},{"id":"b","class":"best-effort"})")),
      "accepted");
}

TEST(MalformedJson, NestedToTheLimit) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(error_of(nested(kMaxJsonDepth)), "$: expected an object, found an array");
  EXPECT_THAT(error_of(nested(kMaxJsonDepth + 1)), HasSubstr("nested deeper than 64 levels"));
}

TEST(MalformedJson, AHundredThousandBracketsAreRefusedAtOnceInOneLine) {
  for (const char* unit : {"[", "{\"a\":", "[{\"a\":["}) {
    std::string document;
    for (int level = 0; level < 100'000; ++level) document += unit;
    // The thread's own CPU time, which a busy machine does not lengthen.
    const double start = cpu_seconds();
    const std::string message = error_of(document);
    EXPECT_LT(cpu_seconds() - start, 0.5);
    EXPECT_THAT(message, HasSubstr("nested deeper than 64 levels"));
    EXPECT_LT(message.size(), 1000u);
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(MalformedJson, MoreThan256MiB) {
  const std::string document(kMaxDocumentBytes + 1, ' ');
  EXPECT_EQ(error_of(document), "$: the document has 268435457 bytes, more than the 268435456 accepted");
}

TEST(MalformedJson, MessagesStayOneShortPrintableLine) {
  const std::string long_token(1 << 20, 'x');
  const std::vector<std::string> documents{"{\"" + long_token,
                                           "{\"" + long_token + "\":{\"a\":1,\"a\":2}}",
                                           "{\"a\\n\\u001b[31m\":nul}",
                                           "{\"a\":\"\x1b[31m\n\"}",
                                           std::string("{\"\0\":1}", 7),
                                           snapshot_document(R"({"id":"w","class":")" + long_token + "\"}"),
                                           snapshot_document(R"({"id":"w","class":"\u001b[31m"})"),
                                           workload_document(R"(,"spark":{"app":"a","role":"\n"})"),
                                           workload_document(R"(,"gpus":["\u009b31m"])")};
  for (const std::string& document : documents) {
    const std::string message = error_of(document);
    EXPECT_NE(message, "accepted");
    EXPECT_LT(message.size(), 600u);
    for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
  }
}

TEST(MalformedJson, AnotherTopLevelValue) {
  EXPECT_EQ(error_of("[]"), "$: expected an object, found an array");
  EXPECT_EQ(error_of("3"), "$: expected an object, found a number");
  EXPECT_EQ(error_of("null"), "$: expected an object, found null");
}

TEST(MalformedJson, ATooLargeNumberOfValuesIsRefused) {
  std::string document = "[";
  document.reserve(30'000'000);
  for (int value = 0; value < 10'000'001; ++value) document += "0,";
  EXPECT_THAT(error_of(document), HasSubstr("more than 10000000 values"));
}

}  // namespace
}  // namespace berth::model
