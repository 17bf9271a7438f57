// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/capability.h"
#include "model/topology.h"
#include "topology/gpu_watcher.h"
#include "topology/gpus.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::topology {

// Where GPUs are looked for, and how often.
struct GpuOptions {
  std::filesystem::path sys_root = "/sys";
  std::filesystem::path proc_root = "/proc";
  std::string nvml_library = kNvmlLibrary;
  double scan_s = 10;      // from one look at the PCI bus to the next
  double nvml_s = 5;       // pauses between readings
  double drm_s = 10;       // likewise; these look at every process
  double patience_s = 30;  // for a reading, before its GPUs count as unhealthy
};

struct KnownGpu {
  model::Gpu gpu;           // without holder and other processes
  std::vector<pid_t> pids;  // processes that use it, ascending
  bool all_pids = false;    // there are no others
};

// A GPU whose health has changed.
struct GpuNews {
  std::string gpu;
  bool healthy = true;
  std::string text;  // one line
};

// The host's GPUs. look() reads the bus on the caller's thread and never blocks. Threads ask the drivers, one
// for NVML and one for all others; only hosts with such GPUs have them. A GPU that was seen once stays
// listed. A GPU in MIG mode is never listed itself: its instances are.
class GpuInventory {
 public:
  explicit GpuInventory(GpuOptions options);

  // Takes in new readings. `cpus` give NUMA nodes their numbers.
  void look(const std::vector<model::Cpu>& cpus);
  // The next look() reads the bus too: `cpus` have changed.
  void look_at_bus_again() { scanned_at_.reset(); }
  // As of the last look(), ascending by id. Until its driver was asked once, a GPU is unhealthy.
  const std::vector<KnownGpu>& gpus() const { return gpus_; }
  // A number that changes whenever the processes may have changed.
  std::uint64_t reading() const { return reading_; }
  // Whether every driver has answered once, or has used up its time.
  bool settled() const { return settled_; }
  // Calls look() until settled(), for `most_s` at most.
  void settle(const std::vector<model::Cpu>& cpus, double most_s);
  // Changes since the last call, each once. A GPU that was healthy from the start is no news.
  std::vector<GpuNews> take_news();
  model::Capability capability() const;

 private:
  struct Known {
    PciGpu pci;
    bool present = false;
    bool came = false;  // at the present look at the bus
    // Number of its reader's list; readings from that list on are of this very device.
    std::uint64_t list = 0;
    std::optional<std::string> model;    // as its driver named it; kept when the GPU is gone
    std::optional<std::string> problem;  // as last reported
    // As last read; kept while its driver does not answer.
    bool mig = false;
    std::vector<GpuInstance> instances;
  };
  struct Reader {
    std::unique_ptr<GpuWatcher> watcher;  // null: its vendor has no GPU here, or it failed
    std::optional<std::string> failure;   // why there is no watcher though it has GPUs
    std::shared_ptr<const GpuReadings> latest;
    bool hangs = false;
  };

  void scan(const std::vector<model::Cpu>& cpus);
  void keep_reader(Reader& reader, const ReadGpus& read, std::vector<PciGpu> gpus, double interval_s);
  Reader& reader_of(const PciGpu& gpu) { return gpu.vendor == GpuVendor::nvidia ? nvml_ : drm_; }
  const Reader& reader_of(const PciGpu& gpu) const { return gpu.vendor == GpuVendor::nvidia ? nvml_ : drm_; }
  void take(Reader& reader);
  static bool has_nvml(const PciGpu& gpu);
  // Whether a reader asks its driver.
  static bool is_asked(const PciGpu& gpu);
  KnownGpu describe(Known& known);
  // Lists what work can be given: the GPU, or each of its instances in MIG mode.
  void add_usable(const Known& known, KnownGpu seen);
  // Its reader's newest figures; null where they are from before the GPU came.
  const GpuReadings* readings_of(const Known& known) const;
  std::vector<model::GpuPeer> links_of(const GpuReading& reading) const;
  void note(Known& known, const model::Gpu& gpu);

  GpuOptions options_;
  std::optional<std::chrono::steady_clock::time_point> scanned_at_;
  std::map<std::string, Known> known_;
  Reader nvml_;
  Reader drm_;
  std::vector<KnownGpu> gpus_;
  std::uint64_t reading_ = 0;
  bool settled_ = true;
  std::vector<GpuNews> news_;
};

}  // namespace berth::topology
