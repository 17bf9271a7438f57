// SPDX-License-Identifier: Apache-2.0
// The kernel's files about AMD's and Intel's GPUs, and about their users.
#include "fake_gpus.h"
#include "topology/gpus.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::topology {
namespace {

namespace fs = std::filesystem;

constexpr const char* kId = "0000:03:00.0";
const PciGpu kAmd{.id = kId, .vendor = GpuVendor::amd, .pci_id = "1002:740f", .driver = "amdgpu", .numa = 0};

constexpr const char* kAtWork =
    "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"
    "drm-memory-vram:\t20 KiB\ndrm-engine-gfx:\t0 ns\n";

class Drm : public testing::Test {
 protected:
  void SetUp() override { test::add_pci(host, kId, test::amd_gpu()); }
  void put(const std::string& file, const std::string& text) { host.write(test::pci_file(kId, file), text); }
  // A process with one open file.
  void add_process(int pid, const std::string& opened, const std::string& fdinfo) {
    const fs::path process = host.proc() / std::to_string(pid);
    fs::create_directories(process / "fd");
    fs::create_directories(process / "fdinfo");
    fs::create_symlink(opened, process / "fd/5");
    std::ofstream(process / "fdinfo/5") << fdinfo;
  }
  GpuReadings read() const { return drm_reader(host.sys(), host.proc())({kAmd}); }
  GpuReading only() const { return read().gpus.at(kId); }
  test::FakeHost host;
};

TEST_F(Drm, AmdsFilesAreRead) {
  put("mem_info_vram_total", "68702699520\n");
  put("mem_info_vram_used", "10485760\n");
  put("gpu_busy_percent", "37\n");
  put("product_name", "AMD Instinct MI210\n");
  put("ras/umc_err_count", "ue: 0\nce: 12\n");
  const auto reading = only();
  EXPECT_EQ(reading.model, "AMD Instinct MI210");
  EXPECT_EQ(reading.memory_bytes, 68702699520U);
  EXPECT_EQ(reading.memory_used_bytes, 10485760U);
  EXPECT_EQ(reading.utilisation, 0.37);
  EXPECT_EQ(reading.problem, std::nullopt);
  EXPECT_TRUE(reading.all_pids);
  EXPECT_TRUE(reading.pids.empty());
}

TEST_F(Drm, WhatHasNoFileIsNotKnown) {
  const auto reading = only();
  EXPECT_EQ(reading.model, std::nullopt);
  EXPECT_EQ(reading.memory_bytes, std::nullopt);
  EXPECT_EQ(reading.memory_used_bytes, std::nullopt);
  EXPECT_EQ(reading.utilisation, std::nullopt);
  EXPECT_EQ(reading.problem, std::nullopt);
}

TEST_F(Drm, DamagedFilesAreNotKnown) {
  for (const char* text :
       {"", "\n", "-1\n", "1e3\n", "12 MiB\n", "99999999999999999999\n", "9007199254740993\n"}) {
    put("mem_info_vram_total", text);
    EXPECT_EQ(only().memory_bytes, std::nullopt) << text;
  }
  put("mem_info_vram_total", "10\n");
  put("mem_info_vram_used", "11\n");
  put("gpu_busy_percent", "101\n");
  EXPECT_EQ(only().memory_bytes, 10U);
  EXPECT_EQ(only().memory_used_bytes, std::nullopt);
  EXPECT_EQ(only().utilisation, std::nullopt);
}

TEST_F(Drm, OneThatSleepsIsNotWokenForItsLoad) {
  put("gpu_busy_percent", "37\n");
  put("power/runtime_status", "suspended\n");
  EXPECT_EQ(only().utilisation, std::nullopt);
  put("power/runtime_status", "active\n");
  EXPECT_EQ(only().utilisation, 0.37);
}

TEST_F(Drm, ErrorsThatWereNotCorrectedMakeItUnhealthy) {
  put("ras/gfx_err_count", "ue: 0\nce: 0\n");
  put("ras/umc_err_count", "ue: 3\nce: 0\n");
  put("ras/features", "feature mask: 0x5\n");
  EXPECT_EQ(only().problem, "amdgpu: errors of its block umc that could not be corrected");
}

TEST_F(Drm, AProcessAtWorkIsFoundByItsOpenFiles) {
  add_process(41, "/dev/dri/renderD128", kAtWork);
  add_process(42, "/dev/null", kAtWork);
  add_process(43, "/dev/dri/renderD129", "drm-driver:\txe\ndrm-pdev:\t0000:04:00.0\n");
  fs::create_directories(host.proc() / "self/fd");
  EXPECT_EQ(only().pids, std::vector<pid_t>{41});
  EXPECT_EQ(read().missing, std::nullopt);
}

TEST_F(Drm, ProcessesThatCannotBeLookedAtAreSaidToBeThere) {
  add_process(41, "/dev/dri/renderD128", kAtWork);
  fs::create_directories(host.proc() / "42/fd");
  fs::permissions(host.proc() / "42/fd", fs::perms::none);
  fs::permissions(host.root(), fs::perms(0755));
  // From root nothing is hidden.
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto readings = read();
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(host.proc() / "42/fd", fs::perms::owner_all);
  EXPECT_FALSE(readings.gpus.at(kId).all_pids);
  EXPECT_EQ(readings.gpus.at(kId).pids, std::vector<pid_t>{41});
  ASSERT_TRUE(readings.missing);
  EXPECT_NE(readings.missing->find("CAP_SYS_PTRACE"), std::string::npos);
}

TEST_F(Drm, WhereTheFirstProcessIsHiddenOnlyOnesOwnAreLookedAt) {
  add_process(1, "/dev/null", "");
  add_process(41, "/dev/dri/renderD128", kAtWork);
  add_process(42, "/dev/dri/renderD128", kAtWork);
  fs::permissions(host.proc() / "1/fd", fs::perms::none);
  fs::permissions(host.root(), fs::perms(0755));
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown((host.proc() / "41").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto readings = read();
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(host.proc() / "1/fd", fs::perms::owner_all);
  EXPECT_FALSE(readings.gpus.at(kId).all_pids);
  // Those of 42 could be read, but it is another user's where there are two.
  EXPECT_EQ(readings.gpus.at(kId).pids, is_root ? std::vector<pid_t>{41} : (std::vector<pid_t>{41, 42}));
  EXPECT_TRUE(readings.missing);
}

TEST_F(Drm, AProcessThatComputesIsFoundByAmdkfd) {
  host.write("class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
  host.write("class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\nlocation_id 0\n");
  host.write("class/kfd/kfd/topology/nodes/1/gpu_id", "51764\n");
  host.write("class/kfd/kfd/topology/nodes/1/properties", "simd_count 440\nlocation_id 768\ndomain 0\n");
  host.write("class/kfd/kfd/proc/77/vram_51764", "4096\n");
  host.write("class/kfd/kfd/proc/78/vram_51764", "0\n");
  host.write("class/kfd/kfd/proc/x/vram_51764", "4096\n");
  EXPECT_EQ(only().pids, std::vector<pid_t>{77});
}

TEST(GpuAtWork, OneThatOnlyOpenedItUsesNothing) {
  EXPECT_EQ(gpu_at_work(kAtWork), "0000:03:00.0");
  EXPECT_EQ(gpu_at_work("drm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t0 KiB\ndrm-engine-gfx:\t0 ns\n"
                        "drm-engine-capacity-gfx:\t2\n"),
            "");
  EXPECT_EQ(gpu_at_work("drm-pdev:\t0000:03:00.0\ndrm-engine-render:\t812 ns\n"), "0000:03:00.0");
  EXPECT_EQ(gpu_at_work("drm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t12\ndrm-total-cycles-rcs:\t99\n"),
            "0000:03:00.0");
  EXPECT_EQ(gpu_at_work("drm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t99\n"), "");
  // A driver without figures: an open client is all there is to go by.
  EXPECT_EQ(gpu_at_work("drm-driver:\tast\ndrm-pdev:\t0000:03:00.0\n"), "0000:03:00.0");
}

TEST(GpuAtWork, NonsenseIsNobodys) {
  for (const char* text :
       {"", ":", "drm-pdev", "drm-pdev:", "\n\n\n", "drm-engine-gfx:\t5 ns\n", "pos: 0\nflags: 02"}) {
    EXPECT_EQ(gpu_at_work(text), "") << text;
  }
}

}  // namespace
}  // namespace berth::topology
