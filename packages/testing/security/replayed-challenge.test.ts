// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Written as a process of the worker's own host that listens for a guest and answers its challenge with what the guest
// itself has answered before.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { GuestConnection, GuestConnectionError, nativeLauncherPath } from "@space/spaced-guest";
import { faultLanded } from "../src/fault-landed.ts";
import { GuestHost } from "../src/guest-host.ts";
import { Impostor } from "../src/impostor.ts";
import { needsRoot } from "../src/needs-root.ts";

const skip = needsRoot || (existsSync(nativeLauncherPath) ? false : "the native launcher is not built");

test("R-19: a guest's answer to a challenge is worth nothing the next time", { skip }, async (context) => {
  const host = await GuestHost.open("native");
  context.after(() => host.close());
  const guest = await host.start();
  const answers: Buffer[] = [];
  const challenges = new Set<string>();
  const behind = join(host.folder, "behind");
  {
    await using _between = await Impostor.at(behind, (socket) => {
      const real = connect(guest.evidence.socketPath).on("error", () => undefined);
      real.on("data", (chunk: Buffer) => answers.push(chunk));
      socket.on("data", (chunk: Buffer) => challenges.add(chunk.toString("hex")));
      socket.pipe(real).pipe(socket);
    });
    const whole = await GuestConnection.connect(behind, guest.credentials);
    assert.equal(whole.usable, true, "passed on as it is, the answer is the guest's");
    whole.destroy();
  }
  let replayed = 0;
  const path = join(host.folder, "replay");
  await using _replay = await Impostor.at(path, (socket) => {
    socket.once("data", (chunk: Buffer) => {
      challenges.add(chunk.toString("hex"));
      socket.write(Buffer.concat(answers));
      replayed += 1;
    });
  });
  for (let round = 0; round < 3; round += 1) {
    await assert.rejects(
      GuestConnection.connect(path, guest.credentials),
      (error) => error instanceof GuestConnectionError && error.fault === "unverified",
    );
  }
  faultLanded("the guest's own answer was given to another challenge", answers.length > 0 ? replayed - 2 : 0);
  assert.equal(challenges.size, 4, "no challenge comes twice");
  await host.substrate.stop(guest.activationId);
});
