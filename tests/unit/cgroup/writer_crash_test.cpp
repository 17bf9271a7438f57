// SPDX-License-Identifier: Apache-2.0
// After a crash between any two of berth's steps, all its changes can be taken back.
#include "cgroup/direct_owner.h"
#include "cgroup/writer.h"
#include "child_process.h"
#include "values.h"
#include "write_fixture.h"

#include <csignal>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

std::unique_ptr<UndoJournal> open_journal(const ScratchDirectory& state) {
  auto opened = UndoJournal::open(state.path(), "boot");
  if (!opened) throw std::runtime_error(opened.error().message());
  return std::move(*opened);
}

RestoreReport restore_anew(const ControlTree& tree, const ScratchDirectory& state) {
  const auto journal = open_journal(state);
  PatientOwner direct(tree.root());
  return Writer(tree.root(), *journal, direct, nullptr).restore_all();
}

enum class Step { before_set, after_set, before_reset, after_reset };

// Dies as by kill -9 at one step of its nth call.
class DyingOwner : public PatientOwner {
 public:
  DyingOwner(const std::filesystem::path& root, Step step, int call)
      : PatientOwner(root), step_(step), left_(call) {}

  model::Result<void> set(const Target& target, const Value& value) override {
    die_at(Step::before_set);
    auto done = PatientOwner::set(target, value);
    die_at(Step::after_set);
    return done;
  }
  model::Result<Value> reset(const Target& target, const Original& original) override {
    die_at(Step::before_reset);
    auto done = PatientOwner::reset(target, original);
    die_at(Step::after_reset);
    return done;
  }

 private:
  void die_at(Step step) {
    if (step == step_ && --left_ == 0) kill(getpid(), SIGKILL);
  }
  Step step_;
  int left_;
};

class KilledAt : public testing::TestWithParam<std::pair<Step, int>> {};

