// SPDX-License-Identifier: Apache-2.0
#include "spark/process.h"

#include "tests/unit/spark/fake_proc.h"

#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using test::FakeProc;

Recognised service(const std::string& name) {
  return {.kind = ProcessKind::service, .name = name, .app = "", .executor = "", .driver = ""};
}
Recognised driver(const std::string& name) {
  return {.kind = ProcessKind::driver, .name = name, .app = "", .executor = "", .driver = ""};
}
Recognised executor(const std::string& app, const std::string& id,
                    const std::string& name = "CoarseGrainedExecutorBackend",
                    const std::string& driver = "127.0.0.1:35121") {
  return {.kind = ProcessKind::executor, .name = name, .app = app, .executor = id, .driver = driver};
}

TEST(Recognise, AStandaloneExecutor) {
  EXPECT_EQ(recognise(test::standalone_executor("app-20261121-0001", "3")),
            executor("app-20261121-0001", "3"));
}

TEST(Recognise, AnExecutorOnYarn) {
  EXPECT_EQ(
      recognise({"/usr/lib/jvm/java/bin/java", "-server", "-Xmx2048m", "-Djava.io.tmpdir=/data/tmp",
                 "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend", "--driver-url",
                 "spark://CoarseGrainedScheduler@node-1:40001", "--executor-id", "12", "--hostname", "node-2",
                 "--cores", "4", "--app-id", "application_1790000000000_0042", "--resourceProfileId", "0"}),
      executor("application_1790000000000_0042", "12", "YarnCoarseGrainedExecutorBackend", "node-1:40001"));
}

TEST(Recognise, AnExecutorOnKubernetes) {
  EXPECT_EQ(
      recognise({"/opt/java/openjdk/bin/java", "-Dspark.driver.port=7078", "-Xms1g", "-Xmx1g", "-cp",
                 ":/opt/spark/jars/*:", "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
                 "--driver-url", "spark://CoarseGrainedScheduler@etl-driver-svc.jobs.svc:7078",
                 "--executor-id", "1", "--cores", "1", "--app-id", "spark-f2a1c0", "--hostname", "10.1.2.3",
                 "--podName", "etl-exec-1"}),
      executor("spark-f2a1c0", "1", "KubernetesExecutorBackend", "etl-driver-svc.jobs.svc:7078"));
}

TEST(Recognise, Drivers) {
  EXPECT_EQ(recognise(test::client_driver()), driver("SparkSubmit"));
  EXPECT_EQ(recognise({"java", "-cp", "x", "org.apache.spark.deploy.worker.DriverWrapper",
                       "spark://Worker@h:1", "/w/app.jar", "Main"}),
            driver("DriverWrapper"));
  EXPECT_EQ(recognise({"java", "org.apache.spark.deploy.yarn.ApplicationMaster", "--class", "Main"}),
            driver("ApplicationMaster"));
}

TEST(Recognise, WhatMustOutliveItsExecutors) {
  EXPECT_EQ(recognise(test::worker()), service("Worker"));
  for (const char* name :
       {"deploy.master.Master", "deploy.ExternalShuffleService", "deploy.yarn.ExecutorLauncher"}) {
    const std::string whole = std::string("org.apache.spark.") + name;
    EXPECT_EQ(recognise({"java", "-Xmx1g", whole, "--host", "x"}),
              service(whole.substr(whole.rfind('.') + 1)));
  }
}

TEST(Recognise, ServicesOfOthersThatMustOutliveExecutors) {
  EXPECT_EQ(recognise({"/usr/lib/jvm/java-11/bin/java", "-Dproc_nodemanager", "-Xmx2g",
                       "org.apache.hadoop.yarn.server.nodemanager.NodeManager"}),
            service("YARN's NodeManager"));
  EXPECT_EQ(recognise({"java", "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"}),
            service("YARN's ResourceManager"));
  EXPECT_EQ(recognise({"java", "-cp", "/opt/celeborn/jars/*",
                       "org.apache.celeborn.service.deploy.worker.Worker", "--port", "9097"}),
            service("Celeborn's Worker"));
  EXPECT_EQ(recognise({"java", "org.apache.uniffle.server.ShuffleServer", "--conf", "server.conf"}),
            service("Uniffle's ShuffleServer"));
  EXPECT_FALSE(recognise({"java", "org.apache.hadoop.hdfs.server.datanode.DataNode"}));
}

