// SPDX-License-Identifier: Apache-2.0
#include "topology/drm.h"

#include "model/json.h"
#include "model/name.h"
#include "model/number.h"
#include "model/text.h"
#include "topology/drm_clients.h"
#include "topology/sysfs.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace berth::topology {

namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) { return model::trimmed_end(text, " \t\n"); }

// nullopt where there is no such file, or it holds no number up to `most`.
std::optional<std::uint64_t> read_number(const fs::path& file, std::uint64_t most) {
  const auto read = read_file(file, kLargestAttribute);
  if (!read) return std::nullopt;
  const auto value = model::to_number<std::uint64_t>(trimmed(*read));
  return value && *value <= most ? value : std::nullopt;
}

bool sleeps(const fs::path& device) {
  const auto status = read_file(device / "power/runtime_status", kLargestAttribute);
  return status && trimmed(*status) == "suspended";
}

// The number behind "ue:" of a block's count of errors, "ue: 0\nce: 12\n".
std::uint64_t uncorrected(const std::string& text) {
  const auto at = text.find("ue:");
  if (at == std::string::npos) return 0;
  const auto begin = text.find_first_not_of(' ', at + 3);
  std::uint64_t count = 0;
  if (begin != std::string::npos) std::from_chars(text.data() + begin, text.data() + text.size(), count);
  return count;
}

std::optional<std::string> ras_problem(const fs::path& device) {
  std::vector<std::string> blocks;
  std::error_code error;
  for (fs::directory_iterator entry(device / "ras", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    constexpr std::string_view kCount = "_err_count";
    if (!name.ends_with(kCount)) continue;
    const auto text = read_file(entry->path(), kLargestAttribute);
    if (text && uncorrected(*text) > 0) blocks.push_back(name.substr(0, name.size() - kCount.size()));
  }
  if (blocks.empty()) return std::nullopt;
  return fmt::format("amdgpu: errors of its block {} that could not be corrected",
                     model::to_name(*std::min_element(blocks.begin(), blocks.end())));
}

GpuReading read_amd(const fs::path& device) {
  GpuReading reading;
  if (const auto name = read_file(device / "product_name", kLargestAttribute);
      name && !trimmed(*name).empty()) {
    reading.model = model::to_name(trimmed(*name));
  }
  reading.memory_bytes = read_number(device / "mem_info_vram_total", model::kMaxBytes);
  reading.memory_used_bytes = read_number(device / "mem_info_vram_used", model::kMaxBytes);
  // A used amount without a total is no figure: the GPU has no memory of its own.
  if (reading.memory_bytes == 0 || reading.memory_used_bytes > reading.memory_bytes)
    reading.memory_used_bytes.reset();
  if (reading.memory_bytes == 0) reading.memory_bytes.reset();
  if (!sleeps(device)) {
    if (const auto percent = read_number(device / "gpu_busy_percent", 100))
      reading.utilisation = static_cast<double>(*percent) / 100;
  }
  reading.problem = ras_problem(device);
  return reading;
}

}  // namespace

ReadGpus drm_reader(fs::path sys_root, fs::path proc_root) {
  return [sys_root = std::move(sys_root), proc_root = std::move(proc_root)](const std::vector<PciGpu>& gpus) {
    GpuReadings readings;
    if (gpus.empty()) return readings;
    auto clients = find_drm_clients(sys_root, proc_root);
    if (clients.hidden) {
      readings.missing =
          "berth cannot see processes of other users on AMD's and Intel's GPUs (CAP_SYS_PTRACE), except "
          "those "
          "that compute on AMD's";
    }
    for (const PciGpu& gpu : gpus) {
      GpuReading reading =
          gpu.vendor == GpuVendor::amd ? read_amd(sys_root / "bus/pci/devices" / gpu.id) : GpuReading();
      const auto& pids = clients.by_gpu[gpu.id];
      reading.pids.assign(pids.begin(), pids.end());
      reading.all_pids = !clients.hidden;
      readings.gpus.emplace(gpu.id, std::move(reading));
    }
    return readings;
  };
}

}  // namespace berth::topology
