-- SPDX-License-Identifier: Apache-2.0
-- An example for Slurm's job_submit/lua: `berthctl rank` chooses the host of work with GPUs (docs/clusters.md).
--
-- slurmctld waits for this script, so it does little: one call, at most 2 s. A job stays as it was if the
-- call fails, if nothing fits, if the job names its nodes, and if it wants several nodes.
--
-- Lua starts programs by way of a shell only. So the command below is a constant: what users wrote reaches
-- berthctl in a file, as checked numbers and one checked name.

local SNAPSHOTS = "/run/berth-fleet" -- one berth.snapshot/1 a node, named NODE.json
local FRESH_MINUTES = 2
local COMMAND = "find " .. SNAPSHOTS .. " -maxdepth 1 -type f -name '*.json' -mmin -" .. FRESH_MINUTES
   .. " -print0 2>/dev/null | xargs -0 -r -x -s 1500000"
   .. " timeout 2 berthctl rank --json --request %s --snapshot 2>/dev/null"
local MOST_ANSWER_BYTES = 1048576

-- Slurm's way to say that a number is not set.
local function number(value, highest)
   if type(value) ~= "number" or value < 0 or value > highest then return nil end
   return math.floor(value)
end

-- "gres/gpu:a100:2", "gres:gpu:2", "gpu:2", "gpu": the number of GPUs, and the model if there is one.
local function gpus_of(text)
   if type(text) ~= "string" or #text > 1024 then return nil end
   for entry in text:gmatch("[^,]+") do
      local rest = entry:gsub("^gres[:/]", ""):match("^gpu(.*)$")
      if rest then
         local model, count = rest:match("^[:=]([%w_.-]+)[:=](%d+)$")
         if not model then count = rest:match("^[:=](%d+)$") or (rest == "" and "1") end
         count = number(tonumber(count), 1024)
         if count and count > 0 then return count, model end
         return nil
      end
   end
   return nil
end

local function request_for(job)
   local count, model = gpus_of(job.tres_per_node or job.gres)
   if not count then count, model = gpus_of(job.tres_per_job) end
   if not count then return nil end
   local cpus = number(job.min_cpus, 65536) or 1
   local request = '{"schema":"berth.request/1","id":"job","class":"best-effort","vcpus":' .. math.max(cpus, 1)
      .. ',"gpus":' .. count
   if model then request = request .. ',"gpu_model":"*' .. model .. '*"' end
   return request .. "}"
end

-- The first host of the answer's "fitting": the best one. nil where nothing fits.
local function best_host(request)
   local name = os.tmpname() -- made by the C library, so it has nothing that a shell reads
   local file = io.open(name, "w")
   if not file then return nil end
   file:write(request)
   file:close()
   local pipe = io.popen(string.format(COMMAND, name))
   local answer = pipe and pipe:read(MOST_ANSWER_BYTES) or ""
   if pipe then pipe:close() end
   os.remove(name)
   return (answer or ""):match('"fitting":%[{"host":"([%w._-]+)"')
end

function slurm_job_submit(job, partitions, uid)
   local several = (number(job.min_nodes, 1000000) or 1) > 1
   if several or (job.req_nodes and job.req_nodes ~= "") then return slurm.SUCCESS end
   local request = request_for(job)
   local host = request and best_host(request)
   if host then
      job.req_nodes = host
      slurm.log_info("berth: a job of user %d gets %s for its GPUs", uid, host)
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
