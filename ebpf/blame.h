// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace berth::ebpf {

// A cgroup whose threads' waits are divided. Its level is the number of its path's components.
struct AskedGroup {
  std::uint64_t id = 0;
  unsigned level = 0;

  friend bool operator==(const AskedGroup&, const AskedGroup&) = default;
};

// Waits of an asked cgroup's threads while `by` ran, in ns. `by` is the id of a cgroup, or BERTH_BY_... of
// ebpf/slices.h.
struct BlamedWait {
  std::uint64_t asked = 0;
  std::uint64_t by = 0;
  std::uint64_t ns = 0;
};

// A cgroup that ran. It may be gone.
struct CulpritGroup {
  // Of levels 1, 2, ... and of itself; without some of them where it lies deeper than eight levels.
  std::vector<std::uint64_t> ids;
  // Its path below the root; long components are cut, and "…" stands for those of more than four.
  std::string path;
};

// The cost of the hooks since their start, in ns of CPU time.
struct BlameCost {
  std::uint64_t switches = 0;    // context switches seen
  std::uint64_t interrupts = 0;  // runs of the hooks on interrupts
  // Of all hooks but the one on moves, extrapolated from every 256th run; without the kernel's time to enter
  // them.
  std::uint64_t bpf_ns = 0;
};

// The interface of a Blame.
class Blamer {
 public:
  virtual ~Blamer() = default;
  // From here on, the waits of these cgroups' threads are divided; those of cgroups below them, too. Takes
  // BERTH_MOST_ASKED of them; the rest is left out.
  virtual void ask(const std::vector<AskedGroup>& groups) = 0;
  // By how much each wait has grown since the last call.
  virtual std::vector<BlamedWait> read() = 0;
  // By how much all waits of the asked cgroup have grown since the last call, by vCPU; without the waits for
  // its quota. Empty where it is not asked about.
  virtual std::vector<std::uint64_t> take_waited(std::uint64_t asked) = 0;
  // A culprit of read(). It is empty for a cgroup that was forgotten meanwhile.
  virtual CulpritGroup culprit(std::uint64_t id) const = 0;
  // Call it after read() and the calls of culprit(): forgets all culprits where their tables are half full,
  // and, once a minute, where a cgroup has more below it than are told apart.
  virtual void make_room() = 0;
  // From the first call, the program on the context switch runs after another one, which has this map
  // (Counts::after_switch()); by itself where it is -1, or that fails. That costs twice as much, or more.
  // Error: it does not run at all.
  virtual model::Result<void> run_after(int map) = 0;
  virtual BlameCost cost() const = 0;
};

// Divides waits in the kernel, from its construction to its end. Needs Linux 6.1 with BTF, group scheduling
// (CONFIG_FAIR_GROUP_SCHED) and SCHED_INFO, and CAP_BPF with CAP_PERFMON.
class Blame final : public Blamer {
 public:
  // `log_directory` gets the verifier's log of a refused program; empty: it goes nowhere. Error as of
  // Collector::start().
  static model::Result<std::unique_ptr<Blame>> start(const std::filesystem::path& log_directory);
  ~Blame() override;
  Blame(const Blame&) = delete;
  Blame& operator=(const Blame&) = delete;

  void ask(const std::vector<AskedGroup>& groups) override;
  std::vector<BlamedWait> read() override;
  std::vector<std::uint64_t> take_waited(std::uint64_t asked) override;
  CulpritGroup culprit(std::uint64_t id) const override;
  void make_room() override;
  model::Result<void> run_after(int map) override;
  BlameCost cost() const override;

 private:
  struct State;
  explicit Blame(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::ebpf
