// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"
#include "model/json.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::config {
namespace {

// The message that `toml` is refused with; "" where it is accepted.
std::string error_of(std::string_view toml) {
  const auto parsed = parse(toml, "b.toml");
  if (parsed) return "";
  EXPECT_EQ(parsed.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(parsed.error().message().find('\n'), std::string::npos) << "one line";
  return parsed.error().message();
}

struct Refused {
  const char* toml;
  const char* message;
};

void expect_refused(std::initializer_list<Refused> cases) {
  for (const auto& c : cases) EXPECT_EQ(error_of(c.toml), c.message) << c.toml;
}

TEST(Parse, EmptyDocumentGivesTheDefaults) {
  for (const char* text :
       {"", "\n", "# nothing\n", "\xef\xbb\xbf", "[interference]\n",
        "# ..........................................................................\n"}) {
    const auto parsed = parse(text, "b.toml");
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_EQ(parsed->mode, Mode::observe);
    EXPECT_EQ(parsed->tick_s, 1.0);
    EXPECT_TRUE(parsed->rules.empty());
  }
}

TEST(Parse, AFormerNameSetsThePresentKeyAndIsReported) {
  const auto parsed = parse("[spark]\nwatch = false\ngrace = 7\n", "b.toml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_FALSE(parsed->spark_watch);
  EXPECT_EQ(parsed->policies.eviction.grace_s, 7);
  ASSERT_EQ(parsed->warnings.size(), 1U) << "spark.watch is no former name";
  EXPECT_EQ(parsed->warnings.front(),
            "b.toml:3:1: spark.grace is the former name of eviction.grace; the next release refuses it");
}

TEST(Parse, AMistypedFormerNameHasItsPresentOneAsHint) {
  EXPECT_EQ(error_of("[spark]\ngrac = 7\n"),
            "b.toml:2:1: unknown key \"grac\" in [spark]; did you mean \"grace\" in [eviction]?");
}

TEST(Parse, AKeyByBothOfItsNamesIsRefused) {
  EXPECT_EQ(error_of("[spark]\ngrace = 7\n[eviction]\ngrace = 8\n"),
            "b.toml:2:1: eviction.grace is given twice, once by a former name; leave that one out");
}

TEST(Parse, AProgressFileIsRead) {
  for (const char* text : {"[[workload]]\nmatch = \"a\"\nprogress = {file = \"/run/%p/progress\"}",
                           "[[workload]]\nmatch = \"a\"\n[workload.progress]\nfile = \"/run/%p/progress\"",
                           "[[workload]]\nmatch = \"a\"\nprogress.file = \"/run/%p/progress\""}) {
    const auto parsed = parse(text, "b.toml");
    ASSERT_TRUE(parsed) << parsed.error().message();
    ASSERT_EQ(parsed->rules.size(), 1U);
    EXPECT_EQ(parsed->rules.front().progress_file, "/run/%p/progress");
  }
}

TEST(Parse, AProgressOfAnotherShapeIsRefused) {
  const std::string rule = "[[workload]]\nmatch = \"a\"\nprogress = ";
  const auto refused = [&](const std::string& value) { return error_of(rule + value); };
  EXPECT_EQ(refused("\"/run/x\""), "b.toml:3:12: progress wants a table, {file = \"PATH\"}, got \"/run/x\"");
  EXPECT_EQ(refused("3"), "b.toml:3:12: progress wants a table, {file = \"PATH\"}, got 3");
  EXPECT_EQ(refused("{}"), "b.toml:3:12: progress: it names no file");
  EXPECT_EQ(refused("{path = \"/run/x\"}"),
            "b.toml:3:12: progress: unknown key \"path\"; known there: \"file\"");
  EXPECT_EQ(refused("{file = 3}"), "b.toml:3:12: progress: file wants a path in quotes");
  EXPECT_EQ(refused("{file = \"x\"}"), "b.toml:3:12: progress: file \"x\": it is not an absolute path");
  EXPECT_EQ(refused("{file = \"/run/%t\"}"),
            "b.toml:3:12: progress: file \"/run/%t\": \"%t\" is no specifier; there are %n, %p, %i and %%");
}

TEST(Parse, EverySettingIsRead) {
  const auto parsed = parse(R"(
mode = "enforce"
[sampling]
interval = "500ms"
history = 120
[log]
level = "debug"
retention = "2d"
[safety]
foreign_writer = "alarm"
min_change = 0.05
be_quota_rise = 1
repin_cooldown = 30
[interference]
weighting = "request"
search = "optimal"
budget = "5ms"
min_gain = 0.1
max_moves = 3
max_runq_latency = "5ms"
best_effort_priority = "weight"
isolation = "shared"
shared_domain = "socket"
window_step = 4
allow_cross_socket = true
reserved_cpus = "0-1,8"
reserved = "shared"
interrupts = "move"
be_min_cpus = 2
be_avoid_siblings = true
default_model = {b0 = 0.5, k1 = 0.4, k2 = 0}
)",
                            "b.toml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->mode, Mode::enforce);
  EXPECT_DOUBLE_EQ(parsed->tick_s, 0.5);
  EXPECT_EQ(parsed->history, 120);
  EXPECT_EQ(parsed->log_level, "debug");
  EXPECT_DOUBLE_EQ(parsed->log_retention_s, 172800);
  EXPECT_EQ(parsed->foreign_writer, ForeignWriter::alarm);
  EXPECT_DOUBLE_EQ(parsed->policies.safety.min_change, 0.05);
  EXPECT_DOUBLE_EQ(parsed->policies.safety.be_quota_rise, 1);
  EXPECT_DOUBLE_EQ(parsed->policies.safety.repin_cooldown_s, 30);
  const auto& interference = parsed->policies.interference;
  EXPECT_EQ(interference.weighting, policies::Weighting::request);
  EXPECT_EQ(interference.search, policies::Search::optimal);
  EXPECT_DOUBLE_EQ(interference.budget_s, 0.005);
  EXPECT_DOUBLE_EQ(interference.min_gain, 0.1);
  EXPECT_EQ(interference.max_moves, 3);
  EXPECT_DOUBLE_EQ(interference.max_runq_latency_s, 0.005);
  EXPECT_EQ(interference.best_effort_priority, policies::BestEffortPriority::weight);
  EXPECT_EQ(interference.isolation, model::Isolation::shared);
  EXPECT_EQ(interference.shared_domain, model::DomainKind::socket);
  EXPECT_EQ(interference.window_step, 4);
  EXPECT_TRUE(interference.allow_cross_socket);
  EXPECT_EQ(interference.reserved_cpus, (model::CpuSet{0, 1, 8}));
  EXPECT_EQ(interference.reserved, policies::Reserved::shared);
  EXPECT_EQ(interference.interrupts, policies::InterruptPlaces::move);
  EXPECT_EQ(interference.be_min_cpus, 2);
  EXPECT_TRUE(interference.be_avoid_siblings);
  EXPECT_EQ(interference.default_model, (model::InterferenceModel{.b0 = 0.5, .k1 = 0.4, .k2 = 0}));
}

TEST(Parse, APartOfTheDefaultModelKeepsTheRest) {
  const auto parsed = parse("[interference]\ndefault_model = {k1 = 0.7}\n", "b.toml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->policies.interference.default_model,
            (model::InterferenceModel{.b0 = 0, .k1 = 0.7, .k2 = 0.1}));
}

TEST(Parse, WorkloadRulesKeepOrderOriginAndWhatIsUnset) {
  const auto parsed = parse(R"([[workload]]
match = "system.slice/web@*.service"
class = "latency-sensitive"
service = "web"
vcpus = 4
isolation = "cores"
memory = "2G"
priority = 100
evictable = false
force = true
deadline = "10min"

[[workload]]
match = "machine.slice/**"
class = "best-effort"
memory = 4096
)",
                            "b.toml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  ASSERT_EQ(parsed->rules.size(), 2U);
  const auto& web = parsed->rules[0];
  EXPECT_EQ(web.match, "system.slice/web@*.service");
  EXPECT_EQ(web.origin, "b.toml:1");
  EXPECT_EQ(web.workload_class, model::WorkloadClass::latency_sensitive);
  EXPECT_EQ(web.service, "web");
  EXPECT_EQ(web.vcpus, 4);
  EXPECT_EQ(web.isolation, model::Isolation::cores);
  EXPECT_EQ(web.memory_bytes, 2ULL << 30U);
  EXPECT_EQ(web.priority, 100);
  EXPECT_EQ(web.evictable, false);
  EXPECT_EQ(web.force, true);
  EXPECT_EQ(web.deadline_s, 600);
  const auto& batch = parsed->rules[1];
  EXPECT_EQ(batch.origin, "b.toml:13");
  EXPECT_EQ(batch.memory_bytes, 4096U);
  EXPECT_FALSE(batch.service || batch.vcpus || batch.priority || batch.evictable || batch.deadline_s);
}

TEST(Parse, SettingsOfBorrowingDoNothingAndAreWarnedOf) {
  constexpr const char* kText =
      "interference.borrow = true\ninterference.borrow_step = \"x\"\n[[workload]]\nmatch = \"a\"\nborrow = "
      "false\n";
  constexpr const char* kWhy =
      "does nothing any more, as best-effort work has idle priority (interference.best_effort_priority); the "
      "next release refuses it";
  const auto parsed = parse(kText, "b.toml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  std::vector<std::string> expected;
  for (const char* name :
       {"b.toml:1:14: interference.borrow ", "b.toml:2:14: interference.borrow_step ", "b.toml:5:1: borrow "})
    expected.push_back(std::string(name) + kWhy);
  EXPECT_EQ(parsed->warnings, expected);
  Settings settings;
  ASSERT_TRUE(override_setting(settings, "interference.borrow=true"));
  EXPECT_EQ(settings.warnings, std::vector<std::string>{std::string("interference.borrow ") + kWhy});
}

TEST(Parse, HalfWrittenDocumentsAreRefusedWithTheirPosition) {
  for (const char* text :
       {"mode = ", "mode = \"enf", "[interference", "[[workload]", "mode \"observe\"", "= 1",
        "[interference]\nwindow_step = 2\nwindow_st", "a = [1, 2", "a = {b = 1", "\"\"\"", "mode = 'a\n"}) {
    EXPECT_EQ(error_of(text).rfind("b.toml:", 0), 0U) << text << " gave " << error_of(text);
  }
  EXPECT_EQ(error_of("mode = \"observe\"\n[sampling\n").rfind("b.toml:2:", 0), 0U);
  EXPECT_NE(error_of("mode = enforce\n").find("text is written in quotes"), std::string::npos);
}

TEST(Parse, WrongTypesSayWhatIsWanted) {
  expect_refused({
      {"mode = 1", "b.toml:1:8: mode wants one of observe, enforce, got 1"},
      {"mode = {}", "b.toml:1:8: mode wants one of observe, enforce, got a table"},
      {"[sampling]\ninterval = true",
       "b.toml:2:12: sampling.interval wants a duration, such as 10 (seconds) or \"500ms\", from 100ms to "
       "1h, got true"},
      {"[sampling]\nhistory = 60.0", "b.toml:2:11: sampling.history wants an integer from 4 to 3600, got 60"},
      {"[safety]\nmin_change = \"1%\"",
       "b.toml:2:14: safety.min_change wants a number from 0 to 1, got \"1%\""},
      {"[interference]\nallow_cross_socket = 1",
       "b.toml:2:22: interference.allow_cross_socket wants true or false, got 1"},
      {"[interference]\nbe_min_cpus = [1]",
       "b.toml:2:15: interference.be_min_cpus wants an integer from 1 to 8192, got an array"},
      {"[interference]\nwindow_step = 1979-05-27",
       "b.toml:2:15: interference.window_step wants an integer from 1 to 8192, got a date or time"},
      {"interference = 3", "b.toml:1:16: interference is a table, written [interference] once; got 3"},
      {"[[sampling]]", "b.toml:1:1: sampling is a table, written [sampling] once; got an array of tables"},
      {"[interference]\ndefault_model = 0.3",
       "b.toml:2:17: interference.default_model is a table, written [interference.default_model] once; got "
       "0.3"},
      {"[workload]\nmatch = \"a\"",
       "b.toml:1:1: workload is written [[workload]], once per rule; got a table"},
      {"workload = [1]", "b.toml:1:13: workload wants tables, written [[workload]], got 1"},
  });
}

TEST(Parse, ACpulistInNumbersIsToldToBeQuoted) {
  expect_refused({
      {"[interference]\nreserved_cpus = 0",
       "b.toml:2:17: interference.reserved_cpus wants a cpulist in quotes, such as \"0-3,8\", got 0"},
  });
  EXPECT_EQ(
      error_of("[interference]\nreserved_cpus = \"3-1\"").rfind("b.toml:2:17: interference.reserved_cpus", 0),
      0U);
  EXPECT_NE(error_of("[interference]\nreserved_cpus = \"99999\""), "");
}

TEST(Parse, ValuesOutOfRangeAreRefused) {
  for (const char* text : {"[sampling]\ninterval = 0",
                           "[sampling]\ninterval = -1",
                           "[sampling]\ninterval = \"2h\"",
                           "[sampling]\ninterval = nan",
                           "[sampling]\ninterval = inf",
                           "[sampling]\nhistory = 3",
                           "[sampling]\nhistory = 9223372036854775807",
                           "[safety]\nmin_change = nan",
                           "[safety]\nmin_change = -nan",
                           "[safety]\nmin_change = -0.001",
                           "[safety]\nmin_change = 1.001",
                           "[safety]\nmin_change = inf",
                           "[safety]\nbe_quota_rise = 0",
                           "[interference]\nwindow_step = 0",
                           "[interference]\nwindow_step = -2",
                           "[interference]\nbe_min_cpus = 0",
                           "[interference]\ndefault_model.k1 = -0.1",
                           "[interference]\ndefault_model.k2 = nan",
                           "[interference]\nwindow_step = 99999999999999999999999",
                           "[[workload]]\nmatch = \"a\"\nvcpus = 0",
                           "[[workload]]\nmatch = \"a\"\nvcpus = 8193",
                           "[[workload]]\nmatch = \"a\"\nmemory = -1",
                           "[[workload]]\nmatch = \"a\"\nmemory = \"2 apples\"",
                           "[[workload]]\nmatch = \"a\"\nmemory = 1.5",
                           "[[workload]]\nmatch = \"a\"\nmemory = \"9P\"",
                           "[[workload]]\nmatch = \"a\"\npriority = 1e9",
                           "[[workload]]\nmatch = \"a\"\ndeadline = 0",
                           "[[workload]]\nmatch = \"a\"\ndeadline = nan",
                           "[[workload]]\nmatch = \"a\"\nservice = \"\"",
                           "[[workload]]\nmatch = \"a\"\nservice = \"a\\nb\""}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Parse, UnknownKeysAreNamedAtEachLevelWithASuggestion) {
  expect_refused({
      {"mod = \"observe\"", "b.toml:1:1: unknown key \"mod\" at the top level; did you mean \"mode\"?"},
      {"[interfrence]",
       "b.toml:1:2: unknown key \"interfrence\" at the top level; did you mean \"interference\"?"},
      {"\n[interference]\n  windowstep = 2",
       "b.toml:3:3: unknown key \"windowstep\" in [interference]; did you mean \"window_step\"?"},
      {"[interference]\ndefault_model = {k3 = 1}",
       "b.toml:2:18: unknown key \"k3\" in [interference.default_model]; did you mean \"k1\"?"},
      {"[sampling]\nmatch = 1",
       "b.toml:2:1: unknown key \"match\" in [sampling]; known there: interval, history, pressure_threshold, "
       "ebpf, max_cpu, blame, blame_linger"},
      {"interval = 1", "b.toml:1:1: unknown key \"interval\" at the top level; it belongs in [sampling]"},
      {"[[workload]]\nmatch = \"a\"\nmode = \"enforce\"",
       "b.toml:3:1: unknown key \"mode\" in [[workload]]; it belongs at the top level, before the first "
       "[table]"},
      {"[sampling]\nmode = \"enforce\"",
       "b.toml:2:1: unknown key \"mode\" in [sampling]; it belongs at the top level, before the first "
       "[table]"},
      {"[workloads]", "b.toml:1:2: unknown key \"workloads\" at the top level; did you mean \"workload\"?"},
      {"[[workload]]\nmatch = \"a\"\nvcpu = 2",
       "b.toml:3:1: unknown key \"vcpu\" in [[workload]]; did you mean \"vcpus\"?"},
      {"[[workload]]\nmatch = \"a\"\ncolour = 2",
       "b.toml:3:1: unknown key \"colour\" in [[workload]]; known there: match, class, service, vcpus, "
       "isolation, memory, "
       "priority, evictable, force, deadline, progress"},
  });
}

TEST(Parse, UnknownChoicesListTheAllowedOnes) {
  expect_refused({
      {"mode = \"enforced\"",
       "b.toml:1:8: mode wants one of observe, enforce, got \"enforced\"; did you mean \"enforce\"?"},
      {"[interference]\nsearch = \"exact\"",
       "b.toml:2:10: interference.search wants one of window, optimal, got \"exact\""},
      {"[[workload]]\nmatch = \"a\"\nclass = \"latency_sensitive\"",
       "b.toml:3:9: class wants one of latency-sensitive, best-effort, ignored, got \"latency_sensitive\"; "
       "did you "
       "mean "
       "\"latency-sensitive\"?"},
  });
}

TEST(Parse, DuplicateKeysAndTablesAreRefused) {
  EXPECT_EQ(error_of("mode = \"observe\"\nmode = \"enforce\"\n").rfind("b.toml:2:", 0), 0U);
  EXPECT_EQ(error_of("[sampling]\n[sampling]\n").rfind("b.toml:2:", 0), 0U);
  EXPECT_NE(error_of("[[workload]]\nmatch='a'\nmatch='b'\n"), "");
}

TEST(Parse, ARuleWithoutAUsableMatchIsRefused) {
  expect_refused({
      {"mode = \"observe\"\n[[workload]]\nvcpus = 2",
       "b.toml:2:1: [[workload]] without match: say which cgroups it is about"},
  });
  for (const char* match : {"", "/system.slice/web.service", "../x", "a/../b", "a/[b", "a//b", "a/"}) {
    const auto error = error_of("[[workload]]\nmatch = '" + std::string(match) + "'\n");
    EXPECT_EQ(error.rfind("b.toml:2:9: match: glob ", 0), 0U) << error;
  }
  EXPECT_NE(error_of("[[workload]]\nmatch = 7\n"), "");
}

TEST(Parse, TheFirstOfSeveralErrorsIsToldAndTheRestCounted) {
  expect_refused({
      {"[sampling]\nhistory = 0\n[interference]\nwindow_step = 0\nbe_min_cpus = 0\n",
       "b.toml:2:11: sampling.history wants an integer from 4 to 3600, got 0 (and 2 more)"},
  });
}

TEST(Parse, InvalidUtf8AndControlCharactersAreRefused) {
  for (const std::string_view text :
       {std::string_view("mode = \"\xff\xfe\"\n"), std::string_view("\xc3\x28 = 1\n"),
        std::string_view("a = \"\0\"\n", 8), std::string_view("\0\0\0\0", 4),
        std::string_view("mode = \"a\x01\"\n"), std::string_view("\x7f\x45LF\x02\x01")}) {
    EXPECT_EQ(error_of(text).rfind("b.toml:1:", 0), 0U) << error_of(text);
  }
}

TEST(Parse, DeepNestingIsRefusedNotRecursedInto) {
  EXPECT_NE(error_of("a = " + std::string(100000, '[')), "");
  EXPECT_NE(error_of("a = " + std::string(100000, '{')), "");
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  EXPECT_EQ(error_of(dotted + " = 1").rfind("b.toml:1:1: more than 64 dots", 0), 0U);
  EXPECT_NE(error_of("[" + dotted + "]"), "");
  // The deepest tables that both limits let through.
  std::string row;
  for (int i = 0; i < 64; ++i) row += "a.";
  std::string arrays;
  for (int i = 0; i < 120; ++i) arrays += row + "a = [ {\n";
  EXPECT_NE(error_of(arrays), "");
}

TEST(Parse, LongWordsAreCutInMessages) {
  EXPECT_LT(error_of("[[workload]]\nmatch = \"[" + std::string(100000, 'v') + "\"").size(), 600U);
  EXPECT_LT(error_of(std::string(100000, 'k') + " = 1").size(), 300U);
  EXPECT_LT(error_of("mode = \"" + std::string(100000, 'v') + "\"").size(), 300U);
}

RC_GTEST_PROP(Parse, NoTextCrashesOrGivesMoreThanOneLine, (const std::string& noise)) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "mode", " = ", "\"observe\"", "\n", "[", "]", "[[workload]]", "interference", ".", "{", "}", ",", "'",
      "1e9", "-nan", "match", "\"\"\"", "\\", noise));
  std::string text;
  for (const auto& piece : pieces) text += piece;
  const auto parsed = parse(text, "t");
  if (!parsed) RC_ASSERT(parsed.error().message().find('\n') == std::string::npos);
}

}  // namespace
}  // namespace berth::config
