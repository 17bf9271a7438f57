// SPDX-License-Identifier: Apache-2.0
// Groups that come and go, counters, and what the programs need, on this machine's own kernel.
#include "ebpf/load.h"
#include "os/file_descriptor.h"
#include "refused.skel.h"
#include "tests/host/ebpf_fixture.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace berth::ebpf::test {
namespace {

// Leaves the CPU at least once. A timer that fires before the task sleeps leaves it running: no switch.
void switch_out() {
  const auto switches = [] {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw;
  };
  const long before = switches();
  while (switches() == before) usleep(1);
}

TEST_F(EbpfHost, AParentsSubtreeHoldsItsChildren) {
  start(options());
  if (!collector) return;
  tree->make("p/a");
  tree->make("p/b");
  std::vector<Process> processes;
  for (const char* name : {"p/a", "p/b"}) {
    processes.emplace_back([] {});
    processes.back().move_to(tree->path(name));
  }
  for (const char* name : {"p/a", "p/b"})
    ASSERT_TRUE(berth::test::eventually([&] { return usage_ns(tree->path(name)) > 50'000'000; })) << name;
  ASSERT_TRUE(collector->read());
  const CgroupReading* parent = collector->find(inode(tree->path("p")));
  const CgroupReading* a = collector->find(inode(tree->path("p/a")));
  const CgroupReading* b = collector->find(inode(tree->path("p/b")));
  ASSERT_TRUE(parent && a && b);
  EXPECT_EQ(a->parent, parent->id);
  EXPECT_GT(a->subtree.run_ns, 10'000'000U);
  EXPECT_EQ(parent->subtree.run_ns, a->subtree.run_ns + b->subtree.run_ns);
}

TEST_F(EbpfHost, CgroupsThatComeAndGoAreToldInOrder) {
  start(options());
  if (!collector) return;
  ASSERT_GE(collector->events_fd(), 0) << "the program of events was refused";
  collector->take_events();
  tree->make("new");
  const std::uint64_t id = inode(tree->path("new"));
  tree->remove("new");
  std::vector<CgroupEvent> ours;
  ASSERT_TRUE(berth::test::eventually([&] {
    pollfd waiting{collector->events_fd(), POLLIN, 0};
    if (poll(&waiting, 1, 1000) != 1) return false;
    for (const CgroupEvent& event : collector->take_events().events) {
      if (event.id == id) ours.push_back(event);
    }
    return ours.size() >= 2;
  }));
  ASSERT_EQ(ours.size(), 2U);
  EXPECT_TRUE(ours[0].created);
  EXPECT_EQ(ours[0].path, tree->id("new"));
  EXPECT_EQ(ours[0].parent, inode(tree->base()));
  EXPECT_FALSE(ours[1].created);
}

// Software events in the slots of the hardware ones: the same path, on machines without a PMU.
TEST_F(EbpfHost, WhatTheCgroupsAreCreditedIsWhatTheProcessorsCounted) {
  start(with_software_events());
  if (!collector) return;
  const auto counters = std::find_if(collector->ways().begin(), collector->ways().end(),
                                     [](const FigureWay& way) { return way.figure == "hardware-counters"; });
  ASSERT_TRUE(counters->available) << counters->detail;
  tree->make("a");
  tree->make("b");
  std::vector<Process> processes;
  for (const char* name : {"a", "b", "a"}) {
    processes.emplace_back([] {
      spin(200'000);
      usleep(100);
    });
    processes.back().move_to(tree->path(name));
  }
  // No processor is idle, whose time would only be credited once it ends.
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    processes.emplace_back([] {});
    pin(processes.back().pid(), cpu);
  }
  // The processors' own, by a second set of events.
  const auto open_on_all = [cpus](std::uint64_t config) {
    std::vector<os::FileDescriptor> opened;
    for (int cpu = 0; cpu < cpus; ++cpu) {
      perf_event_attr attributes{};
      attributes.size = sizeof(attributes);
      attributes.type = PERF_TYPE_SOFTWARE;
      attributes.config = config;
      opened.emplace_back(static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, 0)));
      if (!opened.back()) throw std::runtime_error("perf_event_open");
    }
    return opened;
  };
  const std::vector<os::FileDescriptor> clocks = open_on_all(PERF_COUNT_SW_CPU_CLOCK);
  const std::vector<os::FileDescriptor> switches = open_on_all(PERF_COUNT_SW_CONTEXT_SWITCHES);
  const auto counted = [](const std::vector<os::FileDescriptor>& events) {
    std::uint64_t sum = 0;
    for (const os::FileDescriptor& fd : events) {
      std::uint64_t one = 0;
      if (read(fd.get(), &one, sizeof(one)) == sizeof(one)) sum += one;
    }
    return static_cast<double>(sum);
  };
  // A reading takes its time: what the processors count is asked before and after each.
  struct Moment {
    double clock_before, switches_before, clock_after, switches_after;
    CgroupReading root;
  };
  const auto moment = [&, root = inode(tree->hierarchy().root)] {
    Moment now{};
    now.clock_before = counted(clocks);
    now.switches_before = counted(switches);
    now.root = reading(root);
    now.clock_after = counted(clocks);
    now.switches_after = counted(switches);
    return now;
  };
  const Moment first = moment();
  const double begin = now_s();
  const double enough = first.switches_after + 500;
  ASSERT_TRUE(berth::test::eventually([&] { return now_s() > begin + 2 && counted(switches) > enough; }));
  const Moment last = moment();
  const auto& before = first.root.subtree.hardware;
  const auto& after = last.root.subtree.hardware;
  ASSERT_TRUE(after && before);
  const double clock = after->instructions - before->instructions;
  EXPECT_GE(clock, 0.995 * (last.clock_before - first.clock_after));
  EXPECT_LE(clock, 1.005 * (last.clock_after - first.clock_before));
  const double switched = after->cycles - before->cycles;
  EXPECT_GT(switched, 100);
  EXPECT_GE(switched, 0.995 * (last.switches_before - first.switches_after) - 2 * cpus);
  EXPECT_LE(switched, 1.005 * (last.switches_after - first.switches_before) + 2 * cpus);
  std::printf("cpu-clock %.0f of %.0f to %.0f, switches %.0f of %.0f to %.0f\n", clock,
              last.clock_before - first.clock_after, last.clock_after - first.clock_before, switched,
              last.switches_before - first.switches_after, last.switches_after - first.switches_before);
  const CgroupReading* a = collector->find(inode(tree->path("a")));
  const CgroupReading* b = collector->find(inode(tree->path("b")));
  // cpu-clock of a group of ordinary processes is the CPU time they used, with interrupts and what a
  // hypervisor stole, which a busy machine may have much of. It is credited when the group gives up a
  // processor, run time at every switch: a time slice or two on each may be missing.
  ASSERT_TRUE(a->subtree.hardware && b->subtree.hardware);
  EXPECT_GE(a->subtree.hardware->instructions, 0.9 * static_cast<double>(a->subtree.run_ns));
  EXPECT_LE(a->subtree.hardware->instructions, 1.5 * static_cast<double>(a->subtree.run_ns));
}

