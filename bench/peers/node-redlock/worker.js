// SPDX-License-Identifier: Apache-2.0

// node-redlock as a peer of the bench; the lines it is told by are described in bench/peer.c. Its threads are
// asynchronous callers in the one thread that there is.
//
//     worker.js REDIS-URL

'use strict';

const readline = require('readline');
const Redis = require('ioredis');
const Redlock = require('redlock');

const LEASE_MS = 30000;
// By default a waiter gives up after 10 tries; here all wait until they have it.
const OPTIONS = { retryCount: -1 };

const url = process.argv[2];
const client = new Redis(url);
const locker = new Redlock([client], OPTIONS);
let held = null;

const now = () => Number(process.hrtime.bigint()); // CLOCK_MONOTONIC

async function call(own, name, alone, from, until) {
  const c = { samples: [], longest: 0, all: 0 };
  for (let start = now(); start < until;) {
    const lock = await own.lock(name, LEASE_MS);
    const acquired = now();
    await lock.unlock();
    const end = now();
    const took = (alone ? end : acquired) - start;
    if (end >= from) c.longest = Math.max(c.longest, took);
    if (end >= from && end < until) c.samples.push(took);
    start = end;
    c.all++;
  }
  return c;
}

function usage() {
  const u = process.resourceUsage();
  return [(u.userCPUTime + u.systemCPUTime) * 1000, u.voluntaryContextSwitches, u.involuntaryContextSwitches];
}

async function run(mode, threads, warmMs, runMs) {
  const clients = mode === 'clients' ? Array.from({ length: threads }, () => new Redis(url)) : [];
  const before = usage();
  const from = now() + warmMs * 1e6;
  const until = from + runMs * 1e6;
  const calls = [];
  for (let i = 0; i < threads; i++) {
    const own = clients.length ? new Redlock([clients[i]], OPTIONS) : locker;
    calls.push(call(own, mode === 'distinct' ? `redlock:${i}` : 'redlock:crowd', mode === 'distinct', from, until));
  }
  const all = await Promise.all(calls);
  const after = usage();
  clients.forEach((c) => c.disconnect());
  const samples = all.flatMap((c) => c.samples).sort((a, b) => a - b);
  const longest = Math.max(...all.map((c) => c.longest));
  const count = samples.length;
  const p50 = count ? samples[Math.floor(count / 2)] : longest;
  const p99 = count ? samples[count - 1 - Math.floor(count / 100)] : longest;
  return ['done', count, p50, p99, longest, all.reduce((sum, c) => sum + c.all, 0), ...after.map((a, i) => a - before[i])].join(' ');
}

async function answer(words) {
  if (words[0] === 'run') return run(words[1], ...words.slice(2).map(Number));
  if (words[0] === 'wait') {
    held = await locker.lock(`redlock:${words[1]}`, LEASE_MS);
    return `granted ${now()}`;
  }
  if (words[0] === 'release') {
    const instant = now();
    await held.unlock();
    return `released ${instant}`;
  }
  return `error unknown ${words[0]}`;
}

async function main() {
  await client.ping();
  const version = (name) => require(`${name}/package.json`).version;
  console.log(`ready node-redlock ${version('redlock')}, ioredis ${version('ioredis')}, Node ${process.versions.node}`);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'end') break;
    console.log(await answer(line.split(' ')));
  }
  process.exit(0);
}

main().catch((e) => {
  console.log(`error ${e.message}`);
  process.exit(1);
});
