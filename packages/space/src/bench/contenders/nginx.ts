// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { portOf } from "../../host/mesh-sockets.ts";
import { servedFile } from "../contender.ts";
import { listProcesses } from "../process-tree.ts";
import { UnsoundRun } from "../unsound.ts";

const readyLimitMs = 10_000;
const lookEveryMs = 20;

/** An nginx of the run's own, with one worker process. */
export class Nginx {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #running = true;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#running = false;
        resolve();
      };
      child.once("exit", end);
      child.once("error", end);
    });
  }

  /** A plain reverse proxy: a loopback port before each of the Unix sockets. */
  static async proxy(folder: string, sockets: readonly string[]): Promise<{ nginx: Nginx; ports: number[] }> {
    const ports: number[] = [];
    for (const _ of sockets) ports.push(await freePort());
    const servers = sockets.map(
      (
        socket,
        at,
      ) => `  upstream to${at} { server unix:${socket}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${ports[at]};
    location / { proxy_pass http://to${at}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }`,
    );
    const nginx = await Nginx.#start(join(folder, "nginx-proxy"), servers.join("\n"));
    await nginx.#listening(() => Promise.all(ports.map(accepts)).then((all) => all.every(Boolean)));
    return { nginx, ports };
  }

  /** Serves the file itself, whatever is asked for, on a Unix socket. */
  static async files(folder: string): Promise<{ nginx: Nginx; socket: string }> {
    const place = join(folder, "nginx-files");
    mkdirSync(place, { mode: 0o755 });
    const socket = join(place, "socket");
    writeFileSync(join(place, "bench.txt"), servedFile.content);
    const server = `  server {
    listen unix:${socket};
    location / { root ${place}; try_files /bench.txt =404; }
  }`;
    const nginx = await Nginx.#start(place, server);
    await nginx.#listening(() => Promise.resolve(existsSync(socket)));
    return { nginx, socket };
  }

  static async #start(place: string, servers: string): Promise<Nginx> {
    mkdirSync(place, { recursive: true, mode: 0o755 });
    const config = join(place, "nginx.conf");
    writeFileSync(config, nginxConfig(place, servers), { mode: 0o600 });
    const args = ["-p", place, "-c", config, "-e", join(place, "error.log")];
    const child = spawn("nginx", args, { stdio: "ignore", detached: true });
    return new Nginx(child);
  }

  /** Of the process that serves. */
  get workerPid(): number {
    return listProcesses().find(({ parent }) => parent === this.#child.pid)?.pid ?? 0;
  }

  mustRun(): void {
    if (!this.#running) throw new UnsoundRun("nginx ended");
  }

  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#child.kill("SIGTERM");
    const late = setTimeout(() => this.#child.kill("SIGKILL"), readyLimitMs);
    await this.#ended;
    clearTimeout(late);
  }

  async #listening(listens: () => Promise<boolean>): Promise<void> {
    for (let waitedMs = 0; waitedMs < readyLimitMs; waitedMs += lookEveryMs) {
      this.mustRun();
      if (await listens()) return;
      await pause(lookEveryMs);
    }
    await this.stop();
    throw new UnsoundRun("nginx did not listen");
  }
}

function nginxConfig(place: string, servers: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
user nobody nogroup;
worker_processes 1;
pid ${place}/pid;
error_log ${place}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
${temporary.map((name) => `  ${name}_temp_path ${place}/${name};`).join("\n")}
${servers}
}
`;
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function accepts(port: number): Promise<boolean> {
  try {
    await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(readyLimitMs) });
    return true;
  } catch {
    return false; // not yet
  }
}
