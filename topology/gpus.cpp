// SPDX-License-Identifier: Apache-2.0
#include "topology/gpus.h"

#include "topology/sysfs.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

namespace berth::topology {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kDisplay = 0x03;
constexpr unsigned kAccelerator = 0x12;

// "0000:3b:00.0": domain of four digits or more, bus, slot, function.
bool is_pci_address(std::string_view name) {
  if (name.size() < 12 || name.size() > 16) return false;
  const std::string_view rest = name.substr(name.size() - 8);
  if (rest[0] != ':' || rest[3] != ':' || rest[6] != '.') return false;
  return std::count_if(name.begin(), name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'a' && c <= 'f');
         }) == static_cast<std::ptrdiff_t>(name.size()) - 3;
}

// "0x030200" -> 0x030200.
std::optional<unsigned> read_hex(const fs::path& file) {
  const auto text = read_file(file, kLargestAttribute);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  unsigned value = 0;
  const auto* begin = text->data() + 2;
  if (std::from_chars(begin, text->data() + text->size(), value, 16).ec != std::errc()) return std::nullopt;
  return value;
}

bool has_render_node(const fs::path& device) {
  std::error_code error;
  for (fs::directory_iterator entry(device / "drm", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().native().starts_with("renderD")) return true;
  }
  return false;
}

std::optional<int> local_node(const fs::path& device, const std::vector<model::Cpu>& cpus) {
  const auto local = read_cpulist(device / "local_cpulist");
  if (!local || !*local) return std::nullopt;
  std::set<int> nodes;
  for (const model::Cpu& cpu : cpus) {
    if (cpu.online && (*local)->contains(cpu.cpu)) nodes.insert(cpu.numa);
  }
  return nodes.size() == 1 ? std::optional(*nodes.begin()) : std::nullopt;
}

std::optional<GpuVendor> vendor_of(unsigned vendor) {
  if (vendor == 0x10de) return GpuVendor::nvidia;
  if (vendor == 0x1002) return GpuVendor::amd;
  if (vendor == 0x8086) return GpuVendor::intel;
  return std::nullopt;
}

bool counts(const PciGpu& gpu, unsigned base_class, const fs::path& device) {
  std::error_code ignored;
  if (fs::exists(device / "physfn", ignored)) return false;
  if (base_class == kAccelerator && gpu.vendor != GpuVendor::amd) return false;
  switch (gpu.vendor) {
    case GpuVendor::nvidia:
      return true;
    case GpuVendor::amd:
      return gpu.driver == "amdgpu" && has_render_node(device);
    case GpuVendor::intel:
      return (gpu.driver == "i915" || gpu.driver == "xe") && has_render_node(device);
  }
  return false;
}

std::optional<PciGpu> gpu_at(const fs::path& device, const std::vector<model::Cpu>& cpus) {
  // This check comes first, since most devices fail it.
  const auto pci_class = read_hex(device / "class");
  if (!pci_class) return std::nullopt;
  const unsigned base_class = *pci_class >> 16U;
  if (base_class != kDisplay && base_class != kAccelerator) return std::nullopt;
  const auto vendor = read_hex(device / "vendor");
  const auto model = read_hex(device / "device");
  if (!vendor || !model || !vendor_of(*vendor)) return std::nullopt;
  PciGpu gpu;
  gpu.id = device.filename().native();
  gpu.vendor = *vendor_of(*vendor);
  gpu.pci_id = fmt::format("{:04x}:{:04x}", *vendor, *model);
  std::error_code none;
  gpu.driver = fs::read_symlink(device / "driver", none).filename().native();
  if (!counts(gpu, base_class, device)) return std::nullopt;
  gpu.numa = local_node(device, cpus);
  return gpu;
}

const char* to_string(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvidia:
      return "nvidia";
    case GpuVendor::amd:
      return "amd";
    case GpuVendor::intel:
      return "intel";
  }
  return "";
}

}  // namespace

std::vector<PciGpu> find_gpus(const fs::path& sys_root, const std::vector<model::Cpu>& cpus) {
  std::vector<PciGpu> gpus;
  std::error_code error;
  for (fs::directory_iterator entry(sys_root / "bus/pci/devices", error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_pci_address(entry->path().filename().native())) continue;
    if (auto gpu = gpu_at(entry->path(), cpus)) gpus.push_back(*std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(), [](const PciGpu& a, const PciGpu& b) { return a.id < b.id; });
  if (gpus.size() > kMostGpus) gpus.resize(kMostGpus);
  return gpus;
}

model::Gpu gpu_of(const PciGpu& found) {
  model::Gpu gpu;
  gpu.id = found.id;
  gpu.vendor = to_string(found.vendor);
  gpu.model = "PCI " + found.pci_id;
  gpu.numa = found.numa;
  if (found.vendor == GpuVendor::nvidia && found.driver != "nvidia" && found.driver != "nouveau") {
    gpu.problem =
        found.driver.empty()
            ? "it has no driver"
            : fmt::format("its driver is {}, with which nothing on this host can compute", found.driver);
  }
  gpu.healthy = !gpu.problem;
  return gpu;
}

}  // namespace berth::topology
