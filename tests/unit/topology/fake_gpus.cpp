// SPDX-License-Identifier: Apache-2.0
#include "fake_gpus.h"

#include "tests/patience.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace berth::test {

namespace fs = std::filesystem;

namespace {

// One for the whole process: threads of former tests may still look there.
const fs::path& nvml_root() {
  static const fs::path root = [] {
    std::string name = (fs::temp_directory_path() / "berth-nvml-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    ::setenv("FAKE_NVML", name.c_str(), 1);
    return fs::path(name);
  }();
  return root;
}

}  // namespace

std::string pci_file(const std::string& id, const std::string& file) {
  return "bus/pci/devices/" + id + "/" + file;
}

void add_pci(const FakeHost& host, const std::string& id, const FakePci& pci) {
  host.remove(pci_file(id));
  host.write(pci_file(id, "class"), pci.pci_class + "\n");
  host.write(pci_file(id, "vendor"), pci.vendor + "\n");
  host.write(pci_file(id, "device"), pci.device + "\n");
  host.write(pci_file(id, "local_cpulist"), pci.local_cpulist + "\n");
  if (pci.render_node) host.write(pci_file(id, "drm/renderD128/dev"), "226:128\n");
  if (!pci.driver.empty())
    fs::create_directory_symlink("../../drivers/" + pci.driver, host.sys() / pci_file(id, "driver"));
}

FakeNvml::FakeNvml() : root_(nvml_root()) { fs::create_directories(root_); }

FakeNvml::~FakeNvml() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void FakeNvml::add(const std::string& id) const {
  write(id + "/name", "NVIDIA H100");
  write(id + "/total", "100");
  write(id + "/used", "80");
  write(id + "/util", "40");
  write(id + "/ecc", "0");
  write(id + "/remap_failed", "0");
  write(id + "/compute", "");
}

void FakeNvml::write(const std::string& path, const std::string& text) const {
  fs::create_directories((root_ / path).parent_path());
  // At once: a reader sees the old or the new.
  const fs::path staged = root_ / ".staged";
  std::ofstream(staged, std::ios::binary) << text;
  fs::rename(staged, root_ / path);
}

void FakeNvml::remove(const std::string& path) const { fs::remove_all(root_ / path); }

bool FakeNvml::has(const std::string& path) const { return fs::exists(root_ / path); }

std::string FakeNvml::read(const std::string& path) const {
  std::ifstream stream(root_ / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool comes_true(const std::function<bool()>& done) { return eventually(done); }

}  // namespace berth::test
