// SPDX-License-Identifier: Apache-2.0
// Samples that are read straight from a snapshot's text are those that the general reader finds there.
#include "model/usage_json.h"

#include "model/json.h"
#include "tests/unit/model/documents.h"
#include "tests/unit/model/generators.h"

#include <algorithm>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

using testing::snapshot_document;
using testing::workload_document;

// The same document, of which only the general reader sees that it has samples.
std::string spelled_otherwise(std::string text) {
  const std::string name = "\"usage\"";
  const std::string same = "\"us\\u0061ge\"";
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + same.size()))
    text.replace(at, name.size(), same);
  return text;
}

// Columns, and the words around them, are others where a name is spelled otherwise.
std::string without_columns(const std::string& message) {
  return std::regex_replace(message, std::regex(", column .*"), "");
}

// The result of reading a document, in words.
std::string outcome_of(const std::string& text) {
  const auto parsed = parse_snapshot(text);
  if (!parsed) return without_columns(parsed.error().message());
  std::string outcome = to_json(parsed->snapshot);
  for (const std::string& warning : parsed->warnings) outcome += "\n" + warning;
  return outcome;
}

std::string with_usage(const std::string& usage) { return workload_document(",\"usage\":" + usage); }

TEST(UsageJson, EverySampleIsTakenFromAPlainDocument) {
  const std::string text = snapshot_document(
      R"({"id":"a","class":"best-effort","usage":[{"time":1.5,"cpu":2},{"time":2,"memory_bytes":null}]},)"
      R"({"id":"b","class":"best-effort"},)"
      "{\"id\":\"c\",\"class\":\"best-effort\",\n\t\"usage\" : [ ] , \"priority\" : 3 }");
  const auto taken = take_usage(text);
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->usage.size(), 2U);
  EXPECT_EQ(taken->usage[0].first, 0U);
  ASSERT_EQ(taken->usage[0].second.size(), 2U);
  EXPECT_EQ(taken->usage[0].second[0].time, 1.5);
  EXPECT_EQ(taken->usage[0].second[0].cpu_cores, 2);
  EXPECT_EQ(taken->usage[0].second[1].memory_bytes, std::nullopt);
  EXPECT_EQ(taken->usage[1].first, 2U);
  EXPECT_TRUE(taken->usage[1].second.empty());
  EXPECT_EQ(taken->text.find("time"), std::string::npos);
  EXPECT_EQ(outcome_of(text), outcome_of(spelled_otherwise(text)));
}

TEST(UsageJson, OnlyAWorkloadsOwnUsageIsTaken) {
  const std::string sample = R"([{"time":1}])";
  for (const std::string& text : {
           snapshot_document("", ",\"usage\":" + sample),
           workload_document(",\"spark\":{\"usage\":" + sample + "}"),
           workload_document(",\"service\":\"usage\""),
           snapshot_document("[{\"usage\":" + sample + "}]"),
       }) {
    const auto taken = take_usage(text);
    ASSERT_TRUE(taken) << text;
    EXPECT_TRUE(taken->usage.empty()) << text;
    EXPECT_EQ(taken->text, text);
    EXPECT_EQ(outcome_of(text), outcome_of(spelled_otherwise(text))) << text;
  }
}

TEST(UsageJson, WhatIsOddIsLeftToTheGeneralReader) {
  for (const char* sample : {"1",
                             "null",
                             "{}",
                             R"({"cpu":1})",
                             R"({"time":null})",
                             R"({"time":1,"cpu":null})",
                             R"({"time":-0.0})",
                             R"({"time":01})",
                             R"({"time":1.})",
                             R"({"time":.5})",
                             R"({"time":+1})",
                             R"({"time":1e})",
                             R"({"time":1e400})",
                             R"({"time":1e-400})",
                             R"({"time":"1"})",
                             R"({"time":true})",
                             R"({"time":NaN})",
                             R"({"time":253402300800})",
                             R"({"time":1,"cpu":8193})",
                             R"({"time":1,"cpu":-1})",
                             R"({"time":1,"memory_bytes":4.0})",
                             R"({"time":1,"memory_bytes":1e3})",
                             R"({"time":1,"memory_bytes":9007199254740993})",
                             R"({"time":1,"memory_bytes":99999999999999999999})",
                             R"({"time":1,"memory_bytes":007})",
                             R"({"time":1,"progress":1.5})",
                             R"({"time":1,"time":1})",
                             R"({"time":1,"other":1})",
                             R"({"time":1,"tim\u0065":1})",
                             R"({"time":1,})",
                             R"({"time":1)",
                             R"({"time" 1})",
                             R"({"time":1 "cpu":1})",
                             R"({"time":nul})",
                             R"({"time":1,"memory_bytes":nulls})",
                             R"({"time":1}{"time":2})",
                             R"({"time":1},)"}) {
    const std::string text = with_usage("[" + std::string(sample) + "]");
    EXPECT_FALSE(take_usage(text)) << text;
    EXPECT_EQ(outcome_of(text), outcome_of(spelled_otherwise(text))) << text;
  }
}

