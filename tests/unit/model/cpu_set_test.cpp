// SPDX-License-Identifier: Apache-2.0
#include "model/cpu_set.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CpuSet parsed(std::string_view text) {
  const auto set = CpuSet::parse(text);
  EXPECT_TRUE(set) << text;
  return set.value_or(CpuSet{});
}

std::string refusal(std::string_view text) {
  const auto set = CpuSet::parse(text);
  if (set) return "accepted as '" + set->to_string() + "'";
  EXPECT_EQ(set.error().kind(), ErrorKind::invalid_input);
  return set.error().message();
}

TEST(CpuSet, ParsesNumbersAndRanges) { EXPECT_EQ(parsed("0-3,8"), (CpuSet{0, 1, 2, 3, 8})); }

TEST(CpuSet, ParsesTheKernelsGroups) { EXPECT_EQ(parsed("0-15:2/4").to_string(), "0-1,4-5,8-9,12-13"); }

TEST(CpuSet, CutsTheLastGroupAtTheEndOfItsRange) { EXPECT_EQ(parsed("0-8:3/4").to_string(), "0-2,4-6,8"); }

TEST(CpuSet, TakesOverlappingElementsOnce) { EXPECT_EQ(parsed("3,0-4,2").to_string(), "0-4"); }

TEST(CpuSet, IgnoresWhiteSpaceAround) { EXPECT_EQ(parsed(" \t0-1\n"), (CpuSet{0, 1})); }

TEST(CpuSet, EmptyTextIsTheEmptySet) {
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed(" \n").empty());
  EXPECT_EQ(CpuSet{}.to_string(), "");
}

TEST(CpuSet, ParsesTheLargestCpu) { EXPECT_EQ(parsed("8191").first(), kMaxCpu); }

TEST(CpuSet, RefusesACpuAboveTheLargest) {
  EXPECT_THAT(refusal("8192"), HasSubstr("8192 is above the largest CPU number, 8191"));
  EXPECT_THAT(refusal("0-4294967296"), HasSubstr("above the largest"));
  EXPECT_THAT(refusal("99999999999999999999999"), HasSubstr("above the largest"));
}

TEST(CpuSet, RefusesADescendingRange) { EXPECT_THAT(refusal("3-1"), HasSubstr("3-1 descends")); }

TEST(CpuSet, RefusesWhatIsNotAList) {
  for (const char* text : {"x", ",", "0,", ",0", "0,,1", "-", "-1", "0-", "-0-1", "0--1", "0 1", "0, 1",
                           "0x1", "1.0", "+1", "0-3-5", "all", "0;1"})
    EXPECT_THAT(refusal(text), HasSubstr("is not a number")) << text;
}

TEST(CpuSet, RefusesGroupsThatMakeNoSense) {
  EXPECT_THAT(refusal("0-7:0/4"), HasSubstr("between 1 and all"));
  EXPECT_THAT(refusal("0-7:5/4"), HasSubstr("between 1 and all"));
  EXPECT_THAT(refusal("0-7:1/0"), HasSubstr("between 1 and all"));
  EXPECT_THAT(refusal("0-7:2"), HasSubstr("is not a group"));
  EXPECT_THAT(refusal("3:1/2"), HasSubstr("only a range has groups"));
}

TEST(CpuSet, QuotesGarbageShortAndPrintable) {
  const std::string message = refusal("\n\x1b[31m" + std::string(1000, 'x'));
  EXPECT_LT(message.size(), 200u);
  for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
}

TEST(CpuSet, InsertsAndErases) {
  CpuSet set{5};
  set.insert(130);
  set.erase(5);
  set.erase(77);
  EXPECT_THAT(set.to_vector(), ElementsAre(130));
  set.erase(130);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set, CpuSet{});
}

TEST(CpuSet, NoNumberOutsideTheRangeIsContained) {
  const CpuSet set{0, kMaxCpu};
  EXPECT_FALSE(set.contains(-1));
  EXPECT_FALSE(set.contains(kMaxCpu + 1));
  EXPECT_FALSE(set.contains(1 << 30));
}

TEST(CpuSet, WalksUpwards) {
  const CpuSet set{0, 63, 64, 200};
  EXPECT_EQ(set.first(), 0);
  EXPECT_EQ(set.next(0), 63);
  EXPECT_EQ(set.next(63), 64);
  EXPECT_EQ(set.next(64), 200);
  EXPECT_EQ(set.next(200), -1);
  EXPECT_EQ(CpuSet{}.first(), -1);
}

TEST(CpuSet, ARangeHoldsBothEnds) {
  EXPECT_EQ(CpuSet::range(62, 65), (CpuSet{62, 63, 64, 65}));
  EXPECT_TRUE(CpuSet::range(3, 2).empty());
}

// The same things said with std::set<int>.
using Plain = std::set<int>;

CpuSet built(const Plain& plain) {
  CpuSet set;
  for (const int cpu : plain) set.insert(cpu);
  return set;
}

Plain plain_of(const CpuSet& set) { return Plain(set.begin(), set.end()); }

rc::Gen<Plain> plain_sets() {
  // Small numbers meet often; a few large ones cross many words.
  const auto cpus = rc::gen::oneOf(rc::gen::inRange(0, 200), rc::gen::inRange(0, kMaxCpu + 1));
  return rc::gen::container<Plain>(cpus);
}

RC_GTEST_PROP(CpuSetProperty, HoldsWhatWasInserted, ()) {
  const Plain plain = *plain_sets();
  const CpuSet set = built(plain);
  RC_ASSERT(plain_of(set) == plain);
  RC_ASSERT(set.size() == plain.size());
  RC_ASSERT(set.empty() == plain.empty());
  RC_ASSERT(set.first() == (plain.empty() ? -1 : *plain.begin()));
  for (int cpu = -1; cpu < 260; ++cpu) RC_ASSERT(set.contains(cpu) == plain.contains(cpu));
}

RC_GTEST_PROP(CpuSetProperty, CombinesAsSetsDo, ()) {
  const Plain a = *plain_sets();
  const Plain b = *plain_sets();
  Plain both_of = a, common, rest;
  both_of.insert(b.begin(), b.end());
  for (const int cpu : a) (b.contains(cpu) ? common : rest).insert(cpu);
  RC_ASSERT((built(a) | built(b)) == built(both_of));
  RC_ASSERT((built(a) & built(b)) == built(common));
  RC_ASSERT((built(a) - built(b)) == built(rest));
  RC_ASSERT(built(a).intersects(built(b)) == !common.empty());
  RC_ASSERT(built(a).is_subset_of(built(b)) == rest.empty());
  RC_ASSERT(built(common).is_subset_of(built(a)));
}

RC_GTEST_PROP(CpuSetProperty, EqualHoweverBuilt, ()) {
  const Plain a = *plain_sets();
  const Plain extra = *plain_sets();
  CpuSet set = built(a);
  for (const int cpu : extra) set.insert(cpu);
  for (const int cpu : extra)
    if (!a.contains(cpu)) set.erase(cpu);
  RC_ASSERT(set == built(a));
}

RC_GTEST_PROP(CpuSetProperty, ReadsBackWhatItWrites, ()) {
  const Plain plain = *plain_sets();
  const auto again = CpuSet::parse(built(plain).to_string());
  RC_ASSERT(again.has_value());
  RC_ASSERT(plain_of(*again) == plain);
}

RC_GTEST_PROP(CpuSetProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  const auto set = CpuSet::parse(text);
  if (set) RC_ASSERT(CpuSet::parse(set->to_string()) == *set);
}

}  // namespace
}  // namespace berth::model
