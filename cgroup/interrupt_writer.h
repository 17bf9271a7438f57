// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/undo_journal.h"
#include "model/cpu_set.h"
#include "model/error.h"
#include "os/interrupts.h"
#include "os/irqbalance.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace berth::cgroup {

// The outcome of putting interrupts back.
struct InterruptsBack {
  std::vector<int> restored;  // ascending
  struct Left {
    std::string name;    // "interrupt 24", "irqbalance"
    std::string reason;  // another program's change since, or the error
    bool kept = false;   // the journal keeps the record, and a later restore tries again
  };
  std::vector<Left> left;
  bool irqbalance = false;             // it was told its own banned CPUs, and follows within some 20 s
  std::optional<std::string> problem;  // of the journal
};

// Changes the vCPUs of interrupts and irqbalance's banned CPUs, and can take both back. Each original is
// recorded durably before its first write.
class InterruptWriter {
 public:
  // irqbalance answers within a millisecond, unless it reads the processors again.
  static constexpr std::chrono::milliseconds kPatience{100};

  // `journal` outlives the writer.
  InterruptWriter(UndoJournal& journal, std::filesystem::path interrupts_directory,
                  std::filesystem::path irqbalance_directory, std::filesystem::path sys_root)
      : journal_(journal),
        interrupts_(std::move(interrupts_directory)),
        irqbalance_(std::move(irqbalance_directory)),
        sys_root_(std::move(sys_root)) {}

  const os::Interrupts& interrupts() const { return interrupts_; }

  // The vCPUs of an interrupt that berth changed.
  struct Held {
    model::CpuSet original;
    model::CpuSet written;
    std::optional<model::CpuSet> previous;  // as UndoRecord::previous
  };
  std::optional<Held> held(int number) const;
  // Numbers of the interrupts that berth changed, ascending.
  std::vector<int> held() const;

  // Whether irqbalance or an interrupt has anything of berth.
  bool holds_any() const { return !journal_.host().empty(); }

  struct Move {
    int number = 0;
    model::CpuSet now;  // as it was read
    model::CpuSet to;   // not empty
  };
  // One error for each move that the kernel refused, by number; nothing is recorded of it that was not
  // before. Error: nothing was written, because the originals cannot be recorded.
  model::Result<std::map<int, model::Error>> move(std::span<const Move> moves);
  // Puts these back, unless another program changed them since.
  InterruptsBack restore(std::span<const int> numbers);
  // Puts back all, and irqbalance's banned CPUs. `patience`: for irqbalance. As irqbalance follows late, its
  // record stays until a later call sees that it did (HostRecord::is_undone()).
  InterruptsBack restore_all(std::chrono::milliseconds patience = kPatience);
  // Forgets interrupts that another program changed, or that have gone.
  model::Result<void> disown(std::span<const int> numbers);

  enum class Ban {
    absent,   // no irqbalance runs
    pending,  // it was told, and has not followed yet; ask again
    told,     // and it bans them
    foreign,  // another program told it something else since, and so berth tells it nothing more
  };
  // Adds these vCPUs, and no others, to those that irqbalance had banned before berth. Error transient: it
  // did not answer within `patience`; try again. Error invalid_input: it takes no list as long.
  model::Result<Ban> ban(const model::CpuSet& cpus, std::chrono::milliseconds patience = kPatience);
  // irqbalance's next answer is waited for, as no tick follows.
  void be_patient() {
    patient_ = true;
    irqbalance_.wait_again();
  }

 private:
  bool restore_one(const HostRecord& record, int number, InterruptsBack& back);
  bool restore_irqbalance(HostRecord record, std::chrono::milliseconds patience, InterruptsBack& back);
  void forget(std::span<const std::string> names, InterruptsBack& back);

  UndoJournal& journal_;
  os::Interrupts interrupts_;
  os::Irqbalance irqbalance_;
  std::filesystem::path sys_root_;
  // The socket of the irqbalance that berth told what is recorded.
  std::string told_;
  // The socket of one that another program told something else since.
  std::string foreign_;
  bool patient_ = false;
};

}  // namespace berth::cgroup
