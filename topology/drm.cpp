// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "model/name.h"
#include "model/number.h"
#include "model/text.h"
#include "os/proc_files.h"
#include "topology/gpus.h"
#include "topology/sysfs.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace fs = std::filesystem;

constexpr std::size_t kLargestInfo = 16384;
constexpr int kMostFiles = 4096;  // of one process

template <typename T>
std::optional<T> number_at(std::string_view text) {
  text = model::trimmed_start(text, model::kBlanks);
  T value{};
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

// Whether a line shows work done or memory held; nullopt where it is about another thing.
std::optional<bool> tells_of_work(std::string_view key, std::string_view value) {
  // These figures are the GPU's, not the client's.
  if (key.starts_with("drm-engine-capacity-") || key.starts_with("drm-total-cycles-")) return std::nullopt;
  for (const std::string_view measure :
       {"drm-engine-", "drm-cycles-", "drm-memory-", "drm-total-", "drm-resident-"}) {
    if (key.starts_with(measure)) return number_at<std::uint64_t>(value).value_or(0) > 0;
  }
  return std::nullopt;
}

bool is_refused(const std::error_code& error) { return error.value() == EACCES || error.value() == EPERM; }

// Whether this process may not see the open files of a process. With CAP_DAC_OVERRIDE alone it can list them,
// but not read their targets.
bool is_hidden(const fs::path& process) {
  std::error_code error;
  const fs::directory_iterator entry(process / "fd", error);
  if (!error && entry != fs::directory_iterator()) (void)fs::read_symlink(entry->path(), error);
  return is_refused(error);
}

bool is_own(const fs::path& process) {
  struct stat status {};
  return ::stat(process.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

void look_at(const fs::path& process, pid_t pid, DrmClients& found) {
  std::error_code error;
  fs::directory_iterator entry(process / "fd", error);
  if (error) {
    // A process that has ended meanwhile hides nothing.
    found.hidden = found.hidden || is_refused(error);
    return;
  }
  int files = 0;
  for (const fs::directory_iterator end; !error && entry != end && files < kMostFiles;
       entry.increment(error), ++files) {
    // Reading a link is cheaper than reading a file. With CAP_DAC_OVERRIDE alone the kernel refuses it.
    std::error_code problem;
    const auto opened = fs::read_symlink(entry->path(), problem);
    if (is_refused(problem)) {
      found.hidden = true;
      return;
    }
    if (!opened.native().starts_with("/dev/dri/")) continue;
    const auto info = read_file(process / "fdinfo" / entry->path().filename(), kLargestInfo);
    if (!info) continue;
    if (const std::string gpu = gpu_at_work(*info); !gpu.empty()) found.by_gpu[gpu].insert(pid);
  }
}

// amdkfd's own numbers of the GPUs, as text, and their PCI addresses.
std::map<std::string, std::string> kfd_gpus(const fs::path& kfd) {
  std::map<std::string, std::string> gpus;
  std::error_code error;
  for (fs::directory_iterator entry(kfd / "topology/nodes", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = read_file(entry->path() / "gpu_id", kLargestInfo);
    const auto properties = read_file(entry->path() / "properties", kLargestInfo);
    if (!number || !properties) continue;
    const auto id = number_at<std::uint64_t>(*number);
    if (!id || *id == 0) continue;  // processors are nodes too
    const auto property = [&](std::string_view name) -> std::optional<unsigned> {
      for (std::size_t at = 0; at < properties->size();) {
        const std::size_t line_end = std::min(properties->find('\n', at), properties->size());
        const std::string_view line = std::string_view(*properties).substr(at, line_end - at);
        if (line.starts_with(name) && line.substr(name.size()).starts_with(' '))
          return number_at<unsigned>(line.substr(name.size()));
        at = line_end + 1;
      }
      return std::nullopt;
    };
    const auto location = property("location_id");
    if (!location) continue;
    gpus[std::to_string(*id)] =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", property("domain").value_or(0), (*location >> 8U) & 0xFFU,
                    (*location >> 3U) & 0x1FU, *location & 0x7U);
  }
  return gpus;
}

void ask_kfd(const fs::path& kfd, DrmClients& found) {
  const auto gpus = kfd_gpus(kfd);
  if (gpus.empty()) return;
  for (const pid_t pid : os::pids_of(kfd / "proc")) {
    for (const auto& [id, address] : gpus) {
      const auto held = read_file(kfd / "proc" / std::to_string(pid) / ("vram_" + id), kLargestInfo);
      if (held && number_at<std::uint64_t>(*held).value_or(0) > 0) found.by_gpu[address].insert(pid);
    }
  }
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

std::string gpu_at_work(std::string_view fdinfo) {
  std::string gpu;
  bool told = false;
  bool works = false;
  while (!fdinfo.empty()) {
    const std::string_view line = model::take_line(fdinfo);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = model::trimmed_start(line.substr(colon + 1), model::kBlanks);
    if (key == "drm-pdev") gpu = value;
    if (const auto work = tells_of_work(key, value)) {
      told = true;
      works = works || *work;
    }
  }
  return told && !works ? std::string() : gpu;
}

DrmClients find_drm_clients(const fs::path& sys_root, const fs::path& proc_root) {
  DrmClients found;
  ask_kfd(sys_root / "class/kfd/kfd", found);
  // If the first process is hidden, those of all other users are: thousands of refusals say no more.
  const bool blind = is_hidden(proc_root / "1");
  found.hidden = blind;
  for (const pid_t pid : os::pids_of(proc_root)) {
    const fs::path process = proc_root / std::to_string(pid);
    if (!blind || is_own(process)) look_at(process, pid, found);
  }
  return found;
}

}  // namespace berth::topology
