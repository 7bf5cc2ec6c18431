// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type GuestConnection, GuestError } from "@space/spaced-guest";
import { answerJson } from "./json-answer.ts";
import type { OperationContext } from "./operation-context.ts";

const readLimitBytes = 64 * 1024;
const mebibyte = 1024 * 1024;

/** CPU time used up to an instant: two of them give a rate. */
interface CpuSample {
  readonly usedMicroseconds: number;
  readonly atMs: number;
}

/** The last sample of each activation; the entry goes with its activation. */
const samples = new WeakMap<object, CpuSample>();

/** `GET /metrics`: what the guest can see of its own cgroup, or else of the machine. */
export async function reportMetrics(context: OperationContext): Promise<void> {
  const { activation, exchange } = context;
  const { clock } = activation.ports;
  const usage = await activation.pool.use(async (guest) => {
    const disk = await guest.statfs();
    return { disk, memory: await memory(guest), cpu: await cpu(guest) };
  });
  const now: CpuSample = { usedMicroseconds: usage.cpu.usedMicroseconds, atMs: clock.monotonicMs() };
  const before = samples.get(activation);
  samples.set(activation, now);
  const { total, used, cache } = usage.memory;
  answerJson(exchange, 200, {
    ts: Math.floor(clock.wallMs() / 1000),
    cpu_count: usage.cpu.count,
    cpu_used_pct: before === undefined ? 0 : percentUsed(before, now),
    mem_total: total,
    mem_used: used,
    mem_cache: cache,
    mem_total_mib: Math.floor(total / mebibyte),
    mem_used_mib: Math.floor(used / mebibyte),
    disk_used: usage.disk.totalBytes - usage.disk.availableBytes,
    disk_total: usage.disk.totalBytes,
  });
}

function percentUsed(before: CpuSample, now: CpuSample): number {
  const elapsedMs = now.atMs - before.atMs;
  if (elapsedMs <= 0) return 0;
  const percent = (now.usedMicroseconds - before.usedMicroseconds) / (elapsedMs * 10);
  return Math.max(0, Math.round(percent * 100) / 100);
}

async function memory(guest: GuestConnection): Promise<{ total: number; used: number; cache: number }> {
  const info = await read(guest, "/proc/meminfo");
  const ofMachine = kibibytes(info, "MemTotal");
  const limit = Number(await read(guest, "/sys/fs/cgroup/memory.max"));
  const total = Number.isSafeInteger(limit) && limit > 0 ? Math.min(limit, ofMachine || limit) : ofMachine;
  const stat = await read(guest, "/sys/fs/cgroup/memory.stat");
  const current = Number(await read(guest, "/sys/fs/cgroup/memory.current"));
  if (stat !== "" && Number.isSafeInteger(current) && current > 0) {
    const cache = field(stat, /^file (\d+)$/m);
    return { total, used: Math.max(0, current - cache), cache };
  }
  return { total, used: ofMachine - kibibytes(info, "MemAvailable"), cache: kibibytes(info, "Cached") };
}

async function cpu(guest: GuestConnection): Promise<{ count: number; usedMicroseconds: number }> {
  const stat = await read(guest, "/proc/stat");
  const processors = stat.match(/^cpu\d+ /gm)?.length ?? 1;
  const [quota = "max", period = "100000"] = (await read(guest, "/sys/fs/cgroup/cpu.max")).trim().split(" ");
  const share = Number(quota) / Number(period);
  const count = Number.isFinite(share) && share > 0 ? Math.min(Math.ceil(share), processors) : processors;
  const own = field(await read(guest, "/sys/fs/cgroup/cpu.stat"), /^usage_usec (\d+)$/m);
  if (own > 0) return { count, usedMicroseconds: own };
  const ticks =
    /^cpu +(\d+) (\d+) (\d+) /m
      .exec(stat)
      ?.slice(1)
      .reduce((sum, text) => sum + Number(text), 0) ?? 0;
  return { count, usedMicroseconds: ticks * 10_000 };
}

function field(text: string, form: RegExp): number {
  return Number(form.exec(text)?.[1] ?? 0);
}

function kibibytes(info: string, name: string): number {
  return field(info, new RegExp(`^${name}: +(\\d+) kB$`, "m")) * 1024;
}

async function read(guest: GuestConnection, path: string): Promise<string> {
  try {
    return (await guest.readFile(path, readLimitBytes)).toString("utf8");
  } catch (error) {
    if (error instanceof GuestError) return ""; // not there in this guest
    throw error;
  }
}
