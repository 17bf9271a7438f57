// SPDX-License-Identifier: Apache-2.0
// Measures the cost of reading N cgroups by eBPF, by a kept descriptor of each one's cpu.stat, and by the
// sampler of cgroup/. "Active" is when a process has been in each since the last reading, on one vCPU
// or on every one in turn, as the threads of a container are. All take turns.
#include "cgroup/cgroup.h"
#include "cgroup/sampler.h"
#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "os/file_descriptor.h"
#include "tests/host/real_tree.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace berth::ebpf {
namespace {

constexpr int kTurns = 7;

double cpu_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::uint64_t pread_all(const std::vector<os::FileDescriptor>& files) {
  std::uint64_t sum = 0;
  std::array<char, 1024> text{};
  for (const os::FileDescriptor& file : files) {
    const ssize_t got = pread(file.get(), text.data(), text.size() - 1, 0);
    if (got <= 0) throw std::runtime_error("pread");
    text[static_cast<std::size_t>(got)] = 0;
    sum += std::strtoull(text.data() + sizeof("usage_usec"), nullptr, 10);
  }
  return sum;
}

// A process that goes through all groups whenever asked. It is made once, and early: after a fork the reader
// would pay for a fault on each page that it writes.
class Visitor {
 public:
  Visitor(const cgroup::test::RealTree& tree, int groups) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
    child_ = fork();
    if (child_ == 0) {
      char cpus = 0;
      while (read(ends[1], &cpus, 1) == 1) {
        for (int cpu = 0; cpu < cpus; ++cpu) go_through(tree, groups, cpu);
        if (write(ends[1], &cpus, 1) != 1) _exit(1);
      }
      _exit(0);
    }
    close(ends[1]);
    end_ = os::FileDescriptor(ends[0]);
  }
  ~Visitor() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  void visit_all(int cpus) {
    char how_many = static_cast<char>(cpus);
    if (write(end_.get(), &how_many, 1) != 1 || read(end_.get(), &how_many, 1) != 1)
      throw std::runtime_error("the visitor could not be everywhere");
  }

 private:
  static void go_through(const cgroup::test::RealTree& tree, int groups, int cpu) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    if (sched_setaffinity(0, sizeof(here), &here) != 0) _exit(1);
    for (int i = 0; i < groups; ++i) {
      std::ofstream procs(tree.path("g" + std::to_string(i)) / "cgroup.procs");
      procs << 0;
      if (!procs.flush()) _exit(1);
      usleep(1);
    }
  }

  pid_t child_ = -1;
  os::FileDescriptor end_;
};

void run(int count) {
  const cgroup::test::RealTree tree;
  for (int i = 0; i < count; ++i) tree.make("g" + std::to_string(i));
  Visitor visitor(tree, count);
  std::vector<os::FileDescriptor> files;
  cgroup::Sampler sampler;
  for (int i = 0; i < count; ++i) {
    const std::string name = "g" + std::to_string(i);
    files.emplace_back(open((tree.path(name) / "cpu.stat").c_str(), O_RDONLY | O_CLOEXEC));
    if (!files.back()) throw std::runtime_error("open");
    sampler.add(name, cgroup::Cgroup::open(tree.hierarchy().root, tree.id(name)).value());
  }
  Options options;
  options.cgroup_root = tree.hierarchy().root;
  auto started = Collector::start(options);
  if (!started) throw std::runtime_error(started.error().message());
  Collector& collector = **started;
  const int all_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  // All of them have rows, as on a host where all containers run.
  visitor.visit_all(all_cpus);
  for (const int cpus : {0, 1, all_cpus}) {
    std::vector<double> files_us;
    std::vector<double> sampler_us;
    std::vector<double> collector_us;
    const auto timed = [&](std::vector<double>& to, const auto& work) {
      if (cpus > 0) visitor.visit_all(cpus);
      const double begin = cpu_us();
      work();
      to.push_back(cpu_us() - begin);
    };
    for (int turn = 0; turn < kTurns; ++turn) {
      sleep(1);  // as berthd reads
      timed(files_us, [&] { pread_all(files); });
      timed(sampler_us, [&] { sampler.sample(turn); });
      timed(collector_us, [&] {
        if (!collector.read()) throw std::runtime_error("read");
      });
    }
    const double own = median(collector_us);
    const std::string load = cpus == 0 ? "idle" : "on " + std::to_string(cpus);
    std::printf("%6d %-7s %12.0f %12.0f %12.0f %10.1f %10.1f\n", count, load.c_str(), own, median(files_us),
                median(sampler_us), median(files_us) / own, median(sampler_us) / own);
  }
}

}  // namespace
}  // namespace berth::ebpf

int main() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::printf("%6s %-7s %12s %12s %12s %10s %10s\n", "groups", "", "berth us", "pread us", "sampler us",
              "pread/b", "sampler/b");
  for (const int count : {100, 1000, 5000}) berth::ebpf::run(count);
  return 0;
}
