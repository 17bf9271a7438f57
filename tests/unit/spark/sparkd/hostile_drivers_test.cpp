// SPDX-License-Identifier: Apache-2.0
// What a hundred drivers that mean harm cost in memory. They run in a process of their own, so that the
// memory of the tests is that of their reader.
#include "spark/collector.h"
#include "spark/sparkd/http_get.h"
#include "spark/sparkd/interviewer.h"
#include "tests/patience.h"
#include "tests/unit/spark/fake_proc.h"
#include "tests/unit/spark/http_server.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::spark {
namespace {

// The memory of a program under AddressSanitizer is not its own.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif !defined(__has_feature)
constexpr bool kSanitized = false;
#elif __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int kDrivers = 100;
constexpr std::size_t kBody = (std::size_t{8} << 20) - 1024;

// Pieces until the body is full. `piece`: of the n-th one.
std::string filled(const std::string& begin, const std::function<std::string(int)>& piece,
                   const std::string& end, std::size_t most) {
  std::string body = begin;
  for (int i = 0; body.size() < most - 600 - end.size(); ++i) body += (i > 0 ? "," : "") + piece(i);
  return body + end;
}

std::string padded(int number, std::size_t length) {
  std::string text = std::to_string(number);
  return std::string(length - text.size(), 'x') + text;
}

// A stage with more tasks than anybody has, all of which have run.
const char* const kEndlessStage =
    R"([{"status":"COMPLETE","stageId":0,"attemptId":0,"numTasks":100000000,"rddIds":[1,2,3,4,5]}])";

// How one of the drivers answers. Each kind does its worst at another place.
class Liar {
 public:
  explicit Liar(int number)
      : kind_(number % 12), most_(number < 24 ? kBody : kBody / 16), id_("app-" + std::to_string(number)) {}

  // Large answers are made once, whichever driver gives them first.
  const std::string& body(const std::string& path) const {
    static std::mutex mutex;
    static std::map<std::tuple<int, std::size_t, std::string>, std::string> known;
    const std::string api = "/api/v1/applications";
    const std::string key =
        path == api ? path + id_ : path.substr(std::min(path.size(), api.size() + 1 + id_.size()));
    const std::lock_guard lock(mutex);
    const auto found = known.find({kind_, most_, key});
    return found != known.end() ? found->second
                                : known.emplace(std::make_tuple(kind_, most_, key), made(path)).first->second;
  }

