// SPDX-License-Identifier: Apache-2.0
// Stands in for NVIDIA's libnvidia-ml.so.1, as far as berth calls it. Its GPUs are directories, by PCI
// address, of the one that $FAKE_NVML names:
//
//   hang                 as long as it exists, asking for a GPU does not return
//   init                 what nvmlInit_v2 returns, 0 without
//   ID/handle            what asking for the GPU returns, 0 without
//   ID/error             what every call about it returns, 0 without
//   ID/name total used util ecc remap_failed   figures; not supported without
//   ID/compute graphics mps                    numbers of processes, in words; not supported without
//   ID/compute_count                           how many of them it claims there are
//   ID/p2p/OTHER         what the status of NVLink between the two is; either of them may have the file
//   ID/level/OTHER       their common ancestor, likewise; not supported without
//   ID/link_error        what asking for its links returns, 0 without
//   links-hang           as long as it exists, asking for a link does not return
//   links-asked          has a line for each link that was asked for
//   ID/mig               whether it is in MIG mode, 0 or 1; not supported without
//   ID/mig_error         what asking for that returns, 0 without
//   ID/INDEX             a directory: an instance in MIG mode, with the files of a GPU and
//   ID/INDEX/uuid        its UUID; not supported without
//   let-go               exists once nvmlShutdown was called, which sets every ID/ecc back to 0, like a
//                        driver without users
//
// Built as FAKE_NVML_OLD it has the lists of processes of 2012, no remapping of rows and no links, as
// FAKE_NVML_V3 the third lists only, as FAKE_NVML_BROKEN it lacks its start.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>

namespace {

namespace fs = std::filesystem;

constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

fs::path root() {
  const char* directory = std::getenv("FAKE_NVML");
  return directory == nullptr ? "/nonexistent" : directory;
}

std::optional<std::string> text_in(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

int code_in(const fs::path& file) {
  const auto text = text_in(file);
  return text ? std::atoi(text->c_str()) : 0;
}

// A device handle is the address of its directory's name; handles stay good for ever.
std::string* handle_of(const std::string& id) {
  static std::mutex mutex;
  static std::deque<std::string> names;
  const std::lock_guard lock(mutex);
  const auto known = std::find(names.begin(), names.end(), id);
  if (known != names.end()) return &*known;
  names.push_back(id);
  return &names.back();
}

fs::path directory_of(void* device) { return root() / *static_cast<std::string*>(device); }

template <typename T>
int figure(void* device, const char* name, T* value) {
  if (const int error = code_in(directory_of(device) / "error")) return error;
  const auto text = text_in(directory_of(device) / name);
  if (!text) return kNotSupported;
  *value = static_cast<T>(std::strtoull(text->c_str(), nullptr, 10));
  return 0;
}

int list(void* device, const char* name, unsigned* count, void* infos, std::size_t stride) {
  if (const int error = code_in(directory_of(device) / "error")) return error;
  const auto text = text_in(directory_of(device) / name);
  if (!text) return kNotSupported;
  std::istringstream words(*text);
  std::vector<unsigned> pids;
  for (unsigned pid = 0; words >> pid;) pids.push_back(pid);
  const unsigned room = *count;
  *count = static_cast<unsigned>(pids.size());
  if (pids.size() > room) return kInsufficientSize;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    auto* at = static_cast<std::byte*>(infos) + i * stride;
    std::memset(at, 0xEE, stride);
    std::memcpy(at, &pids[i], sizeof pids[i]);
  }
  if (const auto claim = text_in(directory_of(device) / (std::string(name) + "_count")))
    *count = static_cast<unsigned>(std::strtoul(claim->c_str(), nullptr, 10));
  return 0;
}

int text_figure(void* device, const char* name, char* buffer, unsigned length) {
  if (const int error = code_in(directory_of(device) / "error")) return error;
  const auto text = text_in(directory_of(device) / name);
  if (!text) return kNotSupported;
  // One that is too long is not terminated: the reader has to know the size of the buffer.
  std::memcpy(buffer, text->data(), std::min<std::size_t>(length, text->size()));
  if (text->size() < length) buffer[text->size()] = '\0';
  return 0;
}

#ifndef FAKE_NVML_OLD
int link_figure(void* one, void* other, const char* kind, int* value) {
  while (fs::exists(root() / "links-hang")) poll(nullptr, 0, 1);
  for (void* device : {one, other}) {
    for (const char* file : {"error", "link_error"}) {
      if (const int error = code_in(directory_of(device) / file)) return error;
    }
  }
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    const auto text = text_in(directory_of(from) / kind / *static_cast<std::string*>(to));
    if (!text) continue;
    *value = static_cast<int>(std::strtol(text->c_str(), nullptr, 10));
    return 0;
  }
  return kNotSupported;
}
#endif

}  // namespace

