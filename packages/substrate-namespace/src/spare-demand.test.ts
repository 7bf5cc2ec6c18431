// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SpareDemand } from "./spare-demand.ts";

function starts(demand: SpareDemand, count: number): void {
  for (let done = 0; done < count; done += 1) demand.noteStart();
}

describe("the demand for spare guests", () => {
  it("is the least on a worker that nobody asks, and for starts that come one by one", () => {
    const demand = new SpareDemand({ least: 2, most: 8 });
    assert.equal(demand.wanted, 2);
    for (let round = 0; round < 20; round += 1) {
      starts(demand, 1);
      demand.noteFull();
    }
    assert.equal(demand.wanted, 2);
    assert.ok(!demand.isRaised);
  });

  it("is as many as came in one go", () => {
    const demand = new SpareDemand({ least: 2, most: 8 });
    starts(demand, 5);
    assert.equal(demand.wanted, 5);
    demand.noteFull();
    starts(demand, 3);
    assert.equal(demand.wanted, 5, "a smaller burst does not lower it");
  });

  it("never is more than the most, however many come", () => {
    const demand = new SpareDemand({ least: 2, most: 8 });
    starts(demand, 1000);
    assert.equal(demand.wanted, 8);
    assert.equal(new SpareDemand({ least: 0, most: 0 }).wanted, 0);
  });

  it("outlives the period it came in by one, and sinks to the least", () => {
    const demand = new SpareDemand({ least: 2, most: 8 });
    starts(demand, 6);
    demand.noteFull();
    demand.turn();
    assert.equal(demand.wanted, 6);
    starts(demand, 3);
    demand.noteFull();
    demand.turn();
    assert.equal(demand.wanted, 3);
    demand.turn();
    assert.equal(demand.wanted, 2);
    assert.ok(!demand.isRaised);
  });

  it("does not forget a burst that goes on over the turn of a period", () => {
    const demand = new SpareDemand({ least: 1, most: 100 });
    starts(demand, 10);
    demand.turn();
    demand.turn();
    starts(demand, 1);
    assert.equal(demand.wanted, 11, "the pool has not been full since");
  });
});
