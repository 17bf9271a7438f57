// SPDX-License-Identifier: Apache-2.0
// Measures how much the hook adds to a context switch. A hook that does nothing and the usual three hooks are
// measured with it. One byte goes to and fro between two processes on one CPU, each in a cgroup of its own;
// CPU time of both. All cases take turns, many times and each time in the other direction, so that what else
// the machine does meets them alike.
#include "cgroup/hierarchy.h"
#include "ebpf/blame.h"
#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "rivals.skel.h"
#include "tests/host/real_tree.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace berth::ebpf {
namespace {

constexpr int kRoundTrips = 10'000;

double cpu_ns(const rusage& used) {
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

void pin_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// CPU ns of a switch, with whatever is attached now.
double ping_pong(const cgroup::test::RealTree& tree) {
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) throw std::runtime_error("pipe");
  double used = 0;
  std::vector<pid_t> children;
  for (const bool first : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      pin_here();
      std::ofstream(tree.path(first ? "a" : "b") / "cgroup.procs") << 0;
      char byte = 0;
      for (int i = 0; i < kRoundTrips; ++i) {
        if (first && (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)) _exit(1);
        if (!first && (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    rusage of_child{};
    wait4(child, nullptr, 0, &of_child);
    used += cpu_ns(of_child);
  }
  for (const int fd : {there[0], there[1], back[0], back[1]}) close(fd);
  return used / (2.0 * kRoundTrips);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Loads the programs of rivals.bpf.c and attaches those named.
struct Rival {
  explicit Rival(bool nop) {
    auto loaded = load<bpf_rivals>("rivals", {}, [](bpf_rivals&) {});
    if (!loaded) throw std::runtime_error(loaded.error().message());
    programs = std::move(*loaded);
    auto& progs = programs->progs;
    const std::vector<bpf_program*> wanted =
        nop ? std::vector<bpf_program*>{progs.nothing}
            : std::vector<bpf_program*>{progs.on_wakeup, progs.on_wakeup_new, progs.on_switch};
    for (bpf_program* program : wanted) {
      links.emplace_back(bpf_program__attach(program));
      if (!links.back()) throw std::runtime_error("attaching a rival");
    }
  }
  Owned<bpf_rivals> programs;
  std::vector<Link> links;
};

std::unique_ptr<Collector> collector(const cgroup::test::RealTree& tree, bool counted) {
  Options options;
  options.cgroup_root = tree.hierarchy().root;
  // The same path as a PMU's, whose reads cost less or more than these.
  if (counted) {
    options.events = {{{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
                       {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
                       {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                       {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS}}};
  }
  auto started = Collector::start(options);
  if (!started) throw std::runtime_error(started.error().message());
  return std::move(*started);
}

// Sampling, and the hooks that divide waits: asked about neither group, or about the one of the first
// process.
struct Blaming {
  Blaming(const cgroup::test::RealTree& tree, bool asked) : sampling(collector(tree, false)) {
    auto started = Blame::start({});
    if (!started) throw std::runtime_error(started.error().message());
    blame = std::move(*started);
    struct stat about {};
    if (stat(tree.path("a").c_str(), &about) != 0) throw std::runtime_error("stat");
    // Another id than any of the two has.
    blame->ask({{asked ? about.st_ino : ~about.st_ino, 2}});
  }
  std::unique_ptr<Collector> sampling;
  std::unique_ptr<Blame> blame;
};

void run(int turns) {
  const cgroup::test::RealTree tree;
  tree.make("a");
  tree.make("b");
  const std::vector<std::pair<std::string, std::function<std::shared_ptr<void>()>>> cases{
      {"nothing attached", [] { return std::shared_ptr<void>(); }},
      {"a hook that does nothing", [] { return std::make_shared<Rival>(true); }},
      {"berth", [&] { return std::shared_ptr<void>(collector(tree, false)); }},
      {"berth, four counters", [&] { return std::shared_ptr<void>(collector(tree, true)); }},
      {"berth, blame of others", [&] { return std::make_shared<Blaming>(tree, false); }},
      {"berth, blame of one of both", [&] { return std::make_shared<Blaming>(tree, true); }},
      {"three hooks and a hash", [] { return std::make_shared<Rival>(false); }},
  };
  std::map<std::string, std::vector<double>> costs;
  std::map<std::string, std::vector<double>> added;
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t at = 0; at < cases.size(); ++at) {
      const auto& [name, attach] = cases[turn % 2 == 0 ? at : cases.size() - 1 - at];
      const auto attached = attach();
      costs[name].push_back(ping_pong(tree));
    }
    for (const auto& [name, attach] : cases) {
      added[name].push_back(costs[name].back() - costs[cases.front().first].back());
    }
  }
  std::vector<double> blame;
  std::vector<double> asked;
  for (std::size_t turn = 0; turn < costs["berth"].size(); ++turn) {
    blame.push_back(costs["berth, blame of others"][turn] - costs["berth"][turn]);
    asked.push_back(costs["berth, blame of one of both"][turn] - costs["berth"][turn]);
  }
  const double nop = median(added["a hook that does nothing"]);
  std::printf("%-28s %12s %12s %10s\n", ("median of " + std::to_string(turns)).c_str(), "ns a switch",
              "added", "of nop's");
  for (const auto& [name, attach] : cases) {
    std::printf("%-28s %12.0f %12.0f %10.2f\n", name.c_str(), median(costs[name]), median(added[name]),
                median(added[name]) / nop);
  }
  std::printf("blame adds %.0f ns to berth's, %.0f ns where one of both is asked about (medians of pairs)\n",
              median(blame), median(asked));
}

}  // namespace
}  // namespace berth::ebpf

int main(int argc, char** argv) {
  berth::ebpf::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 101);
  return 0;
}