 private:
  std::string full(const std::string& begin, const std::function<std::string(int)>& piece,
                   const std::string& end) const {
    return filled(begin, piece, end, most_);
  }
  std::string made(const std::string& path) const {
    const std::string api = "/api/v1/applications";
    const std::string rest = path.substr(std::min(path.size(), api.size() + 1 + id_.size()));
    if (path == api) return applications();
    if (rest == "/environment") return environment();
    if (rest.starts_with("/stages?") || rest == "/stages") return stages();
    if (rest == "/jobs") return jobs();
    if (rest == "/storage/rdd") return cached();
    return tasks(rest);
  }
  std::string applications() const {
    if (kind_ == 0)
      return full(
          "[", [](int) { return "[]"; }, "]");
    if (kind_ == 1) return "[\"" + std::string(most_ - 10, 'x') + "\"]";
    const std::string one = R"({"id":")" + id_ + R"(","attempts":[{"startTimeEpoch":1000,"completed":)";
    if (kind_ == 2)
      return full(
          "[", [&](int) { return one + "true}]}"; }, "," + one + "false}]}]");
    return "[" + one + "false}]}]";
  }
  std::string environment() const {
    if (kind_ == 3)
      return R"({"sparkProperties":[["spark.eventLog.dir",")" + std::string(most_ - 100, 'x') + "\"]]}";
    if (kind_ == 4)
      return full(R"({"sparkProperties":[)", [](int i) { return "[\"" + padded(i, 100) + "\",\"\"]"; }, "]}");
    return R"({"sparkProperties":[["spark.eventLog.enabled","true"],["spark.eventLog.dir","/logs"]]})";
  }
  std::string stages() const {
    if (kind_ == 5)
      return filled(
          "[",
          [](int i) {
            return R"({"status":"COMPLETE","numTasks":9,"stageId":)" + std::to_string(i % 19'999) + "}";
          },
          "]", std::size_t{1} << 20);
    if (kind_ == 6)
      return full(R"([{"status":"ACTIVE","numTasks":9,"stageId":1,"rddIds":[)", [](int) { return "7"; },
                  "]}]");
    return kEndlessStage;
  }
  std::string jobs() const {
    if (kind_ == 7)
      return full(
          "[", [](int i) { return R"({"jobId":1,"stageIds":[)" + std::to_string(i) + "]}"; }, "]");
    if (kind_ == 5)
      return filled(R"([{"jobId":1,"stageIds":[)", [](int i) { return std::to_string(i % 19'999); }, "]}]",
                    100'000);
    return "[]";
  }
  std::string cached() const {
    if (kind_ == 8)
      return full(R"([{"id":1,"numPartitions":100000000,"numCachedPartitions":5,"partitions":[)",
                  [](int i) {
                    return R"({"blockName":"rdd_1_)" + std::to_string(i) + R"(","executors":[")" +
                           padded(i, 256) + "\"]}";
                  },
                  "]}]");
    if (kind_ == 9) {
      return full(
          "[",
          [](int i) {
            return R"({"id":)" + std::to_string(i) + R"(,"numPartitions":1000000,"numCachedPartitions":5})";
          },
          "]");
    }
    return "[]";
  }
  // Always a full page.
  std::string tasks(const std::string& path) const {
    int offset = 0;
    std::sscanf(path.c_str(), "/stages/0/0/taskList?offset=%d", &offset);
    std::string list = "[";
    for (int i = 0; i < 256; ++i) {
      const int task = offset + i;
      const std::string executor = kind_ == 10   ? padded(task, 4000)
                                   : kind_ == 11 ? padded(task % 1000, 256)
                                                 : std::to_string(task % 100);
      list += i > 0 ? "," : "";
      list += R"({"status":"SUCCESS","duration":7,"index":)" + std::to_string(task) + R"(,"executorId":")" +
              executor + "\"}";
    }
    return list + "]";
  }

  int kind_;
  std::size_t most_;  // of an answer: a few drivers show the peak, and the others their number
  std::string id_;
};

// A process with the servers of all drivers.
class Liars {
 public:
  Liars() {
    std::array<int, 2> ports{};
    std::array<int, 2> end{};
    if (pipe2(ports.data(), O_CLOEXEC) != 0 || pipe2(end.data(), O_CLOEXEC) != 0 || (pid_ = fork()) < 0)
      throw std::runtime_error("cannot start the drivers");
    if (pid_ == 0) {
      close(ports[0]);
      close(end[1]);
      serve(ports[1], end[0]);
      _exit(0);
    }
    close(ports[1]);
    close(end[0]);
    end_ = end[1];
    for (auto& port : ports_)
      if (read(ports[0], &port, sizeof(port)) != sizeof(port))
        throw std::runtime_error("a driver did not start");
    close(ports[0]);
  }
  ~Liars() {
    close(end_);
    waitpid(pid_, nullptr, 0);
  }
  Liars(const Liars&) = delete;
  Liars& operator=(const Liars&) = delete;

  std::uint16_t port(int number) const { return ports_.at(static_cast<std::size_t>(number)); }

 private:
  static void serve(int ports, int end) {
    std::vector<std::unique_ptr<test::HttpServer>> servers;
    for (int i = 0; i < kDrivers; ++i) {
      servers.push_back(std::make_unique<test::HttpServer>(
          [liar = Liar(i)](const std::string& path) { return test::answer(liar.body(path)); }));
      const std::uint16_t port = servers.back()->port();
      if (write(ports, &port, sizeof(port)) != sizeof(port)) return;
    }
    char ignored = 0;
    while (read(end, &ignored, 1) > 0) {
    }
  }

  pid_t pid_ = 0;
  int end_ = -1;
  std::array<std::uint16_t, kDrivers> ports_{};
};

// Of /proc/self/status, in bytes.
std::size_t status_bytes(const std::string& name) {
  std::ifstream stream("/proc/self/status");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(name + ":")) return std::stoul(line.substr(name.size() + 1)) * 1024;
  return 0;
}

bool reset_peak() {
  std::ofstream stream("/proc/self/clear_refs");
  return static_cast<bool>(stream << "5" << std::flush);
}

std::string kernel_address(std::uint16_t port) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0100007F:%04X", static_cast<unsigned>(port));
  return text.data();
}