TEST(UsageJson, NumbersAreThoseOfTheGeneralReader) {
  for (const char* number : {"0", "0.0", "0e5", "1E+2", "1e-2", "5e-1", "0.1", "0.30000000000000004",
                             "4.9e-320", "123.456789012345678901234567890", "1.7976931348623157e-300"}) {
    const std::string text = with_usage("[{\"time\":" + std::string(number) + ",\"cpu\":" + number +
                                        ",\"runq_latency_us\":" + number + "}]");
    EXPECT_EQ(outcome_of(text), outcome_of(spelled_otherwise(text))) << text;
  }
}

TEST(UsageJson, ErrorsBesideSamplesAreWhereTheyAre) {
  EXPECT_EQ(testing::error_of(with_usage(R"([{"time":2},{"time":1}])")),
            "$.workloads[0].usage[1].time: 1 is before the sample above, 2");
  EXPECT_EQ(testing::error_of(workload_document(R"(,"usage":[{"time":2}],"usage":[])")),
            "$.workloads[0].usage: given twice");
  const std::string text = workload_document(",\n\"usage\":[{\"time\":2},\n{\"time\":3}],\n\"priority\":x");
  EXPECT_TRUE(testing::error_of(text).starts_with("$.workloads[0].priority: line 4, column ")) << text;
}

RC_GTEST_PROP(UsageJsonProperty, WholeDocumentsAreReadTheSame, ()) {
  const Snapshot snapshot = *testing::snapshots();
  const std::string text = to_json(snapshot);
  const auto taken = take_usage(text);
  RC_ASSERT(taken.has_value());
  RC_ASSERT(taken->usage.size() == snapshot.workloads.size());
  const auto parsed = parse_snapshot(text);
  const auto general = parse_snapshot(spelled_otherwise(text));
  RC_ASSERT(parsed.has_value() && general.has_value());
  RC_ASSERT(parsed->snapshot == general->snapshot);
  RC_ASSERT(parsed->snapshot == snapshot);
}

RC_GTEST_PROP(UsageJsonProperty, DamagedDocumentsAreRefusedTheSame, ()) {
  namespace gen = rc::gen;
  testing::SnapshotShape shape;
  shape.max_workloads = 2;
  std::string text = to_json(*testing::snapshots(shape));
  const int damages = *gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    // Near samples, as often as elsewhere.
    auto at = *gen::inRange<std::size_t>(0, text.size());
    if (*gen::arbitrary<bool>()) at = std::min(text.find("\"usage\"", at), text.size() - 1);
    at = std::min(at + *gen::inRange<std::size_t>(0, 40), text.size() - 1);
    switch (*gen::inRange(0, 3)) {
      case 0:
        text[at] = *gen::elementOf(std::string("0123456789.eE+-\"\\{}[],: nulx\xff"));
        break;
      case 1:
        text.erase(at, *gen::inRange<std::size_t>(1, 5));
        if (text.empty()) text = " ";
        break;
      default:
        text.insert(at, 1, *gen::elementOf(std::string("0123456789.eE+-\"\\{}[],: nulx")));
    }
  }
  RC_ASSERT(outcome_of(text) == outcome_of(spelled_otherwise(text)));
}

}  // namespace
}  // namespace berth::model
