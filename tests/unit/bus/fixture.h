// SPDX-License-Identifier: Apache-2.0
// A service on a private bus, served by the test's thread while clients call from threads of their own.
#pragma once

#include "bus/compat.h"
#include "bus/names.h"
#include "daemon/serve/bus_service.h"
#include "fake_control.h"
#include "private_bus.h"
#include "tests/patience.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <authority_adaptor.h>
#include <gtest/gtest.h>
#include <systemd/sd-event.h>

namespace berth::test {

inline constexpr uid_t kNobody = 65534;
inline constexpr const char* kManagerInterface = "org.berth.Node1.Manager";
inline constexpr const char* kWorkloadInterface = "org.berth.Node1.Workload";

// The outcome of a call.
struct Outcome {
  std::string error_name;  // empty where it succeeded
  std::string text;        // the reply, or the error's message
};

// Gives the calling thread alone another user id, for good.
void become(uid_t uid);

// A client with a connection of its own; for one thread.
class Client {
 public:
  Client();
  // A method that takes `arguments` and gives nothing or one string.
  template <typename... Arguments>
  Outcome change(const char* method, const Arguments&... arguments) {
    return call(method, false, arguments...);
  }
  template <typename... Arguments>
  Outcome change_interactively(const char* method, const Arguments&... arguments) {
    return call(method, true, arguments...);
  }
  std::string get(const char* method);
  std::unique_ptr<sdbus::IProxy> proxy(const std::string& path);
  sdbus::IConnection& connection() { return *connection_; }
  // Handles what arrives until `enough`; false after kPatience.
  bool pump(const std::function<bool()>& enough);

 private:
  template <typename... Arguments>
  Outcome call(const char* method, bool interactive, const Arguments&... arguments) {
    try {
      auto manager = proxy(bus::kManagerPath);
      auto message =
          manager->createMethodCall(bus::InterfaceName{kManagerInterface}, bus::MethodName{method});
      (void)(message << ... << arguments);
      if (interactive) bus::allow_interaction(message);
      auto reply = manager->callMethod(message);
      std::string text;
      if (!reply.isEmpty()) reply >> text;
      return {"", text};
    } catch (const sdbus::Error& error) {
      return {error.getName(), error.getMessage()};
    }
  }

  std::unique_ptr<sdbus::IConnection> connection_;
};

// Stands in for polkit; serves from a thread of its own.
class FakePolkit final : public sdbus::AdaptorInterfaces<org::freedesktop::PolicyKit1::Authority_adaptor> {
 public:
  enum class Answer { yes, no, challenge, never };
  struct Question {
    std::string subject_kind;
    std::string subject_name;
    std::string action;
    std::uint32_t flags = 0;
  };

  static std::unique_ptr<FakePolkit> start(Answer answer);
  ~FakePolkit();
  std::vector<Question> questions() const;
  // Answers those left open.
  void release(bool authorised);

 private:
  using Reply = sdbus::Result<sdbus::Struct<bool, bool, std::map<std::string, std::string>>>;
  FakePolkit(std::unique_ptr<sdbus::IConnection> connection, Answer answer);
  void serve();
  void CheckAuthorization(Reply&& reply,
                          sdbus::Struct<std::string, std::map<std::string, sdbus::Variant>> subject,
                          std::string action_id, std::map<std::string, std::string> details,
                          std::uint32_t flags, std::string cancellation_id) override;

  std::shared_ptr<sdbus::IConnection> connection_;
  const Answer answer_;
  mutable std::mutex mutex_;
  std::vector<Question> questions_;
  std::vector<Reply> open_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

class BusServiceTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Serves until `client`, run in a thread, has returned.
  template <typename F>
  auto with_client(F client) -> decltype(client()) {
    auto result = std::async(std::launch::async, std::move(client));
    serve_until([&] { return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    return result.get();
  }
  template <typename F>
  auto with_client_as(uid_t uid, F client) -> decltype(client()) {
    return with_client([uid, client = std::move(client)] {
      become(uid);
      return client();
    });
  }
  void serve_until(const std::function<bool()>& enough);
  // Serves what there is to serve just now.
  void settle();
  // Whether a message arrives that is not served.
  bool left_unserved() const;

  // Begins to serve, and waits for the outcome.
  void start_service();
  // Why a second service, started and served by the calling thread, has no bus; "" where it has one.
  static std::string problem_of_another();
  static bool root();

  std::unique_ptr<PrivateBus> bus_;
  sd_event* event_ = nullptr;
  FakeControl control_;
  std::unique_ptr<daemon::BusService> service_;
};

}  // namespace berth::test