// As EventLogFile::read wants them: a log that is one line without end, and one of very many stages.
std::string log_name(const std::filesystem::path& directory, bool endless) {
  const std::string name = (directory / (endless ? "endless" : "stages")).string();
  std::ofstream stream(name, std::ios::binary);
  if (endless) {
    stream << R"({"Event":"SparkListenerJobStart","Stage Infos":[)";
    const std::string part(1000, '[');
    for (int i = 0; i < 4100; ++i) stream << part;
  } else {
    for (int i = 0; i < 200'000; ++i)
      stream << R"({"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":)" << i
             << R"(,"Parent IDs":[0]}})" << '\n';
  }
  return name;
}

TEST(HostileDrivers, TakeLittleMemoryWhateverTheirNumber) {
  if (std::endian::native != std::endian::little)
    GTEST_SKIP() << "the tables here are of a little-endian host";
  if (kSanitized) GTEST_SKIP() << "the unit tests without sanitizers measure the memory";
  const Liars liars;
  const test::FakeProc proc;
  std::map<std::uint16_t, int> asked;
  for (int i = 0; i < kDrivers; ++i) {
    const int pid = 1000 + i;
    proc.add(pid, test::client_driver(), "driver-" + std::to_string(i) + ".scope");
    proc.listen(pid, pid, kernel_address(liars.port(i)));
    proc.set_user(pid, i % 2 == 0 ? static_cast<int>(geteuid()) : 2000 + i % 7);
    asked[liars.port(i)] = 0;
  }
  const std::array logs{log_name(proc.root(), true), log_name(proc.root(), false)};
  int opened = 0;
  const auto open_log = [&](const ProcessId&, const std::filesystem::path&) -> model::Result<LogFile> {
    os::FileDescriptor file(
        open(logs.at(static_cast<std::size_t>(++opened % 2)).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return model::fail(model::Error::from_errno(errno, "log"));
    return LogFile{.file = std::move(file), .parts = {}};
  };
  if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset the peak of memory";
  const std::size_t before = status_bytes("VmRSS");

  HttpClient client;
  // In one process: the memory of both together.
  Interviewer interviewer(
      [&](const std::string& url) {
        unsigned port = 0;
        std::sscanf(url.c_str(), "http://127.0.0.1:%u", &port);
        ++asked[static_cast<std::uint16_t>(port)];
        return client.get(url);
      },
      open_log);
  Collector collector(proc.root(), [&](const Question& question) -> model::Result<Answer> {
    return interviewer.ask(question);
  });
  // As berthd has them: the newest observation, the one before it, and the snapshot's copy.
  std::shared_ptr<const Observation> latest;
  std::vector<model::SparkApp> snapshot;
  std::set<std::string> problems;
  double now = 1'790'000'000;
  // Until each was asked, and there was no more memory for some.
  const auto ends = std::chrono::steady_clock::now() + 10 * berth::test::kPatience;
  const auto is_done = [&] {
    const bool all =
        std::all_of(asked.begin(), asked.end(), [](const auto& item) { return item.second > 0; });
    return all && std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
             return problem.find("MiB for all drivers") != std::string::npos;
           });
  };
  while (!is_done() && std::chrono::steady_clock::now() < ends) {
    latest = std::make_shared<const Observation>(collector.collect(now += 2));
    snapshot = latest->apps;
    for (const std::string& problem : latest->problems) problems.insert(problem);
  }
  const std::size_t grown = status_bytes("VmHWM") - before;
  std::printf("the peak of memory grew by %.1f MiB\n", static_cast<double>(grown) / (1 << 20));
  for (const auto& [port, times] : asked) EXPECT_GT(times, 0) << "each is asked";
  EXPECT_TRUE(is_done()) << "the limit was met";
  EXPECT_LT(grown, std::size_t{64} << 20);
}

}  // namespace
}  // namespace berth::spark
