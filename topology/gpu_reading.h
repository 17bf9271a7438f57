// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/gpus.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::topology {

// A part of a GPU in MIG mode that a program can use; an unknown figure is nullopt.
struct GpuInstance {
  std::string id;  // "MIG-" and a UUID, as CUDA_VISIBLE_DEVICES takes it
  std::optional<std::string> model;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::vector<pid_t> pids;  // as of a GPU
  bool all_pids = false;
};

// A driver's figures of a GPU at one time; an unknown figure is nullopt.
struct GpuReading {
  std::optional<std::string> model;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<double> utilisation;   // 0..1
  std::optional<std::string> problem;  // why no work should be given to it; the same words while it lasts
  std::vector<pid_t> pids;             // processes that use it, ascending
  bool all_pids = false;               // there are no others
  // Whether it is in MIG mode: then its instances alone can be used, and there may be none. nullopt where the
  // driver could not be asked.
  std::optional<bool> mig;
  std::vector<GpuInstance> instances;
  std::vector<model::GpuPeer> links;  // to others that were read with it, ascending by id; both ways alike
};

struct GpuReadings {
  std::map<std::string, GpuReading> gpus;  // by id; none of a GPU that cannot be asked
  std::optional<std::string> missing;      // why some or all figures cannot be had on this host
  std::uint64_t list = 0;                  // number of the list of GPUs that was read (GpuWatcher)
};

// Reads those GPUs; the call may block for any time.
using ReadGpus = std::function<GpuReadings(const std::vector<PciGpu>& gpus)>;

}  // namespace berth::topology