extern "C" {

#ifndef FAKE_NVML_BROKEN
int nvmlInit_v2() { return code_in(root() / "init"); }
#endif

int nvmlShutdown() {
  std::error_code error;
  for (fs::directory_iterator entry(root(), error), end; !error && entry != end; entry.increment(error)) {
    if (fs::exists(entry->path() / "ecc")) std::ofstream(entry->path() / "ecc") << "0";
  }
  std::ofstream(root() / "let-go") << "";
  return 0;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    default:
      return code == 77 ? nullptr : "Unknown Error";
  }
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  while (fs::exists(root() / "hang")) poll(nullptr, 0, 1);
  if (!fs::is_directory(root() / id)) return kNotFound;
  if (const int code = code_in(root() / id / "handle")) return code;
  *device = handle_of(id);
  return 0;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return text_figure(device, "name", name, length);
}

struct FakeMemory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  if (const int code = figure(device, "total", &memory->total)) return code;
  if (const int code = figure(device, "used", &memory->used)) return code;
  memory->free = memory->total - memory->used;
  return 0;
}

struct FakeUtilisation {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, FakeUtilisation* use) {
  use->memory = 0;
  return figure(device, "util", &use->gpu);
}

// The uncorrected ones since the driver was loaded are what is asked for.
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  return type == 1 && counter == 0 ? figure(device, "ecc", count) : kNotSupported;
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* infos) {
  return list(device, "compute", count, infos, 16);
}
int nvmlDeviceGetGraphicsRunningProcesses(void* device, unsigned* count, void* infos) {
  return list(device, "graphics", count, infos, 16);
}
#else
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return text_figure(device, "uuid", uuid, length);
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (const int code = code_in(directory_of(device) / "mig_error")) return code;
  *pending = 0;
  return figure(device, "mig", current);
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  if (const int error = code_in(directory_of(device) / "error")) return error;
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  const std::string id = *static_cast<std::string*>(device) + "/" + std::to_string(index);
  if (!fs::is_directory(root() / id)) return kNotFound;
  *instance = handle_of(id);
  return 0;
}
// berth asks for the status of NVLink alone.
int nvmlDeviceGetP2PStatus(void* one, void* other, int index, int* status) {
  std::ofstream(root() / "links-asked", std::ios::app) << "link\n";
  return index == 2 ? link_figure(one, other, "p2p", status) : kNotSupported;
}
int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  return link_figure(one, other, "level", level);
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = *uncorrected = *pending = 0;
  return figure(device, "remap_failed", failed);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* infos) {
#ifdef FAKE_NVML_V3
  return list(device, "compute", count, infos, 24);
#else
  // As drivers 535.43 to 535.86 had it.
  return list(device, "compute", count, infos, 32);
#endif
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, void* infos) {
  return list(device, "graphics", count, infos, 24);
}
#ifndef FAKE_NVML_V3
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, void* infos) {
  return list(device, "compute", count, infos, 24);
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(void* device, unsigned* count, void* infos) {
  return list(device, "graphics", count, infos, 24);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v2(void* device, unsigned* count, void* infos) {
  return list(device, "mps", count, infos, 24);
}
#endif
#endif

}  // extern "C"
