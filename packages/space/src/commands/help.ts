// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

const text = `SPACE runs untrusted code for AI agents in isolated, stateful sandboxes, on your own machine.

  ./space demo              watch one sandbox work, pause, move to another worker, and refuse a stale capability
      --json                the same as one JSON document
  ./space up                start SPACE here; E2B's SDKs work against it unmodified
      --data DIR            where everything is kept                (default: .space/data in the checkout)
      --snapshots DIR       where snapshots are kept, sealed        (default: in the data directory)
      --s3-endpoint URL --s3-bucket NAME --s3-credentials FILE [--s3-region REGION]   ... or in a bucket
      --listen HOST:PORT    plain HTTP for the API and URL mode     (default: 127.0.0.1:7680)
      --tls-listen HOST:PORT  HTTPS for domain mode                 (default: 127.0.0.1:7643)
      --domain NAME         sandboxes are <port>-<id>.NAME          (default: space.localhost)
      --workers N           worker processes                        (default: 2)
      --memory HOW          what becomes of a paused sandbox's memory on namespace: frozen on its worker, or criu, which saves it (default: frozen)
      --direct-moves on|off   whether moved sandboxes go from worker to worker, not by way of the store (default: on with a bucket)
      --substrate NAME      how sandboxes are isolated: namespace, or gvisor, which keeps memory across workers (default: namespace)
      --env-file FILE       write the variables that E2B's SDKs read
      --lease SECONDS       how long a worker may serve without hearing from the control plane (15 to 120, default: 60)
      --expose              allow addresses other than loopback: anyone who reaches them may try keys and tokens
  ./space sim               simulate whole installations that fail in every way, and hold them to the identity protocol
      --seed S --executions N   which worlds, and how much of them    (default: 1 and 20000)
      --shards N            processes                               (default: one for each core, 4 at most)
      --mutants             break SPACE on purpose, in each of many ways: every one must be noticed
      --model               search every state of the protocol's core, for two workers, two gateways, three generations
      --world W --trace     one world of an earlier run again, step by step
      --json                the report as one JSON document
  ./space test              run every test
  ./space doctor            say what works on this host and what is missing
      --install             first fetch what can be had without changing the host (runsc, verified as Debian's)
  ./space sandbox ls        the sandboxes of your key (--state running|paused|lost, may be given often)
  ./space sandbox create    start one and print its id (--template NAME, --timeout SECONDS, --on-timeout kill|pause, --auto-resume,
                            --metadata NAME=VALUE, --env NAME=VALUE, --worker WORKER)
  ./space sandbox exec ID -- COMMAND   run a program there: its output, exit code, and piped input; wakes a paused sandbox
      --user NAME --cwd DIR --env NAME=VALUE   (125: SPACE failed, and not the command)
  ./space sandbox pause ID  keep its files, and memory where the substrate can (--files-only)
  ./space sandbox resume ID --timeout SECONDS --worker WORKER --files-only
  ./space sandbox move ID   take it to another worker as it runs, with its memory where the substrate can (--to WORKER)
  ./space sandbox fork ID   others that begin where it is, and print their ids (--count N, --timeout SECONDS)
  ./space sandbox kill ID   end it for good
  ./space sandbox inspect ID   its generation, activation, worker, snapshot, end, and its verified chain
  ./space sandbox logs ID   what the audit logs say of it (-n N, -f, --sensitive); what its processes print is not kept
      --data DIR --json     all of them use E2B_API_URL and E2B_API_KEY where these are set, else the SPACE of --data
  ./space audit verify      say whether any audit log was altered, cut or forged, and where (--data DIR, --json)
      --root-key KEY        the installation's root public key, from elsewhere than the data directory
      --checkpoint FILE     checkpoints kept elsewhere, one a line: what the logs must still hold
  ./space audit tail        show the newest audit records (-n N, -f, --sensitive, --json, --data DIR)
  ./space bench path|start|lifecycle|capability  measure against baselines in the same run (--json, --quick)
      --seconds N           of lifecycle: how long executions are created, used and killed without a pause (60)
  ./space drill moves       many callers over two gateways while sandboxes move between two workers; every answer checked
      --callers N --cycles N --sandboxes N --pace-ms N --json
  ./space drill lease       stop a worker's daemon while its sandbox is recovered elsewhere; no two generations act at once
      --lease SECONDS --stop SECONDS --json
  ./space drill partition   cut a worker off from everything while its sandboxes are recovered elsewhere or killed
      --lease SECONDS --cut SECONDS --json
  ./space drill terminal    type into a terminal while its sandbox is paused and resumed; each byte once, in order
      --bytes N --pauses N --json
  ./space drill cut         how long the last of many streams outlives the epoch that it was opened under
      --streams N --rounds N --json
  ./space drill outage      the control plane stands still under load: no live entry fails, no stream is cut, nobody asks it
      --seconds N --callers N --ramp SECONDS --streams N --pace-ms N --json
  ./space drill keys        keys rotated and revoked under load: no valid caller is refused, the revoked key is at once
      --callers N --rounds N --pace-ms N --json
  ./space drill disk        give a worker an old copy of its own disk: it is refused until it enrols anew (--json)
  ./space chaos             use sandboxes in every way while workers, bridges and control plane are killed and stopped at random
      --minutes N --seed S  for how long, and which plan            (default: 10, and another each time)
      --sandboxes N --workers N --substrate NAME --memory HOW   (default: 6, 2, namespace, and criu where that works)
      --keep --json         --keep leaves the data directory when something was found or an error was answered
  ./space keys list         the signing keys and their states (--data DIR, --json); works beside a running SPACE and without
  ./space keys rotate       let a new key sign; the one before is trusted for three minutes more
  ./space keys revoke KID   trust a key no longer, from now on
      --root-key FILE       where the root key is, when it is not kept in the data directory
  ./space keys tenants      the keys that snapshots are sealed with, and under which key they are wrapped (--data DIR, --json)
  ./space keys rotate-tenant TENANT   seal this tenant's next snapshots with a new key; what there is stays readable
  ./space keys rewrap       a new key-encryption key, and every tenant's keys under it
  ./space chain verify SANDBOX   verify a sandbox's identity chain down to its first execution (--data DIR, --json)
  ./space chain verify --file FILE --root ROOTPUB   the same from an export alone; ROOTPUB is the key or a file with it
  ./space chain verify --snapshot DIGEST   what is sealed in a snapshot, without the control plane (--objects DIR, --keys FILE, --root ROOTPUB, --json)
  ./space chain export SANDBOX --out FILE   write the chain with all that verifies it
  ./space workers list      the workers of this machine (--data DIR, --json)
  ./space workers enrol NAME     let a worker whose store is refused start as a new one
  ./space fuzz TARGET       give a parser mutated input until it fails (capability, certificate, frames, …)
      --seconds N --seed S  how long, and which inputs; --save keeps new kinds in packages/testing/corpus
  ./space version           versions of SPACE, its API and Node
  ./space help              this

Starting sandboxes needs root: it makes user-id ranges, control groups and mounts.
`;

export function help(): Promise<number> {
  process.stdout.write(text);
  return Promise.resolve(0);
}
