// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace berth::spark::test {

// A /proc of a few processes, in a temporary directory.
class FakeProc {
 public:
  FakeProc() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-proc-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = name;
    std::filesystem::create_directories(root_ / "self" / "ns");
    std::filesystem::create_symlink("net:[1]", root_ / "self" / "ns" / "net");
  }
  ~FakeProc() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  const std::filesystem::path& root() const { return root_; }

  void add(int pid, const std::vector<std::string>& arguments, const std::string& cgroup,
           std::uint64_t started = 100, int parent = 1) const {
    std::string line;
    for (const std::string& argument : arguments) line += argument + '\0';
    write(pid, "cmdline", line);
    write(pid, "stat",
          std::to_string(pid) + " (java (x) y) S " + std::to_string(parent) +
              " 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " + std::to_string(started) + " 20 21\n");
    write(pid, "cgroup", "1:cpu:/elsewhere\n0::/" + cgroup + "\n");
    set_user(pid, 1000);
    std::filesystem::create_directories(root_ / std::to_string(pid) / "ns");
    std::filesystem::create_directories(root_ / std::to_string(pid) / "fd");
    link(pid, "ns/net", "net:[1]");
  }
  // A process of no interest.
  void add_plain(int pid, const std::string& name, const std::string& cgroup, int parent = 1,
                 char state = 'S', int threads = 1) const {
    write(pid, "cmdline", name + '\0');
    write(pid, "stat",
          std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) +
              " 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 " + std::to_string(threads) + " 18 100 20 21\n");
    write(pid, "cgroup", "0::/" + cgroup + "\n");
  }
  void set_user(int pid, int user) const {
    const std::string same = "\t" + std::to_string(user);
    write(pid, "status",
          "Name:\tjava\nPid:\t" + std::to_string(pid) + "\nUid:\t7" + same + same + same + "\n");
  }
  // Its pid in each PID namespace, from the outermost one on.
  void set_namespaces(int pid, const std::string& pids) const {
    write(pid, "status", "Name:\tx\nNStgid:\t" + pids + "\nNSpid:\t" + pids + "\nNSpgid:\t1\n");
  }
  void remove(int pid) const { std::filesystem::remove_all(root_ / std::to_string(pid)); }
  // Makes the process listen at an address as in /proc/net/tcp, "0100007F:0FC8".
  void listen(int pid, int inode, const std::string& local, const std::string& state = "0A",
              const std::string& table = "tcp") const {
    link(pid, "fd/" + std::to_string(inode), "socket:[" + std::to_string(inode) + "]");
    add_socket(std::to_string(pid), inode, local, 1000, state, table);
    add_socket("self", inode, local, 1000, state, table);
  }
  // Adds a socket to the table near `process`, whichever process holds it.
  void add_socket(const std::string& process, int inode, const std::string& local, int user,
                  const std::string& state = "0A", const std::string& table = "tcp") const {
    const auto file = root_ / process / "net" / table;
    std::filesystem::create_directories(file.parent_path());
    const bool fresh = !std::filesystem::exists(file);
    std::ofstream stream(file, std::ios::app);
    if (fresh)
      stream << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
                "inode\n";
    stream << "   0: " << local << " 00000000:0000 " << state << " 00000000:00000000 00:00000000 00000000  "
           << user << "        0 " << inode << " 1 0000000000000000 100 0 0 10 0\n";
  }
  void link(int pid, const std::string& name, const std::string& target) const {
    std::error_code ignored;
    std::filesystem::remove(root_ / std::to_string(pid) / name, ignored);
    std::filesystem::create_symlink(target, root_ / std::to_string(pid) / name);
  }
  void write(int pid, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(root_ / std::to_string(pid));
    std::ofstream(root_ / std::to_string(pid) / file, std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::filesystem::path root_;
};

// Command lines as clusters have them, shortened where nothing matters.
inline std::vector<std::string> standalone_executor(const std::string& app, const std::string& executor) {
  return {"/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
          "-cp",
          "/opt/spark/conf/:/opt/spark/jars/*",
          "-Xmx512M",
          "-Dspark.driver.port=35121",
          "org.apache.spark.executor.CoarseGrainedExecutorBackend",
          "--driver-url",
          "spark://CoarseGrainedScheduler@127.0.0.1:35121",
          "--executor-id",
          executor,
          "--hostname",
          "127.0.0.1",
          "--cores",
          "1",
          "--app-id",
          app,
          "--worker-url",
          "spark://Worker@127.0.0.1:40001"};
}
inline std::vector<std::string> client_driver() {
  return {"java",
          "-cp",
          "/opt/spark/jars/*",
          "-Xmx1g",
          "org.apache.spark.deploy.SparkSubmit",
          "--master",
          "spark://127.0.0.1:7077",
          "pyspark-shell"};
}
inline std::vector<std::string> worker() {
  return {"/opt/java/bin/java",
          "-cp",
          "/opt/spark/jars/*",
          "org.apache.spark.deploy.worker.Worker",
          "--cores",
          "1",
          "spark://127.0.0.1:7077"};
}

}  // namespace berth::spark::test
