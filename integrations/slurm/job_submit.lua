-- SPDX-License-Identifier: Apache-2.0
-- An example for Slurm's job_submit/lua: `berthctl rank` names the best host of work with GPUs (docs/clusters.md).
--
-- The job prefers that host (`--prefer`, since Slurm 22.05) and may run on any other. So it does not wait for a
-- host that is taken or drained by the time it starts.
--
-- slurmctld waits for this script, so it does little: one call, at most 2 s. A job stays as it was if anything
-- fails here, if nothing fits, if the job names its nodes or has a preference, and if it wants several nodes.
--
-- Lua starts programs by way of a shell only. Of what users wrote, the command has checked numbers and one
-- checked name. It needs no file, so nobody can make it fail by a full directory.

local SNAPSHOTS = "/run/berth-fleet" -- one berth.snapshot/1 a node, named NODE.json
-- Slurm prefers features. Each node has its own name as one, and Slurm rejects a job that names an unknown one.
-- So this script reads which features there are, as slurmctld does: when it starts.
local CONFIGURATION = { "/etc/slurm/slurm.conf", "/etc/slurm/nodes.conf" }
local FRESH_MINUTES = 2
local COMMAND = "printf %%s '%s' | timeout -k 1 2 find " .. SNAPSHOTS .. " -maxdepth 1 -type f -name '*.json' -mmin -"
   .. FRESH_MINUTES .. " -exec berthctl rank --json --request - --snapshot {} + 2>/dev/null"
local MOST_ANSWER_BYTES = 1048576

local features = {}
for _, name in ipairs(CONFIGURATION) do
   local file = io.open(name)
   for line in file and file:lines() or function() end do
      local list = line:lower():match("^%s*nodename=") and line:match("%s[Ff][Ee][Aa][Tt][Uu][Rr][Ee][Ss]?=(%S+)")
      for feature in (list or ""):gsub('"', ""):gmatch("[^,]+") do features[feature] = true end
   end
   if file then file:close() end
end

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
   if request:find("[^%w_.*:,{}\"/-]") then return nil end -- a shell reads it
   local pipe = io.popen(string.format(COMMAND, request))
   local answer = pipe and pipe:read(MOST_ANSWER_BYTES) or ""
   if pipe then pipe:close() end
   return (answer or ""):match('"fitting":%[{"host":"([%w._-]+)"')
end

-- The preference for the job. Slurm takes it in place of the job's own constraint, so it has that, too. nil for
-- a constraint that is more than a list.
local function preference(job, host)
   if not features[host] then return nil end
   local own = job.features or ""
   if own == "" then return host end
   if own:find("[^%w_.,&-]") then return nil end
   return own .. "&" .. host
end

local function prefer_best_host(job, uid)
   local several = (number(job.min_nodes, 1000000) or 1) > 1
   local chosen = (job.req_nodes or "") ~= "" or (job.prefer or "") ~= ""
   if several or chosen then return end
   local request = request_for(job)
   local host = request and best_host(request)
   local wish = host and preference(job, host)
   if wish then
      job.prefer = wish
      slurm.log_info("berth: a job of user %d prefers %s for its GPUs", uid, host)
   end
end

function slurm_job_submit(job, partitions, uid)
   -- slurmctld rejects a job at an error of this script.
   local good, why = pcall(prefer_best_host, job, uid)
   if not good then slurm.log_info("berth: a job of user %d stays as it was: %s", uid, tostring(why)) end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