TEST_F(EbpfHost, CountersGoOnAfterProcessorsCameOrWent) {
  start(with_software_events());
  if (!collector) return;
  tree->make("a");
  const double begin = now_s();
  Process busy([] {
    spin(200'000);
    usleep(100);
  });
  busy.move_to(tree->path("a"));
  const auto id = inode(tree->path("a"));
  // Clock ticks, in ns, that the group is credited until it has got some.
  const auto credited = [&] {
    const auto before = reading(id).subtree.hardware;
    auto after = before;
    EXPECT_TRUE(berth::test::eventually([&] {
      after = reading(id).subtree.hardware;
      return after && after != before;
    }));
    return after ? after->instructions - (before ? before->instructions : 0) : 0.0;
  };
  EXPECT_GT(credited(), 0);
  for (int change = 0; change < 3; ++change) {
    const auto done = collector->follow_cpus();
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_GT(credited(), 0);
  }
  // A counter that begins anew must not look like one that wrapped, which would add centuries. A second
  // is allowed for what the processors did before: cpu-clock is credited whole at the next switch.
  EXPECT_LE(reading(id).subtree.hardware->instructions, (now_s() - begin + 1) * 1.5e9);
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

long resident_kib() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

TEST_F(EbpfHost, TenThousandCgroupsComeAndGoUnderLoadAndLeaveNothing) {
  Options with = options();
  with.cgroups = 1;  // the least table, so that rows must be given back
  start(with);
  if (!collector) return;
  tree->make("churn");
  const std::filesystem::path base = tree->path("churn");
  const std::uint64_t parent = inode(base);
  std::vector<Process> load;
  for (int i = 0; i < 2; ++i) load.emplace_back([] { usleep(50); });
  ASSERT_TRUE(collector->read());
  rusage children_before{};
  std::size_t files = 0;
  std::size_t groups = 0;
  long memory = 0;
  std::vector<std::uint64_t> ids;
  std::size_t successors_wronged = 0;
  std::uint64_t credited_alive = 0;
  constexpr int kRounds = 200;
  constexpr int kEach = 50;
  ids.reserve(std::size_t{kRounds * kEach});
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kEach; ++i) mkdir((base / ("g" + std::to_string(i))).c_str(), 0755);
    // Each group has had a process of its own that ended in it.
    const pid_t visitor = fork();
    if (visitor == 0) {
      for (int i = 0; i < kEach; ++i) {
        std::ofstream(base / ("g" + std::to_string(i)) / "cgroup.procs") << 0;
        spin(20'000);
        sched_yield();
      }
      _exit(0);
    }
    waitpid(visitor, nullptr, 0);
    for (int i = 0; i < kEach; ++i) {
      const auto path = base / ("g" + std::to_string(i));
      ids.push_back(inode(path));
      while (rmdir(path.c_str()) != 0 && errno == EBUSY) usleep(1000);
    }
    // Successors of the same names; nothing ever ran there.
    for (int i = 0; i < 3; ++i) mkdir((base / ("g" + std::to_string(i))).c_str(), 0755);
    ASSERT_TRUE(collector->read());
    for (int i = 0; i < 3; ++i) {
      const auto path = base / ("g" + std::to_string(i));
      const CgroupReading* successor = collector->find(inode(path));
      ASSERT_NE(successor, nullptr);
      if (successor->subtree.run_ns != 0 || successor->subtree.dispatches != 0) ++successors_wronged;
      rmdir(path.c_str());
    }
    collector->take_events();
    if (round == 20) {
      files = open_files();
      groups = collector->size();
      memory = resident_kib();
      getrusage(RUSAGE_CHILDREN, &children_before);
      credited_alive = collector->find(parent)->subtree.run_ns;
    }
  }
  rusage children_after{};
  getrusage(RUSAGE_CHILDREN, &children_after);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(collector->read());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "an id was given out twice";
  EXPECT_EQ(ids.size(), std::size_t{kRounds * kEach});
  EXPECT_EQ(successors_wronged, 0U);
  EXPECT_EQ(open_files(), files);
  EXPECT_LT(resident_kib(), memory + 1024);
  EXPECT_LT(collector->size(), groups + 2 * kEach) << "of thousands that are gone";
  const auto time_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  const double used = time_of(children_after.ru_utime) - time_of(children_before.ru_utime) +
                      time_of(children_after.ru_stime) - time_of(children_before.ru_stime);
  const auto credited = static_cast<double>(collector->find(parent)->subtree.run_ns - credited_alive);
  // A visitor's first and last moments are elsewhere.
  EXPECT_LT(credited, 1.01 * used);
  EXPECT_GT(credited, 0.5 * used);
}

TEST_F(EbpfHost, TablesGrowWhenTheyAreTooSmall) {
  Options with = options();
  with.cgroups = 1;
  start(with);
  if (!collector) return;
  constexpr int kGroups = 3000;
  for (int i = 0; i < kGroups; ++i) tree->make("g" + std::to_string(i));
  const auto visit_all = [&] {
    const pid_t visitor = fork();
    if (visitor == 0) {
      for (int i = 0; i < kGroups; ++i) {
        std::ofstream(tree->path("g" + std::to_string(i)) / "cgroup.procs") << 0;
        switch_out();
      }
      _exit(0);
    }
    waitpid(visitor, nullptr, 0);
  };
  const auto credited = [&] {
    int count = 0;
    for (int i = 0; i < kGroups; ++i) {
      const CgroupReading* found = collector->find(inode(tree->path("g" + std::to_string(i))));
      if (found && found->subtree.dispatches > 0) ++count;
    }
    return count;
  };
  int last = 0;
  for (int tries = 0; tries < 6 && last < kGroups; ++tries) {
    visit_all();
    const auto done = collector->read();
    ASSERT_TRUE(done || done.error().kind() == model::ErrorKind::transient) << done.error().message();
    last = credited();
    EXPECT_TRUE(last == kGroups || !done) << last;
  }
  EXPECT_EQ(last, kGroups);
}

TEST_F(EbpfHost, GroupsThatAreKeptTogetherFillNoTable) {
  Options with = options();
  with.cgroups = 1;
  with.most_rows = 1024;
  start(with);
  if (!collector) return;
  tree->make("other");
  constexpr int kGroups = 3000;
  for (int i = 0; i < kGroups; ++i) tree->make("user/app/g" + std::to_string(i));
  const std::uint64_t user = inode(tree->path("user"));
  collector->keep_together({user});
  const pid_t visitor = fork();
  if (visitor == 0) {
    for (int i = 0; i < kGroups; ++i) {
      std::ofstream(tree->path("user/app/g" + std::to_string(i)) / "cgroup.procs") << 0;
      switch_out();
    }
    std::ofstream(tree->path("other") / "cgroup.procs") << 0;
    switch_out();
    _exit(0);
  }
  waitpid(visitor, nullptr, 0);
  const auto done = collector->read();
  ASSERT_TRUE(done) << done.error().message();
  ASSERT_NE(collector->find(user), nullptr);
  EXPECT_GE(collector->find(user)->subtree.dispatches, static_cast<std::uint64_t>(kGroups));
  ASSERT_NE(collector->find(inode(tree->path("other"))), nullptr);
  EXPECT_GT(collector->find(inode(tree->path("other")))->subtree.dispatches, 0U);
  EXPECT_EQ(collector->find(inode(tree->path("user/app/g7"))), nullptr) << "not known, and not idle";
}

TEST_F(EbpfHost, CountingThatFailedBeginsAgain) {
  Options with = options();
  with.cgroups = 1;
  with.most_rows = 1024;
  start(with);
  if (!collector) return;
  constexpr int kGroups = 3000;
  for (int i = 0; i < kGroups; ++i) tree->make("g" + std::to_string(i));
  const pid_t visitor = fork();
  if (visitor == 0) {
    pin(0, 0);
    for (int i = 0; i < kGroups; ++i) {
      std::ofstream(tree->path("g" + std::to_string(i)) / "cgroup.procs") << 0;
      switch_out();
    }
    _exit(0);
  }
  waitpid(visitor, nullptr, 0);
  ASSERT_FALSE(collector->read());
  collector->rest();
  EXPECT_FALSE(collector->read()) << "it does not count";
  const auto begun = collector->begin_again();
  ASSERT_TRUE(begun) << begun.error().message();
  tree->make("after");
  Process spinner([] {});
  spinner.move_to(tree->path("after"));
  ASSERT_TRUE(berth::test::eventually([&] { return usage_ns(tree->path("after")) > 50'000'000; }));
  EXPECT_GT(reading(inode(tree->path("after"))).subtree.run_ns, 10'000'000U);
}

TEST_F(EbpfHost, ACpuThatComesLaterGetsATable) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two CPUs";
  const std::filesystem::path sys = std::filesystem::path(logs) / "sys";
  std::filesystem::create_directories(sys / "kernel/btf");
  std::filesystem::create_directories(sys / "devices/system/cpu");
  std::ofstream(sys / "kernel/btf/vmlinux") << "";
  std::ofstream(sys / "devices/system/cpu/online") << "0\n";
  Options with = options();
  with.sys_root = sys;
  start(with);
  if (!collector) return;
  tree->make("a");
  const auto visit = [&] {
    const pid_t visitor = fork();
    if (visitor == 0) {
      pin(0, 1);
      std::ofstream(tree->path("a") / "cgroup.procs") << 0;
      for (int i = 0; i < 10; ++i) switch_out();
      _exit(0);
    }
    waitpid(visitor, nullptr, 0);
  };
  visit();
  EXPECT_FALSE(collector->read()) << "what ran there is not known";
  std::ofstream(sys / "devices/system/cpu/online") << "0-1\n";
  (void)collector->follow_cpus();
  visit();
  const auto done = collector->read();
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_GT(collector->find(inode(tree->path("a")))->subtree.dispatches, 5U);
}