TEST_P(KilledAt, TheOriginalsComeBack) {
  const auto [step, call] = GetParam();
  const ControlTree tree;
  const ScratchDirectory state;
  tree.make("a", "0-7");
  tree.make("b", "0-3", "max 100000");
  const ChildEnd end = in_child([&, step = step, call = call]() -> std::string {
    const auto journal = open_journal(state);
    DyingOwner owner(tree.root(), step, call);
    Writer writer(tree.root(), *journal, owner, nullptr);
    const FoundWorkload a = tree.found("a");
    const FoundWorkload b = tree.found("b");
    (void)writer.set(a, cpus("1"));
    (void)writer.set(a, cpus("2"));
    (void)writer.set(b, quota("50000 100000"));
    writer.restore_all();
    return "survived";
  });
  ASSERT_TRUE(end.killed()) << end.said;
  const RestoreReport report = restore_anew(tree, state);
  EXPECT_TRUE(report.left.empty()) << report.left[0].reason;
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
  EXPECT_EQ(tree.get("b", "cpu.max"), "max 100000");
  EXPECT_EQ(open_journal(state)->size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(EveryStep, KilledAt,
                         testing::Values(std::pair(Step::before_set, 1), std::pair(Step::after_set, 1),
                                         std::pair(Step::before_set, 2), std::pair(Step::after_set, 2),
                                         std::pair(Step::before_set, 3), std::pair(Step::after_set, 3),
                                         std::pair(Step::before_reset, 1), std::pair(Step::after_reset, 1),
                                         std::pair(Step::before_reset, 2), std::pair(Step::after_reset, 2)));

// Between its two writes: the kernel gives its own weight to a group that stops being idle.
TEST(KilledWithinAWrite, TheWeightComesBackThoughIdlePriorityEndedForTheLeastWeight) {
  const ControlTree tree;
  const ScratchDirectory state;
  tree.make("a");
  tree.put("a", "cpu.weight", "250");
  {
    const auto journal = open_journal(state);
    PatientOwner owner(tree.root());
    Writer writer(tree.root(), *journal, owner, nullptr);
    const FoundWorkload a = tree.found("a");
    ASSERT_TRUE(writer.set(a, priority("1")));
    ASSERT_TRUE(writer.set(a, priority("0 1")));
  }
  tree.put("a", "cpu.weight", "100");
  const RestoreReport report = restore_anew(tree, state);
  EXPECT_TRUE(report.left.empty()) << report.left[0].reason;
  EXPECT_EQ(tree.get("a", "cpu.weight"), "250");
}

// Changes a control file as cgroupfs does, whole or not at all; an ordinary file is empty between open and
// write.
class AtomicOwner : public PatientOwner {
 public:
  explicit AtomicOwner(const std::filesystem::path& root) : PatientOwner(root), root_(root) {}

  model::Result<void> set(const Target& target, const Value& value) override {
    replace(target, value);
    return {};
  }
  model::Result<Value> reset(const Target& target, const Original& original) override {
    replace(target, original.value);
    return original.value;
  }

 private:
  void replace(const Target& target, const Value& value) const {
    const std::filesystem::path file = root_ / target.cgroup->path() / control_file(attribute_of(value));
    put_file(file.string() + ".new", to_text(value) + "\n");
    std::filesystem::rename(file.string() + ".new", file);
  }
  std::filesystem::path root_;
};

// Killed by another process, at any point.
TEST(KilledAnywhere, TheOriginalsComeBack) {
  for (int round = 0; round < 20; ++round) {
    const ControlTree tree;
    const ScratchDirectory state;
    for (int i = 0; i < 8; ++i) tree.make("g" + std::to_string(i), "0-7");
    std::array<int, 2> progress{};
    ASSERT_EQ(pipe2(progress.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto journal = open_journal(state);
      AtomicOwner direct(tree.root());
      Writer writer(tree.root(), *journal, direct, nullptr);
      std::vector<FoundWorkload> groups;
      for (int i = 0; i < 8; ++i) groups.push_back(tree.found("g" + std::to_string(i)));
      for (int turn = 0;; ++turn) {
        std::vector<Request> requests;
        for (const FoundWorkload& group : groups)
          requests.push_back({&group, cpus(std::to_string(turn % 7))});
        (void)writer.set_many(requests, std::chrono::seconds(10));
        if (turn % 3 == 2) (void)writer.restore("g" + std::to_string(turn % 8), Attribute::cpus);
        (void)!write(progress[1], ".", 1);
      }
    }
    close(progress[1]);
    for (int turns = 0; turns <= round % 5; ++turns) {
      char dot = 0;
      ASSERT_EQ(read(progress[0], &dot, 1), 1);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(progress[0]);
    const RestoreReport report = restore_anew(tree, state);
    EXPECT_TRUE(report.left.empty()) << report.left[0].reason;
    for (int i = 0; i < 8; ++i) EXPECT_EQ(tree.get("g" + std::to_string(i), "cpuset.cpus"), "0-7") << round;
  }
}

// Values by which it can be seen whose they are.
std::string ours(Attribute attribute, int n) {
  switch (attribute) {
    case Attribute::cpus:
      return std::to_string(100 + n);
    case Attribute::cpu_quota:
      return std::to_string(100'000 + n) + " 100000";
    case Attribute::memory_nodes:
      return std::to_string(200 + n);
    case Attribute::cpu_idle:
      return "1";
    case Attribute::cpu_burst:
      return std::to_string(90'000 + n);
    case Attribute::memory_high:
      break;
  }
  return std::to_string((1000 + n) * 65536);
}
std::string theirs(Attribute attribute, int n) {
  switch (attribute) {
    case Attribute::cpus:
      return std::to_string(n);
    case Attribute::cpu_quota:
      return std::to_string(50'000 + n) + " 100000";
    case Attribute::memory_nodes:
      return std::to_string(n);
    case Attribute::cpu_idle:
      return "0 " + std::to_string(1 + n);  // never the kernel's own, which no other program wrote
    case Attribute::cpu_burst:
      return std::to_string(40'000 + n);
    case Attribute::memory_high:
      break;
  }
  return std::to_string((1 + n) * 65536);
}

void put_theirs(const ControlTree& tree, const std::string& path, Attribute attribute, int n) {
  const std::string text = theirs(attribute, n);
  if (attribute != Attribute::cpu_idle) {
    tree.put(path, control_file(attribute), text);
    return;
  }
  tree.put(path, "cpu.idle", "0");
  tree.put(path, "cpu.weight", text.substr(2));
}

RC_GTEST_PROP(WriterProperty, WhateverHappensNothingOfBerthsStays, ()) {
  const ControlTree tree;
  const ScratchDirectory state;
  PatientOwner direct(tree.root());
  auto journal = open_journal(state);
  std::map<std::pair<std::string, Attribute>, std::string> last_foreign;
  int made = 0;
  const auto make = [&](const std::string& path) {
    ++made;
    tree.make(path, theirs(Attribute::cpus, made % 90), theirs(Attribute::cpu_quota, made % 90),
              theirs(Attribute::memory_high, made % 90));
    put_theirs(tree, path, Attribute::cpu_idle, made % 90);
    for (const Attribute attribute : kAttributes) last_foreign.erase({path, attribute});
  };
  const std::vector<std::string> paths{"a", "b", "c/d"};
  for (const std::string& path : paths) make(path);

  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const std::string path = *rc::gen::elementOf(paths);
    const Attribute attribute = *rc::gen::elementOf(std::vector(kAttributes.begin(), kAttributes.end()));
    const int n = *rc::gen::inRange(0, 90);
    Writer writer(tree.root(), *journal, direct, nullptr);
    const bool there = std::filesystem::exists(tree.root() / path);
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
      case 1:
      case 2:
        if (there) {
          RC_ASSERT(writer.set(tree.found(path), value(attribute, ours(attribute, n))).has_value());
          last_foreign.erase({path, attribute});
        }
        break;
      case 3:
        if (there) {
          put_theirs(tree, path, attribute, n);
          last_foreign[{path, attribute}] = theirs(attribute, n);
        }
        break;
      case 4:
        tree.remove(path);
        if (*rc::gen::arbitrary<bool>()) {
          for (const Attribute gone : kAttributes) (void)writer.restore(path, gone);
        }
        break;
      case 5:
        if (!there) make(path);
        break;
      case 6:
        (void)writer.restore(path, attribute);
        break;
      default:  // killed between two operations
        journal.reset();
        journal = open_journal(state);
        break;
    }
  }
  journal.reset();
  restore_anew(tree, state);
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(tree.root() / path)) continue;
    for (const Attribute attribute : kAttributes) {
      const std::string now = text(read_value(*tree.found(path).cgroup, attribute));
      for (int n = 0; n < 90; ++n) RC_ASSERT(now != ours(attribute, n));
      if (const auto foreign = last_foreign.find({path, attribute}); foreign != last_foreign.end()) {
        RC_ASSERT(now == foreign->second);
      }
    }
  }
  RC_ASSERT(open_journal(state)->size() == 0U);
}

}  // namespace
}  // namespace berth::cgroup
