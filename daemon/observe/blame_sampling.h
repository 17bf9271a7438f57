// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/observe/blame_ledger.h"
#include "ebpf/blame.h"
#include "model/error.h"
#include "os/worker.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The cost of finding the culprits of waits; CPU in cores, since the programs were loaded.
struct BlameCostReport {
  double bpf_cpu = 0;
  double read_cpu = 0;
};

// Finds what ran while services' threads waited, from a question on until some time after the last one. At
// other times nothing of it is in the kernel. Times are of one clock, in seconds.
class BlameSampling {
 public:
  using Start = std::function<model::Result<std::unique_ptr<ebpf::Blamer>>()>;
  // Questions that are kept; the oldest ones go.
  static constexpr std::size_t kMostQuestions = 32;
  // After the programs failed to load.
  static constexpr double kPause_s = 10;

  // `start` loads the programs. It runs on another thread, as it takes long, and may outlive this object.
  BlameSampling(Start start, std::filesystem::path proc_root)
      : start_(std::move(start)), proc_root_(std::move(proc_root)) {}
  BlameSampling(const BlameSampling&) = delete;
  BlameSampling& operator=(const BlameSampling&) = delete;

  // A question about a service, or a workload by its id.
  void ask(const std::string& subject, double now);
  // Divides the waits of all latency-sensitive workloads, too, without a question.
  void set_always(bool always) { always_ = always; }
  // Seconds from the last question until the programs go.
  void set_linger(double linger_s) { linger_s_ = linger_s; }

  // Whether follow() has work.
  bool is_needed() const { return always_ || !questions_.empty() || blamer_ || starting_; }
  // Loads or unloads the programs, and reads them. Adds to `messages` why they cannot be loaded, once.
  // `after_switch` as of KernelSampling.
  void follow(const std::vector<model::Workload>& workloads, int after_switch, double now,
              std::vector<std::string>& messages);
  // Unloads the programs.
  void stop();

  struct Answer {
    std::optional<double> since;         // `blames` are from then on; nullopt: not yet
    std::string problem;                 // why not; empty where they will be
    std::vector<std::string> workloads;  // whose waits are divided
    Blames blames;
  };
  // After ask().
  Answer answer(const std::string& subject) const;
  // Seconds until the programs go without another question; nullopt where they are not loaded, and where they
  // stay.
  std::optional<double> ends_in(double now) const;
  bool counts() const { return blamer_ != nullptr; }
  std::optional<BlameCostReport> cost(double now) const;
  const std::array<double, kCulpritKinds>& seconds() const { return ledger_.seconds(); }

 private:
  struct Question {
    double asked_at = 0;
    std::optional<double> since;
    std::vector<std::string> workloads;
  };
  using Started = model::Result<std::unique_ptr<ebpf::Blamer>>;
  bool is_wanted(double now) const;
  void load(double now, std::vector<std::string>& messages);
  void fail(const model::Error& error, double now, std::vector<std::string>& messages);
  void choose(const std::vector<model::Workload>& workloads, double now);
  void begin_questions(double now);
  void read();
  std::vector<double> stolen_shares();

  Start start_;
  std::filesystem::path proc_root_;
  bool always_ = false;
  double linger_s_ = 600;
  std::map<std::string, Question> questions_;  // by subject
  BlameLedger ledger_;
  BlameWorkloads present_;    // by cgroup, of the last follow()
  BlameWorkloads workloads_;  // with those of the one before, as some have ended since
  std::vector<ebpf::AskedGroup> asked_;
  std::unique_ptr<ebpf::Blamer> blamer_;
  std::optional<os::Worker> worker_;  // while it loads
  std::shared_ptr<std::optional<Started>> starting_;
  double loaded_at_ = 0;
  double read_cpu_s_ = 0;
  std::optional<double> failed_at_;
  std::string problem_;
  // By vCPU: ticks of the clock that were stolen, and all of them, as last read.
  std::vector<std::pair<double, double>> stolen_;
};

}  // namespace berth::daemon
