// SPDX-License-Identifier: Apache-2.0
// Measures how much the hook adds to a context switch. A hook that does nothing and the usual three hooks are
// measured with it. One byte goes to and fro between two processes on one CPU, each in a cgroup of its own,
// which nothing preempts meanwhile; CPU time of both. All cases take turns, many times and each time in the
// other direction, so that what else the machine does meets them alike. Of each turn the best of some short
// runs counts, and of all turns the medians of the differences to the same turn's other case.
#include "cgroup/hierarchy.h"
#include "ebpf/blame.h"
#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "rivals.skel.h"
#include "tests/host/real_tree.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::ebpf {
namespace {

constexpr const char* kBerth = "berth";
constexpr int kRoundTrips = 2'000;
constexpr int kRuns = 6;  // in a turn

void pin_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

double cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
}

// Two processes with a byte between them.
class PingPong {
 public:
  explicit PingPong(const cgroup::test::RealTree& tree) {
    make(there_);
    make(back_);
    for (const bool first : {true, false}) {
      Player& player = players_.at(first ? 0 : 1);
      make(player.begin);
      make(player.end);
      player.pid = fork();
      if (player.pid == 0) play(tree.path(first ? "a" : "b"), first, player);
      close(std::exchange(player.begin[0], -1));
      close(std::exchange(player.end[1], -1));
    }
  }
  ~PingPong() {
    for (const Player& player : players_) {
      kill(player.pid, SIGKILL);
      waitpid(player.pid, nullptr, 0);
    }
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  // CPU ns of a switch, with whatever is attached now.
  double measure() {
    double best = 1e18;
    for (int run = 0; run < kRuns; ++run) {
      const char byte = 0;
      double used = 0;
      for (const std::size_t at : {1U, 0U}) {
        if (write(players_.at(at).begin[1], &byte, 1) != 1) throw std::runtime_error("write");
      }
      for (const Player& player : players_) {
        double of_one = 0;
        if (read(player.end[0], &of_one, sizeof(of_one)) != sizeof(of_one)) throw std::runtime_error("read");
        used += of_one;
      }
      best = std::min(best, used / (2.0 * kRoundTrips));
    }
    return best;
  }

 private:
  struct Player {
    pid_t pid = 0;
    int begin[2]{};
    int end[2]{};
  };
  static void make(int (&ends)[2]) {
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
  }
  [[noreturn]] void play(const std::filesystem::path& group, bool first, const Player& player) {
    pin_here();
    std::ofstream(group / "cgroup.procs") << 0;
    const sched_param before_all_else{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &before_all_else);
    char byte = 0;
    while (read(player.begin[0], &byte, 1) == 1) {
      const double before = cpu_ns();
      for (int i = 0; i < kRoundTrips; ++i) {
        if (first && (write(there_[1], &byte, 1) != 1 || read(back_[0], &byte, 1) != 1)) _exit(1);
        if (!first && (read(there_[0], &byte, 1) != 1 || write(back_[1], &byte, 1) != 1)) _exit(1);
      }
      const double used = cpu_ns() - before;
      if (write(player.end[1], &used, sizeof(used)) != sizeof(used)) _exit(1);
    }
    _exit(0);
  }

  int there_[2]{};
  int back_[2]{};
  std::array<Player, 2> players_;
};

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
// process. `alone`: the one on the switch does not come after sampling's, but is another one for the kernel.
struct Blaming {
  Blaming(const cgroup::test::RealTree& tree, bool asked, bool alone = false)
      : sampling(collector(tree, false)) {
    auto started = Blame::start({});
    if (!started) throw std::runtime_error(started.error().message());
    blame = std::move(*started);
    if (!blame->run_after(alone ? -1 : sampling->after_switch()))
      throw std::runtime_error("no hook of blame");
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
      {kBerth, [&] { return std::shared_ptr<void>(collector(tree, false)); }},
      {"berth, four counters", [&] { return std::shared_ptr<void>(collector(tree, true)); }},
      {"blame of others", [&] { return std::make_shared<Blaming>(tree, false); }},
      {"blame of one of both", [&] { return std::make_shared<Blaming>(tree, true); }},
      {"the same, a hook apart", [&] { return std::make_shared<Blaming>(tree, true, true); }},
      {"three hooks and a hash", [] { return std::make_shared<Rival>(false); }},
  };
  PingPong game(tree);
  std::map<std::string, std::vector<double>> costs;
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t at = 0; at < cases.size(); ++at) {
      const auto& [name, attach] = cases[turn % 2 == 0 ? at : cases.size() - 1 - at];
      const auto attached = attach();
      costs[name].push_back(game.measure());
    }
  }
  const auto over = [&](const std::string& name, const std::string& other) {
    std::vector<double> differences;
    for (std::size_t turn = 0; turn < costs[name].size(); ++turn)
      differences.push_back(costs[name][turn] - costs[other][turn]);
    return median(differences);
  };
  std::printf("%-28s %12s %12s %12s\n", ("median of " + std::to_string(turns)).c_str(), "ns a switch",
              "over nothing", "over berth");
  for (const auto& [name, attach] : cases) {
    std::printf("%-28s %12.0f %12.0f %12.0f\n", name.c_str(), median(costs[name]),
                over(name, cases.front().first), over(name, kBerth));
  }
}

}  // namespace
}  // namespace berth::ebpf

int main(int argc, char** argv) {
  berth::ebpf::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 101);
  return 0;
}