TEST_F(EbpfHost, FullTablesFailTheReadingSoThatNoCgroupLooksIdle) {
  Options with = options();
  with.cgroups = 1;
  with.most_rows = 1024;
  start(with);
  if (!collector) return;
  ASSERT_TRUE(collector->read());
  constexpr int kGroups = 3000;
  for (int i = 0; i < kGroups; ++i) tree->make("g" + std::to_string(i));
  const pid_t visitor = fork();
  if (visitor == 0) {
    pin(0, 0);
    for (int i = 0; i < kGroups; ++i) {
      std::ofstream(tree->path("g" + std::to_string(i)) / "cgroup.procs") << 0;
      switch_out();
    }
    _exit(0);
  }
  waitpid(visitor, nullptr, 0);
  for (int tries = 0; tries < 2; ++tries) {
    const auto done = collector->read();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind(), model::ErrorKind::unavailable);
    EXPECT_NE(done.error().message().find("no row for some cgroups (1024 rows a CPU"), std::string::npos);
  }
}

// As an unprivileged user with nothing but these capabilities.
TEST_F(EbpfHost, TwoCapabilitiesSuffice) {
  const auto drop_to = [](std::initializer_list<int> capabilities) {
    if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return false;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    for (const int capability : capabilities) (capability < 32 ? low : high) |= 1U << (capability % 32);
    struct {
      std::uint32_t version = 0x20080522;
      int pid = 0;
    } header;
    const std::array<std::uint32_t, 6> data{low, low, 0, high, high, 0};
    return syscall(SYS_capset, &header, data.data()) == 0;
  };
  constexpr int kBpf = 39;
  constexpr int kPerfmon = 38;
  std::filesystem::permissions(logs, std::filesystem::perms::all);
  const auto in_child = [&](std::initializer_list<int> capabilities) {
    const pid_t child = fork();
    if (child == 0) {
      if (!drop_to(capabilities)) _exit(9);
      auto started = Collector::start(options());
      if (!started) {
        std::fprintf(stderr, "%s\n", started.error().message().c_str());
        _exit(started.error().kind() == model::ErrorKind::permission ? 3 : 4);
      }
      if (!(*started)->read()) _exit(5);
      for (const FigureWay& way : (*started)->ways()) {
        if (!way.available && way.figure != "hardware-counters") {
          std::fprintf(stderr, "%s: %s\n", way.figure.c_str(), way.detail.c_str());
          _exit(6);
        }
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  start(options());
  if (!collector) return;
  collector.reset();
  EXPECT_EQ(in_child({kBpf, kPerfmon}), 0);
  EXPECT_EQ(in_child({}), 3);
}

// The kernel's verifier looks at each way through a program. It refuses one with a million instructions in
// all ways together, and each costs time at the start.
TEST_F(EbpfHost, TheVerifierHasLittleToLookAt) {
  constexpr unsigned kMany = 50'000;
  start(options());
  if (!collector) return;
  std::map<std::string, unsigned> looked_at;
  for (__u32 id = 0; bpf_prog_get_next_id(id, &id) == 0;) {
    const os::FileDescriptor program(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    __u32 size = sizeof(info);
    if (program && bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0)
      looked_at[info.name] = std::max(looked_at[info.name], info.verified_insns);
  }
  for (const char* name : {"on_switch", "flush", "walk"}) {
    EXPECT_GT(looked_at[name], 0U) << name;
    EXPECT_LT(looked_at[name], kMany) << name;
  }
}

TEST_F(EbpfHost, TheVerifiersLogOfARefusedProgramIsKept) {
  const auto loaded = load<bpf_refused>("refused", logs, [](bpf_refused&) {});
  ASSERT_FALSE(loaded);
  const auto log = std::filesystem::path(logs) / "refused.log";
  EXPECT_NE(loaded.error().message().find(log.string()), std::string::npos) << loaded.error().message();
  EXPECT_NE(loaded.error().message().find("invalid mem access"), std::string::npos)
      << loaded.error().message();
  std::ifstream file(log);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(all.find("processed "), std::string::npos) << all;
}

}  // namespace
}  // namespace berth::ebpf::test