TEST(Recognise, OnlyAJvmByItsMainClass) {
  EXPECT_FALSE(recognise({}));
  EXPECT_FALSE(recognise({"java"}));
  EXPECT_FALSE(recognise({"java", "-cp"}));
  EXPECT_FALSE(recognise({"java", "-version"}));
  EXPECT_FALSE(recognise({"grep", "org.apache.spark.deploy.SparkSubmit"}));
  // YARN's shell, whose one argument is the whole command.
  EXPECT_FALSE(recognise({"/bin/bash", "-c", "java org.apache.spark.deploy.yarn.ApplicationMaster"}));
  // A class path, or an argument of another program, that is named like one.
  EXPECT_FALSE(recognise({"java", "-cp", "org.apache.spark.deploy.SparkSubmit", "Main"}));
  EXPECT_FALSE(recognise({"java", "Main", "org.apache.spark.deploy.SparkSubmit"}));
}

TEST(Recognise, NoExecutorWithoutItsNames) {
  auto arguments = test::standalone_executor("app", "1");
  arguments.resize(6);
  EXPECT_FALSE(recognise(arguments));
  EXPECT_FALSE(recognise(test::standalone_executor("", "1")));
  EXPECT_FALSE(recognise(test::standalone_executor("app\n", "1")));
  arguments = test::standalone_executor("app", "1");
  arguments.insert(arguments.end(), {"--app-id"});  // the first one counts, and one at the end has no value
  EXPECT_EQ(recognise(arguments), executor("app", "1"));
}

TEST(FindProcesses, TakesThoseOfSparkWithTheirCgroup) {
  FakeProc proc;
  proc.add(20, test::standalone_executor("app-1", "0"), "system.slice/spark-worker.service", 777);
  proc.add(3, test::client_driver(), "user.slice/shell.scope");
  proc.add(100, {"sleep", "9"}, "x");
  proc.write(7, "cmdline", "");  // a kernel thread
  const auto found = find_processes(proc.root());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], (Process{.pid = 3,
                               .started = 100,
                               .cgroup = "user.slice/shell.scope",
                               .user = 1000,
                               .what = driver("SparkSubmit")}));
  EXPECT_EQ(found[1], (Process{.pid = 20,
                               .started = 777,
                               .cgroup = "system.slice/spark-worker.service",
                               .user = 1000,
                               .what = executor("app-1", "0")}));
}

TEST(FindProcesses, LeavesOutWhatCannotBeReadWhole) {
  FakeProc proc;
  proc.add(1, test::client_driver(), "a");
  proc.write(1, "cgroup", "1:cpu:/a\n");  // no v2 tree
  proc.add(2, test::client_driver(), "a");
  proc.write(2, "stat", "2 (java");
  proc.add(3, test::client_driver(), "a");
  std::filesystem::remove(proc.root() / "3" / "stat");
  EXPECT_TRUE(find_processes(proc.root()).empty());
  EXPECT_TRUE(find_processes(proc.root() / "nowhere").empty());
}

TEST(FindProcesses, ReadsNoMoreOfACommandLineThanItNeeds) {
  FakeProc proc;
  auto arguments = test::client_driver();
  arguments.push_back(std::string(3'000'000, 'x'));
  proc.add(1, arguments, "a");
  EXPECT_EQ(find_processes(proc.root()).size(), 1U);
}

TEST(Recognise, AnExecutorWithoutTheAddressOfItsDriver) {
  for (const char* url : {"", "http://h:1", "spark://", "spark://x@"}) {
    auto arguments = test::standalone_executor("app-1", "3");
    arguments[7] = url;
    EXPECT_EQ(recognise(arguments), executor("app-1", "3", "CoarseGrainedExecutorBackend", "")) << url;
  }
  auto arguments = test::standalone_executor("app-1", "3");
  arguments[7] = "spark://" + std::string(300, 'x') + ":1";
  EXPECT_EQ(recognise(arguments)->driver, "");
  arguments[7] = "spark://h:1";
  EXPECT_EQ(recognise(arguments)->driver, "h:1");
}

TEST(Recognise, NamesAreShort) {
  EXPECT_TRUE(recognise(test::standalone_executor(std::string(256, 'a'), "0")));
  EXPECT_FALSE(recognise(test::standalone_executor(std::string(257, 'a'), "0")));
  EXPECT_FALSE(recognise(test::standalone_executor("app-1", std::string(257, '0'))));
}

}  // namespace
}  // namespace berth::spark
